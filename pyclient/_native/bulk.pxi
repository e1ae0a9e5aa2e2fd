# Many records in one call, without a Python object for each.


cdef int check_lengths(values, keys, Py_ssize_t start) except -1:
    if start < 0:
        raise ValueError(f"start is not negative: {start}")
    if keys is not None and len(keys) != len(values):
        raise ValueError(f"{len(values)} values, but {len(keys)} keys")
    return 0


cdef object append_list(
    BatchBuilder builder, timestamp_ms, values, keys, Py_ssize_t start
):
    cdef const uint8_t *key_data = NULL
    cdef const uint8_t *value_data
    cdef Py_ssize_t key_size = -1, value_size, index, end, first = 0, appended
    cdef int64_t timestamp = check_timestamp(timestamp_ms)
    check_lengths(values, keys, start)
    values = values if type(values) is list else list(values)
    keys = keys if keys is None or type(keys) is list else list(keys)
    end = len(<list>values)
    index = start
    # The lists are read again each time: reading a buffer may run code that changes them.
    while index < end and index < len(<list>values):
        value = (<list>values)[index]
        keep_value = open_payload(value, &value_data, &value_size)
        if keys is not None:
            if index >= len(<list>keys):
                break
            key = (<list>keys)[index]
            keep_key = open_payload(key, &key_data, &key_size)
        appended = builder.try_append_c(
            timestamp, key_data, key_size, value_data, value_size, NO_HEADERS, 1)
        if appended < 0:
            break
        if index == start:
            first = appended
        index += 1
    return range(first, first + index - start)


cdef object append_columns(
    BatchBuilder builder, timestamp_ms, values, keys, Py_ssize_t start
):
    cdef ArrowBytes value_array = ArrowBytes.__new__(ArrowBytes, values)
    cdef ArrowBytes key_array = None
    cdef const uint8_t *key_data = NULL
    cdef const uint8_t *value_data = NULL
    cdef Py_ssize_t key_size = -1, value_size = -1, index = start, first
    cdef int64_t timestamp = check_timestamp(timestamp_ms)
    check_lengths(values, keys, start)
    if keys is not None:
        key_array = ArrowBytes.__new__(ArrowBytes, keys)
        if key_array.length < value_array.length:
            raise ValueError("the array of keys has changed its length")
    first = builder.count
    while index < value_array.length:
        if not value_array.get(index, &value_data, &value_size) or (
            key_array is not None and not key_array.get(index, &key_data, &key_size)
        ):
            raise ValueError(f"item {index} lies outside of the array's data")
        if builder.try_append_c(
            timestamp, key_data, key_size, value_data, value_size, NO_HEADERS, 1
        ) < 0:
            break
        index += 1
    return range(first, first + index - start)
