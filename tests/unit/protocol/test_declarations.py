"""Every declaration against itself: annotations, wire types, versions, tags."""

from typing import Any, get_type_hints

import pytest

from pyclient.protocol import registry
from pyclient.protocol.primitives import (
    BOOL,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    UUID,
    ArrayType,
    Records,
    StructType,
    Uuid,
    WireType,
)
from pyclient.protocol.schema import Message, Struct
from tests.support.messages import declared_messages

MESSAGES = declared_messages()
PYTHON_TYPES = {BOOL: bool, BYTES: bytes, FLOAT64: float, RECORDS: Records, STRING: str, UUID: Uuid}


def structs_of(cls: type[Struct]) -> set[type[Struct]]:
    """A message and all that is nested in it."""
    found = {cls}
    for one in cls.fields:
        inner = one.type.element if isinstance(one.type, ArrayType) else one.type
        if isinstance(inner, StructType):
            found |= structs_of(inner.struct)
    return found


STRUCTS = sorted(
    {struct for cls in MESSAGES.values() for struct in structs_of(cls)},
    key=lambda cls: (cls.__module__, cls.__name__),
)
named = pytest.mark.parametrize("cls", STRUCTS, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")


def annotation_of(wire_type: WireType) -> Any:
    if isinstance(wire_type, ArrayType):
        return list[annotation_of(wire_type.element)]  # type: ignore[misc]
    if isinstance(wire_type, StructType):
        return wire_type.struct
    return PYTHON_TYPES.get(wire_type, int)


@named
def test_annotations_say_what_the_wire_types_say(cls: type[Struct]) -> None:
    hints = get_type_hints(cls)
    for one in cls.fields:
        expected = annotation_of(one.type)
        if one.nullable.highest >= one.nullable.lowest:
            expected = expected | None
        assert hints[one.name] == expected, one.name


@named
def test_null_is_a_default_only_where_it_is_a_value(cls: type[Struct]) -> None:
    for one in cls.fields:
        if one.fresh_default() is None:
            assert one.nullable.lowest <= one.nullable.highest, one.name


@named
def test_tags_of_a_struct_count_up_from_zero(cls: type[Struct]) -> None:
    tags = [one.tag for one in cls.fields if one.tag is not None]
    assert sorted(tags) == list(range(len(tags)))


@named
def test_what_a_struct_says_of_itself_is_a_sentence(cls: type[Struct]) -> None:
    # It has Kafka's name, which may say it all.
    assert cls.__doc__ is None or cls.__doc__.endswith(".")


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_tagged_fields_appear_in_flexible_versions_only(name: str) -> None:
    cls = MESSAGES[name]
    tagged = [one for struct in structs_of(cls) for one in struct.fields if one.tag is not None]
    for version in cls.versions:
        if version not in cls.flexible:
            assert not [one.name for one in tagged if version in one.tagged]


@pytest.mark.parametrize("api_key", registry.API_NAMES)
def test_request_and_response_have_the_same_key_and_versions(api_key: int) -> None:
    request, response = registry.request_class(api_key), registry.response_class(api_key)
    assert request.api_key == response.api_key == api_key
    assert repr(request.versions) == repr(response.versions)
    assert repr(request.stable) == repr(response.stable)
    assert repr(request.flexible) == repr(response.flexible)


def test_every_request_and_response_belongs_to_an_api_of_the_registry() -> None:
    declared = {name for name, cls in MESSAGES.items() if cls.api_key is not None}
    apis = registry.API_NAMES.values()
    assert declared == {f"{api}{kind}" for api in apis for kind in ("Request", "Response")}


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_message_of_defaults_survives_every_version(name: str) -> None:
    cls: type[Message] = MESSAGES[name]
    for version in cls.versions:
        assert cls.decode(cls().encode_bytes(version), version) == cls()
