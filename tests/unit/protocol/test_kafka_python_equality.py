"""Our messages against kafka-python's, which reads the same schemas by code of its own."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from kafka.protocol import api_header

from pyclient.protocol.header import RequestHeader, ResponseHeader
from pyclient.protocol.schema import Message
from tests.golden.loader import golden_lines
from tests.support.kafka_python_messages import (
    decode_theirs,
    encode_theirs,
    from_theirs,
    kafka_python_messages,
    to_theirs,
    versions_of,
)
from tests.support.message_strategies import messages
from tests.support.messages import declared_messages

OURS = declared_messages()
THEIRS = kafka_python_messages()
PAIRS = [
    (name, version)
    for name in sorted(OURS.keys() & THEIRS.keys())
    for version in OURS[name].versions
    if version in versions_of(THEIRS[name])
]

# Messages that kafka-python reads otherwise than Apache Kafka writes them.
MISREAD_BY_KAFKA_PYTHON: dict[str, Callable[[Any, int], bool]] = {
    # It takes any response with an error for a version 0 body, in which a broker answers
    # a version that it does not know; other errors come in the version that was asked for.
    "ApiVersionsResponse": lambda message, version: version > 0 and message.error_code != 0,
}

some_examples = settings(
    max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


def is_misread(message: Message, version: int) -> bool:
    listed = MISREAD_BY_KAFKA_PYTHON.get(type(message).__name__)
    return listed is not None and listed(message, version)


def test_kafka_python_has_no_message_that_we_lack() -> None:
    assert THEIRS.keys() - OURS.keys() == set()


@pytest.mark.parametrize(("name", "version"), PAIRS)
def test_both_write_the_same_bytes_and_read_each_others(name: str, version: int) -> None:
    ours, theirs = OURS[name], THEIRS[name]

    @some_examples
    @given(messages(ours, version))
    def compare(message: Any) -> None:
        body = encode_theirs(to_theirs(message, theirs._struct, version), version)
        assert message.encode_bytes(version) == body
        assert ours.decode(body, version) == message
        if not is_misread(message, version):
            assert from_theirs(ours, decode_theirs(theirs, body, version), version) == message

    compare()


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs", "version"),
    [(RequestHeader, api_header.RequestHeader, 1), (ResponseHeader, api_header.ResponseHeader, 0)],
)
def test_both_write_and_read_the_same_headers(
    ours: type[Message], theirs: Any, version: int, flexible: bool
) -> None:
    version += flexible

    @some_examples
    @given(messages(ours, version))
    def compare(message: Any) -> None:
        head = to_theirs(message, theirs._struct, version).encode(flexible=flexible)
        assert message.encode_bytes(version) == head
        assert ours.decode(head, version) == message
        decoded = theirs.decode(BytesIO(head), flexible=flexible)
        assert from_theirs(ours, decoded, version) == message

    compare()


@pytest.mark.parametrize("name", MISREAD_BY_KAFKA_PYTHON)
def test_apache_kafkas_bytes_side_with_us_where_kafka_python_differs(name: str) -> None:
    misread = 0
    for line in golden_lines("messages.jsonl.gz"):
        if line["message"] == name:
            version, body = line["version"], bytes.fromhex(line["hex"])
            message = OURS[name].decode(body, version)
            assert message.encode_bytes(version) == body
            misread += is_misread(message, version) and not reads(name, body, message, version)
    assert misread > 0, "kafka-python reads it right by now: take it off the list"


def reads(name: str, body: bytes, message: Message, version: int) -> bool:
    try:
        theirs = decode_theirs(THEIRS[name], body, version)
    except Exception:  # noqa: BLE001  it raises what its generated code happens to hit
        return False
    return bool(from_theirs(OURS[name], theirs, version) == message)
