"""The public errors: facts, pickling, and kafka-python's names and families."""

import inspect
import pickle
from typing import Any

import kafka.errors as kafka_python
import pytest

from pyclient import errors
from pyclient.types import OffsetAndMetadata, TopicPartition

KAFKA_PYTHON = {name: value for name, value in vars(kafka_python).items() if inspect.isclass(value)}

# Apache Kafka retries these without a metadata refresh; kafka-python refreshes.
WITHOUT_REFRESH = {"UnknownLeaderEpochError"}


@pytest.mark.parametrize("name", KAFKA_PYTHON)
def test_every_error_of_kafka_python_can_be_imported_and_caught_alike(name: str) -> None:
    theirs: Any = KAFKA_PYTHON[name]
    ours = getattr(errors, name)
    families = {base.__name__ for base in theirs.__mro__ if base.__module__ == "kafka.errors"}
    if name in WITHOUT_REFRESH:
        families.remove("InvalidMetadataError")
    assert all(issubclass(ours, getattr(errors, family)) for family in families)
    assert ours.retriable or not theirs.retriable
    assert getattr(ours, "errno", None) == getattr(theirs, "errno", None)


@pytest.mark.parametrize(
    ("name", "stands_for"),
    [
        ("NoBrokersAvailable", "KafkaConnectionError"),
        ("NoBrokersAvailable", "KafkaTimeoutError"),
        ("KafkaUnavailableError", "NoBrokersAvailable"),
        ("GroupLoadInProgressError", "CoordinatorLoadInProgressError"),
        ("GroupCoordinatorNotAvailableError", "CoordinatorNotAvailableError"),
        ("NotCoordinatorForGroupError", "NotCoordinatorError"),
        ("AuthenticationFailedError", "SaslAuthenticationError"),
        ("AuthenticationMethodNotSupported", "UnsupportedSaslMechanismError"),
    ],
)
def test_names_of_kafka_python_2_stand_for_the_current_classes(name: str, stands_for: str) -> None:
    assert issubclass(getattr(errors, name), getattr(errors, stands_for))


def test_a_protocol_error_names_message_version_field_and_byte() -> None:
    error = errors.ProtocolError(
        "needs 4 bytes, 2 are left",
        message_name="ProduceRequest",
        version=9,
        path="topic_data[0].index",
        offset=17,
    )
    assert str(error) == (
        "ProduceRequest v9, field topic_data[0].index, byte 17: needs 4 bytes, 2 are left"
    )
    assert (error.message_name, error.version) == ("ProduceRequest", 9)
    assert (error.path, error.offset) == ("topic_data[0].index", 17)


def test_a_protocol_error_without_facts_is_its_message() -> None:
    assert str(errors.ProtocolError("not a frame")) == "not a frame"


@pytest.mark.parametrize(
    "error",
    [
        errors.ProtocolError("short", message_name="FetchRequest", version=4, path="", offset=0),
        errors.KafkaConfigurationError("no such option", key="linger", value=3),
        errors.LogTruncationError({TopicPartition("orders", 0): OffsetAndMetadata(40, "", 3)}),
        errors.KafkaTimeoutError("no metadata in 60000 ms"),
        errors.InvalidReceiveError("a frame of -1 bytes", offset=0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_facts_survive_pickling(error: errors.KafkaError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


def test_a_truncation_names_the_partitions_and_the_last_common_offset() -> None:
    error = errors.LogTruncationError(
        {
            TopicPartition("orders", 0): OffsetAndMetadata(40, "", 3),
            TopicPartition("orders", 1): None,
        }
    )
    assert "orders-0 at 40" in str(error)
    assert "orders-1 (no common point known)" in str(error)


def test_an_error_without_a_message_says_what_it_means() -> None:
    assert str(errors.NoBrokersAvailable()) == "None of the bootstrap addresses could be reached."


def test_errors_of_one_class_and_message_are_equal_and_hash_alike() -> None:
    assert errors.KafkaTimeoutError("a") == errors.KafkaTimeoutError("a")
    assert hash(errors.KafkaTimeoutError("a")) == hash(errors.KafkaTimeoutError("a"))
    assert errors.KafkaTimeoutError("a") != errors.KafkaTimeoutError("b")
    assert errors.KafkaTimeoutError("a") != errors.Cancelled("a")
