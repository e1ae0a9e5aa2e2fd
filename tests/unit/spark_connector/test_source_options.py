"""The source's options: the JVM connector's rules, and what is only warned of."""

import logging

import pytest

from pyclient import TopicPartition
from spark_connector.offsets import GlobalTimestamp, SpecificOffsets, SpecificTimestamps
from spark_connector.source_options import (
    SourceOptions,
    check_source_options,
    parse_source_options,
)

NEEDED = {"kafka.bootstrap.servers": "localhost:9092"}


def parse(streaming: bool = False, /, **options: str) -> SourceOptions:
    given = {"subscribe": "t", **NEEDED, **options}
    return parse_source_options(given, streaming=streaming)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "One of the following options must be specified for Kafka source"),
        ({"subscribe": "t", "assign": "{}"}, "Only one of the following options can be specified"),
        ({"subscribe": " , "}, "No topics to subscribe to as specified value"),
        ({"subscribePattern": " "}, "Pattern to subscribe is empty"),
        ({"assign": "t"}, "No topicpartitions to assign"),
        ({"assign": '{"t":0}'}, r"Expected e.g. \{"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "can't be latest for batch queries"),
        ({"subscribe": "t", "endingOffsets": "earliest"}, "can't be earliest for batch queries"),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets for t-0 can't"),
        ({"subscribe": "t", "endingOffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be"),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":-3}}'}, "nothing is below"),
        ({"subscribe": "t", "startingOffsets": '{"t":{"0":"1"}}'}, r"Expected e.g. \{"),
        ({"subscribe": "t", "startingOffsets": "first"}, r"Expected e.g. \{.*got first"),
        ({"subscribe": "t", "startingTimestamp": "noon"}, "Expected a single long value, got noon"),
        ({"subscribe": "t", "startingOffsetsByTimestampStrategy": "x"}, "is error or latest, not"),
        ({"subscribe": "t", "minPartitions": "0"}, "minPartitions must be positive"),
        ({"subscribe": "t", "maxRecordsPerPartition": "-1"}, "PerPartition must be positive"),
        ({"subscribe": "t", "minPartitions": "many"}, "is a whole number, not 'many'"),
        ({"subscribe": "t", "failOnDataLoss": "maybe"}, "is true or false, not 'maybe'"),
        ({"subscribe": "t", "partition.metadata.cache.ttl.ms": "0"}, "must be a positive number"),
        ({"subscribe": "t", "kafka.auto.offset.reset": "none"}, "'auto.offset.reset' is not supp"),
        ({"subscribe": "t", "kafka.key.deserializer": "x"}, "'key.deserializer' is not supported"),
        ({"subscribe": "t", "kafka.enable.auto.commit": "x"}, "'enable.auto.commit' is not supp"),
        ({"subscribe": "t", "kafka.interceptor.classes": "x"}, "'interceptor.classes' is not"),
        ({"subscribe": "t", "kafka.fetch.max.bytes": "some"}, "starts with 'kafka.' is wrong"),
        ({"subscribe": "t", "kafka.fetch.max.byte": "1"}, "starts with 'kafka.' is wrong"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_source_options({**NEEDED, **options}, streaming=False)


def test_the_brokers_must_be_given() -> None:
    with pytest.raises(ValueError, match=r"'kafka.bootstrap.servers' must be specified"):
        check_source_options({"subscribe": "t"})


def test_starts_and_ends_must_name_the_same_partitions_in_order() -> None:
    with pytest.raises(ValueError, match="MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET"):
        parse(startingOffsets='{"t":{"0":1}}', endingOffsets='{"t":{"1":1}}')
    with pytest.raises(ValueError, match="start offset 9 is greater than the end offset 5 for top"):
        parse(startingOffsets='{"t":{"0":9}}', endingOffsets='{"t":{"0":5}}')
    with pytest.raises(ValueError, match="start timestamp 9 is greater than the end timestamp 5"):
        parse(startingOffsetsByTimestamp='{"t":{"0":9}}', endingOffsetsByTimestamp='{"t":{"0":5}}')


def test_defaults_differ_between_batches_and_streams() -> None:
    assert (parse().starting, parse().ending) == ("earliest", "latest")
    assert parse(True).starting == "latest"
    assert parse(True).max_trigger_delay_ms == 15 * 60_000


def test_the_most_general_limit_comes_first() -> None:
    one = TopicPartition("t", 0)
    options = {"startingOffsets": '{"t":{"0":1}}'}
    assert parse(**options).starting == SpecificOffsets({one: 1})
    options["startingOffsetsByTimestamp"] = '{"t":{"0":2}}'
    assert isinstance(parse(**options).starting, SpecificTimestamps)
    options["startingTimestamp"] = "3"
    assert parse(**options).starting == GlobalTimestamp(3)


def test_names_of_options_may_be_in_any_case() -> None:
    options = parse_source_options(
        {"SUBSCRIBE": " a , b,", "KAFKA.Bootstrap.Servers": "x:1", "FAILondataloss": "FALSE"},
        streaming=False,
    )
    assert options.subscription.topics == ("a", "b")
    assert options.client == {"bootstrap.servers": "x:1"}
    assert options.fail_on_data_loss is False


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("topic", "out", "option 'topic' has no effect here"),
        ("startingOffset", "earliest", "unknown and has no effect; did you mean 'startingOffsets'"),
        ("maxOffsetsPerTrigger", "5", "'maxOffsetsPerTrigger' has no effect in batch queries"),
        ("kafka.max.poll.records", "5", "'kafka.max.poll.records' has no effect"),
        ("kafka.linger.ms", "5", "'kafka.linger.ms' has no effect: it is not for a consumer"),
        ("kafka.group.id", "g", "'kafka.group.id' has no effect"),
    ],
)
def test_options_that_other_jobs_share_are_warned_of(
    caplog: pytest.LogCaptureFixture, option: str, value: str, words: str
) -> None:
    with caplog.at_level(logging.WARNING):
        options = parse(**{option: value})
    assert words in caplog.text
    assert options.client == {"bootstrap.servers": "localhost:9092"}


def test_the_groups_name_is_part_of_the_client_id() -> None:
    assert parse(groupIdPrefix="jobs").group_name == "jobs"
    assert parse(True).group_name == "spark-kafka-source"
    assert parse().group_name == "spark-kafka-relation"


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("15m", 900_000), ("10s", 10_000), ("250", 250), ("1 h", 3_600_000)]
)
def test_delays_have_units(text: str, milliseconds: int) -> None:
    assert parse(True, maxTriggerDelay=text).max_trigger_delay_ms == milliseconds
