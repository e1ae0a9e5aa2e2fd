"""Reading keys and values out of Arrow arrays of strings or bytes, without pyarrow itself: an array
gives its buffers, and this knows their layout.
"""

from array import array as numbers
from typing import Any, Final

from pyclient._pure.checksums import partition_for_key

_WIDTHS: Final = {"binary": 4, "string": 4, "large_binary": 8, "large_string": 8}


class ArrowBytes:
    """A binary, string, large_binary or large_string array; out-of-range offsets are refused."""

    __slots__ = ("_data", "_first", "_offsets", "_validity")

    def __init__(self, array: Any) -> None:
        kind = str(array.type)
        if kind not in _WIDTHS:
            raise TypeError(f"keys and values are arrays of binary or string, not of {kind}")
        validity, offsets, data = array.buffers()
        self._first: int = array.offset
        last = self._first + len(array)
        self._validity = None if validity is None else _view(validity)
        self._data = _view(data)
        raw = _view(offsets)
        width = _WIDTHS[kind]
        self._offsets = raw[: len(raw) // width * width].cast("i" if width == 4 else "q")
        if len(array) and (
            len(self._offsets) <= last
            or (self._validity is not None and len(self._validity) * 8 < last)
        ):
            raise ValueError("the array is longer than its buffers")

    def __getitem__(self, index: int) -> memoryview | None:
        at = self._first + index
        if self._validity is not None and not self._validity[at >> 3] >> (at & 7) & 1:
            return None
        start, end = self._offsets[at], self._offsets[at + 1]
        if not 0 <= start <= end <= len(self._data):
            raise ValueError(f"item {index} lies outside of the array's data")
        return self._data[start:end]


def _view(buffer: Any) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")


def partitions_of_keys(keys: Any, partition_count: int) -> bytes:
    """The partition of each key of an Arrow array, -1 without a key, as native 32-bit integers.

    Raises:
        TypeError: an array of another type.
        ValueError: an array whose buffers contradict it.
    """
    key_bytes = ArrowBytes(keys)
    partitions = numbers("i")
    for index in range(len(keys)):
        key = key_bytes[index]
        partitions.append(-1 if key is None else partition_for_key(key, partition_count))
    return partitions.tobytes()
