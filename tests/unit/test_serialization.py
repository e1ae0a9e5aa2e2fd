"""What a program may configure as a serializer, and that all of it is called alike."""

from typing import Any

import pytest

from pyclient.serialization import (
    DefaultSerializer,
    Headers,
    JsonSerializer,
    Serializer,
    deserializer,
    serializer,
)


class Upper(Serializer):
    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes:
        return f"{topic} {len(headers)} {data.upper()}".encode()


class OfKafkaPython2:
    def serialize(self, topic: str, value: str) -> bytes:
        return f"{topic} {value}".encode()


def test_nothing_configured_means_bytes_pass_as_they_are() -> None:
    assert serializer(None) is None
    assert deserializer(None) is None


def test_a_callable_gets_the_data_alone() -> None:
    serialize = serializer(str.encode)
    assert serialize is not None
    assert serialize("orders", [], "a") == b"a"


def test_an_object_of_the_interface_gets_topic_and_headers() -> None:
    serialize = serializer(Upper())
    assert serialize is not None
    assert serialize("orders", [("h", b"1")], "a") == b"orders 1 A"


def test_an_object_of_kafka_python_2_gets_topic_and_value() -> None:
    serialize = serializer(OfKafkaPython2())
    assert serialize is not None
    assert serialize("orders", [("h", b"1")], "a") == b"orders a"


def test_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="neither a callable nor an object with serialize"):
        serializer("utf-8")


def test_text_and_bytes_go_through_the_default_serializer() -> None:
    default = DefaultSerializer()
    assert default.serialize("t", [], "é") == "é".encode()
    assert default.serialize("t", [], b"\x00") == b"\x00"
    assert default.serialize("t", [], None) is None
    assert default.deserialize("t", [], "é".encode()) == "é"
    assert default.deserialize("t", [], None) is None


def test_json_comes_back_as_it_went_and_a_null_stays_a_null() -> None:
    codec = JsonSerializer()
    data = codec.serialize("t", [], {"a": [1, None]})
    assert isinstance(data, bytes)
    assert codec.deserialize("t", [], data) == {"a": [1, None]}
    assert codec.serialize("t", [], None) is None
    assert codec.deserialize("t", [], None) is None
