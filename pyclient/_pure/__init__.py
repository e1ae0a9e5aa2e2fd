"""Pure-Python twins of `pyclient._native`: same names, same bytes.

- `arrow`: reads Arrow arrays
- `batch`: the names of the native module `batch`
- `builder`: builds a batch in pooled buffers
- `checksums`: CRC-32C, murmur2, and the partition of a key
- `columns`: records as Arrow columns
- `cursor`: iteration, one record at a time
- `decoder`: decodes the records of a batch
- `layout`: the bytes of one record
- `record`: `ConsumerRecord`
- `rows`: appends many records in one call, from lists or Arrow arrays
- `send`: the slots of open batches, and the base class of `KafkaProducer`
- `wire`: varints
"""
