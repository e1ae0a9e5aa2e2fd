"""Reads Arrow arrays. Does not import pyarrow: it parses the buffers that an array exposes."""

from typing import Any, Final

_WIDTHS: Final = {"binary": 4, "string": 4, "large_binary": 8, "large_string": 8}


class ArrowColumn:
    """Where an array's items lie, and which of them are null."""

    __slots__ = ("first", "length", "validity")

    def __init__(self, array: Any, validity: Any) -> None:
        self.first: int = array.offset
        self.length = len(array)
        self.validity = None if validity is None else _view(validity)
        if self.first < 0 or (
            self.validity is not None and self.first + self.length > len(self.validity) * 8
        ):
            raise ValueError("the array is longer than its buffers")

    def is_set(self, index: int) -> bool:
        at = self.first + index
        return self.validity is None or bool(self.validity[at >> 3] >> (at & 7) & 1)


class ArrowBytes(ArrowColumn):
    """A binary, string, large_binary or large_string array, with bounds checks."""

    __slots__ = ("data", "offsets")

    def __init__(self, array: Any) -> None:
        kind = str(array.type)
        if kind not in _WIDTHS:
            raise TypeError(f"keys and values are arrays of binary or string, not of {kind}")
        validity, offsets, data = array.buffers()
        super().__init__(array, validity)
        self.data = _view(data)
        self.offsets = _numbers(offsets, wide=_WIDTHS[kind] == 8)
        if self.length and len(self.offsets) <= self.first + self.length:
            raise ValueError("the array is longer than its buffers")

    def check(self) -> None:
        """Refuse items outside of the data."""
        for index in range(self.length):
            start, end = self.offsets[self.first + index], self.offsets[self.first + index + 1]
            if not 0 <= start <= end <= len(self.data) and self.is_set(index):
                raise ValueError(f"item {index} lies outside of the array's data")

    def __getitem__(self, index: int) -> bytes | None:
        if not self.is_set(index):
            return None
        at = self.first + index
        return bytes(self.data[self.offsets[at] : self.offsets[at + 1]])


class ArrowNumbers(ArrowColumn):
    """An int32 or int64 array, or the offsets of a list array: then there is one more."""

    __slots__ = ("numbers",)

    def __init__(self, array: Any, kind: str, more: int) -> None:
        given = str(array.type)
        if given != kind and not given.startswith(kind + "<"):
            raise TypeError(f"an array of {kind} is needed, not of {given}")
        validity, data = array.buffers()[:2]
        super().__init__(array, validity)
        self.numbers = _numbers(data, wide=kind == "int64")
        if self.length and len(self.numbers) < self.first + self.length + more:
            raise ValueError("the array is longer than its buffers")

    def __getitem__(self, index: int) -> int:
        return self.numbers[self.first + index]


def _view(buffer: Any) -> memoryview:
    return memoryview(b"" if buffer is None else buffer).cast("B")


def _numbers(buffer: Any, *, wide: bool) -> "memoryview[int]":
    raw = _view(buffer)
    width = 8 if wide else 4
    return raw[: len(raw) // width * width].cast("q" if wide else "i")
