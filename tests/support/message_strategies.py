"""Hypothesis strategies for whole messages, drawn from their declarations."""

from typing import Any

from hypothesis import strategies as st

from pyclient.protocol.primitives import (
    BOOL,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID,
    ZERO_UUID,
    ArrayType,
    StructType,
    WireType,
)
from pyclient.protocol.schema import Field, Struct

_INTEGERS = {
    code: st.integers(low, high) | st.sampled_from([low, -1 if low else 0, 0, 1, high])
    for code, low, high in (
        ("b", -(2**7), 2**7 - 1),
        ("h", -(2**15), 2**15 - 1),
        ("i", -(2**31), 2**31 - 1),
        ("q", -(2**63), 2**63 - 1),
        ("H", 0, 2**16 - 1),
        ("I", 0, 2**32 - 1),
    )
}
_SIMPLE = {
    BOOL: st.booleans(),
    FLOAT64: st.floats(allow_nan=False),
    # 127 and 128 bytes: where a compact length grows by a byte
    STRING: st.text(max_size=6) | st.sampled_from(["orders", "x" * 126, "x" * 127]),
    BYTES: st.binary(max_size=12) | st.just(b"x" * 127),
    RECORDS: st.binary(max_size=12).map(memoryview),
    UUID: st.binary(min_size=16, max_size=16) | st.just(ZERO_UUID),
}


def messages(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Messages whose every value the version can carry; other fields have their defaults."""
    fields = {one.name: _values(one, version) for one in cls.fields if version in one.versions}
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))


def _values(one: Field, version: int) -> st.SearchStrategy[Any]:
    values = _of_type(one.type, version)
    if version in one.nullable:
        values = st.none() | values
    if version in one.tagged:
        values = st.builds(one.fresh_default) | values
    return values


def _of_type(wire_type: WireType, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, ArrayType):
        return st.lists(_of_type(wire_type.element, version), max_size=2)
    if isinstance(wire_type, StructType):
        return messages(wire_type.struct, version)
    return _SIMPLE[wire_type] if wire_type in _SIMPLE else _INTEGERS[wire_type.code]
