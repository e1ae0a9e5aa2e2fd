"""The consumer's options: Kafka 4's defaults, and Kafka's rules between them."""

import pytest

from pyclient.config.consumer import parse, reset_duration_ms
from pyclient.errors import KafkaConfigurationError


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("auto.offset.reset", "latest"),
        ("auto.commit.interval.ms", 5_000),
        ("fetch.min.bytes", 1),
        ("fetch.max.wait.ms", 500),
        ("fetch.max.bytes", 52_428_800),
        ("max.partition.fetch.bytes", 1_048_576),
        ("max.poll.records", 500),
        ("max.poll.interval.ms", 300_000),
        ("session.timeout.ms", 45_000),
        ("heartbeat.interval.ms", 3_000),
        ("default.api.timeout.ms", 60_000),
        ("check.crcs", True),
    ],
)
def test_defaults_are_those_of_kafka_4(name: str, default: object) -> None:
    assert parse({})[name] == default


def test_a_consumer_of_a_group_commits_by_itself_and_one_without_does_not() -> None:
    assert parse({"group_id": "g"})["enable.auto.commit"] is True
    assert parse({})["enable.auto.commit"] is False


def test_committing_without_a_group_is_turned_off_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert parse({"enable_auto_commit": True})["enable.auto.commit"] is False
    assert "enable.auto.commit needs a group.id" in caplog.text


@pytest.mark.parametrize(
    ("given", "reset"), [("smallest", "earliest"), ("largest", "latest"), ("none", "none")]
)
def test_old_names_of_the_reset_policy_still_work(given: str, reset: str) -> None:
    assert parse({"auto_offset_reset": given})["auto.offset.reset"] == reset


def test_a_reset_policy_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(KafkaConfigurationError, match="one of latest, earliest, none"):
        parse({"auto_offset_reset": "first"})


def test_heartbeats_must_come_more_often_than_the_session_times_out() -> None:
    with pytest.raises(
        KafkaConfigurationError,
        match=r"heartbeat.interval.ms=3000 contradicts session.timeout.ms=2000",
    ):
        parse({"session_timeout_ms": 2_000})


def test_a_fetch_must_not_wait_as_long_as_a_request_may_take() -> None:
    with pytest.raises(
        KafkaConfigurationError, match=r"fetch.max.wait.ms=500 contradicts request.timeout.ms=400"
    ):
        parse({"request_timeout_ms": 400})


def test_the_largest_response_has_room_for_the_largest_fetch() -> None:
    config = parse({"fetch_max_bytes": 200_000_000, "max_partition_fetch_bytes": 1})
    assert config["receive.message.max.bytes"] == 200_000_001


def test_iteration_ends_never_by_default_and_after_any_time_when_asked() -> None:
    assert parse({})["consumer.timeout.ms"] == float("inf")
    assert parse({"consumer_timeout_ms": 1_000})["consumer.timeout.ms"] == 1_000


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("group_protocol", "consumer", "only the classic group protocol"),
        ("legacy_iterator", True, "one iterator"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(option: str, value: object, reason: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=reason):
        parse({option: value})


def test_a_deserializer_that_cannot_deserialize_is_refused() -> None:
    with pytest.raises(KafkaConfigurationError, match="an object with deserialize"):
        parse({"value_deserializer": "utf-8"})


def test_an_instance_id_needs_a_group() -> None:
    assert parse({"group_id": "g", "group_instance_id": "a"})["group.instance.id"] == "a"
    with pytest.raises(KafkaConfigurationError, match="a static member needs a group"):
        parse({"group_instance_id": "a"})


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:pt0s", 0),
        ("by_duration:P", -1),
        ("by_duration:PT", -1),
        ("by_duration:-PT1H", -1),
        ("by_duration:1h", -1),
        ("PT1H", -1),
    ],
)
def test_a_reset_by_duration_takes_an_iso_8601_duration(text: str, duration_ms: int) -> None:
    assert reset_duration_ms(text) == duration_ms
    if duration_ms >= 0:
        assert parse({"auto_offset_reset": text})["auto.offset.reset"] == text
    else:
        with pytest.raises(KafkaConfigurationError, match="by_duration:PT1H"):
            parse({"auto_offset_reset": text})
