"""The producer's options: Kafka 4's defaults, and Kafka's rules between them."""

from typing import Any

import pytest

from pyclient.config.producer import DEFINITION, parse
from pyclient.errors import KafkaConfigurationError


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("acks", -1),
        ("enable.idempotence", True),
        ("linger.ms", 5),
        ("batch.size", 16_384),
        ("buffer.memory", 33_554_432),
        ("max.block.ms", 60_000),
        ("max.request.size", 1_048_576),
        ("max.in.flight.requests.per.connection", 5),
        ("delivery.timeout.ms", 120_000),
        ("request.timeout.ms", 30_000),
        ("retries", 2**31 - 1),
        ("retry.backoff.ms", 100),
        ("retry.backoff.max.ms", 1_000),
        ("compression.type", "none"),
        ("compression.gzip.level", -1),
        ("compression.lz4.level", 9),
        ("compression.zstd.level", 3),
    ],
)
def test_defaults_are_those_of_kafka_4(name: str, default: object) -> None:
    assert parse({})[name] == default


@pytest.mark.parametrize(
    ("given", "acks"), [("all", -1), (-1, -1), ("-1", -1), (1, 1), ("1", 1), (0, 0), ("0", 0)]
)
def test_acks_take_kafkas_and_kafka_pythons_forms(given: object, acks: int) -> None:
    assert parse({"acks": given})["acks"] == acks


@pytest.mark.parametrize("given", [2, "leader", True, None])
def test_acks_of_another_form_are_refused(given: object) -> None:
    with pytest.raises(KafkaConfigurationError, match="it must be 0, 1, -1 or 'all'"):
        parse({"acks": given})


@pytest.mark.parametrize("options", [{"acks": 1}, {"acks": 0}, {"retries": 0}])
def test_idempotence_goes_off_when_another_option_alone_rules_it_out(
    options: dict[str, Any],
) -> None:
    assert parse(options)["enable.idempotence"] is False


@pytest.mark.parametrize("options", [{"acks": 1}, {"retries": 0}])
def test_two_explicit_options_that_contradict_each_other_are_named_both(
    options: dict[str, Any],
) -> None:
    (name,) = options
    with pytest.raises(KafkaConfigurationError, match=f"{name}=.* contradicts enable.idempotence"):
        parse({**options, "enable_idempotence": True})


def test_more_than_five_requests_in_flight_need_idempotence_off() -> None:
    with pytest.raises(
        KafkaConfigurationError, match=r"max.in.flight.*=6 contradicts enable.idempotence=True"
    ):
        parse({"max_in_flight_requests_per_connection": 6})
    config = parse({"max_in_flight_requests_per_connection": 6, "enable_idempotence": False})
    assert config["max.in.flight.requests.per.connection"] == 6
    # What else turns it off will do.
    assert parse({"max_in_flight_requests_per_connection": 6, "acks": 1})["acks"] == 1


@pytest.mark.parametrize(
    ("librdkafkas", "ours"),
    [
        ("queue.buffering.max.ms", "linger.ms"),
        ("request.required.acks", "acks"),
        ("metadata.broker.list", "bootstrap.servers"),
        ("message_timeout_ms", "delivery_timeout_ms"),
    ],
)
def test_who_comes_from_confluent_kafka_is_told_our_names(librdkafkas: str, ours: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=f"{librdkafkas}'; did you mean '{ours}'"):
        parse({librdkafkas: "1"})


def test_every_name_that_is_suggested_is_there() -> None:
    assert not [name for name in DEFINITION.elsewhere if DEFINITION.knows(name)]
    assert set(DEFINITION.elsewhere.values()) <= set(DEFINITION.keys)


def test_a_default_delivery_timeout_grows_with_the_request_timeout() -> None:
    config = parse({"request_timeout_ms": 200_000, "linger_ms": 10})
    assert config["delivery.timeout.ms"] == 200_010


def test_an_explicit_delivery_timeout_below_one_attempt_is_an_error() -> None:
    with pytest.raises(
        KafkaConfigurationError,
        match=r"delivery.timeout.ms=1000 contradicts request.timeout.ms=30000: .*30005 ms",
    ):
        parse({"delivery_timeout_ms": 1_000})


@pytest.mark.parametrize("given", [float("inf"), "inf", 2**31 - 1])
def test_infinite_retries_are_as_many_as_kafka_counts(given: object) -> None:
    assert parse({"retries": given})["retries"] == 2**31 - 1


@pytest.mark.parametrize("given", [-1, 1.5, True, float("-inf"), float("nan"), None, "many"])
def test_retries_are_counted(given: object) -> None:
    with pytest.raises(KafkaConfigurationError, match="an integer or infinity"):
        parse({"retries": given})


def test_no_compression_is_none_in_both_forms() -> None:
    assert parse({"compression_type": None})["compression.type"] == "none"
    assert parse({"compression_type": "none"})["compression.type"] == "none"


def test_a_serializer_that_cannot_serialize_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="an object with serialize"):
        parse({"value_serializer": "utf-8"})
    assert parse({"value_serializer": str.encode})["value.serializer"] is str.encode


def test_a_partitioner_is_a_callable_or_has_a_partition_method() -> None:
    assert parse({"partitioner": max})["partitioner"] is max
    assert parse({"partitioner_class": max})["partitioner"] is max
    with pytest.raises(KafkaConfigurationError, match="an object with partition"):
        parse({"partitioner": "round-robin"})


def test_a_partitioner_of_the_programs_own_does_as_it_likes_with_keys() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"ignore.keys=True contradicts partitioner="):
        parse({"partitioner": max, "partitioner.ignore.keys": "true"})


@pytest.mark.parametrize("option", ["transactional_id", "transactional.id"])
def test_a_transactional_producer_is_idempotent(option: str) -> None:
    config = parse({option: "copier-1"})
    assert config["transactional.id"] == "copier-1"
    assert config["enable.idempotence"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"transactional_id": "t", "acks": 1}, "transactions need acks=all"),
        ({"transactional_id": "t", "retries": 0}, "transactions need acks=all and retries above 0"),
        (
            {"transactional_id": "t", "enable_idempotence": False},
            "transactions need idempotence",
        ),
        ({"transactional_id": ""}, "transactional.id is empty"),
        ({"transaction_timeout_ms": 5_000}, "only a transactional producer"),
        ({"transactional_id": "t", "transaction_timeout_ms": 0}, "from 1 to"),
        (
            {"transactional_id": "t", "transaction_two_phase_commit_enable": True},
            r"use prepare_transaction\(\)",
        ),
    ],
)
def test_what_transactions_cannot_do_without_is_refused(
    options: dict[str, object], reason: str
) -> None:
    with pytest.raises(KafkaConfigurationError, match=reason):
        parse(options)
