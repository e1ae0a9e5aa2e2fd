"""The table of wire codes against Apache Kafka's own (error_codes.json, from its Errors enum)."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from pyclient import error_codes
from pyclient.error_codes import (
    BrokerResponseError,
    CorruptRecordError,
    NotLeaderOrFollowerError,
    RecordTooLargeError,
    UnknownServerError,
    for_code,
)

KAFKA: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("error_codes.json").read_text(encoding="utf-8")
)

# Kafka's class would hide a builtin (TimeoutError), or has no Exception in its name.
NAMED_OTHERWISE = {
    "NONE": "NoError",
    "REQUEST_TIMED_OUT": "RequestTimedOutError",
    "OFFSET_METADATA_TOO_LARGE": "OffsetMetadataTooLargeError",
    "INVALID_REGULAR_EXPRESSION": "InvalidRegularExpressionError",
}


@pytest.mark.parametrize("row", KAFKA, ids=lambda row: row["name"])
def test_every_code_of_kafka_has_its_class_with_kafkas_name_and_flags(row: dict[str, Any]) -> None:
    error = for_code(row["code"])
    assert error.name == row["name"]
    assert error.code == row["code"]
    assert error.retriable == row["retriable"]
    assert error.refresh_metadata == row["refresh_metadata"]
    assert error.refresh_coordinator == row["refresh_coordinator"]
    expected = NAMED_OTHERWISE.get(row["name"]) or row["java_exception"].replace(
        "Exception", "Error"
    )
    assert error.__name__ == expected


def test_the_table_has_no_code_that_kafka_does_not_have() -> None:
    ours = {
        cls.code
        for cls in vars(error_codes).values()
        if isinstance(cls, type) and issubclass(cls, BrokerResponseError) and hasattr(cls, "name")
    }
    assert ours == {row["code"] for row in KAFKA}


def test_a_duplicate_code_fails_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="error code 6 is both NotLeaderOrFollowerError and Again"):
        type("Again", (BrokerResponseError,), {}, code=6)
    assert for_code(6) is NotLeaderOrFollowerError


def test_a_code_of_a_newer_broker_keeps_its_number() -> None:
    error_class = for_code(7001)
    assert issubclass(error_class, UnknownServerError)
    assert error_class is for_code(7001)
    assert error_class.code == 7001
    assert "7001" in str(error_class())
    assert UnknownServerError.code == -1


def test_an_error_of_an_unknown_code_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(for_code(7002)("from a newer broker")))
    assert type(error) is for_code(7002)
    assert error.args == ("from a newer broker",)


@pytest.mark.parametrize("row", KAFKA, ids=lambda row: row["name"])
def test_every_error_survives_pickling(row: dict[str, Any]) -> None:
    error = for_code(row["code"])("orders-3")
    assert pickle.loads(pickle.dumps(error)) == error


def test_the_text_has_the_meaning_the_name_and_the_code() -> None:
    assert str(NotLeaderOrFollowerError()) == (
        "The broker is not the leader of the partition, or holds no replica of it."
        " (NOT_LEADER_OR_FOLLOWER, error 6)"
    )
    assert str(NotLeaderOrFollowerError("orders-3")) == "orders-3 (NOT_LEADER_OR_FOLLOWER, error 6)"


def test_a_corrupt_record_error_tells_where_the_fault_is() -> None:
    error = CorruptRecordError("checksum differs", base_offset=40, position=17)
    assert (error.base_offset, error.position) == (40, 17)
    assert "checksum differs" in str(error)
    assert "base offset 40, position 17" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        CorruptRecordError("checksum differs", base_offset=40, position=17),
        RecordTooLargeError("too large", size=2_000_000, limit=1_048_576),
    ],
    ids=lambda error: type(error).__name__,
)
def test_facts_survive_pickling(error: BrokerResponseError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert vars(again) == vars(error)
    assert str(again) == str(error)
