"""The broker's options: known ones, idle ones, unknown ones, and what topics make of them."""

import logging

import pytest

from broker_stub.config.broker_config import DYNAMIC_NAMES, BrokerConfig
from broker_stub.config.kafka_keys import is_known_to_kafka
from broker_stub.config.keys import BROKER_DEFINITION
from pyclient.error_codes import InvalidConfigurationError, InvalidRequestError
from pyclient.errors import KafkaConfigurationError


def test_an_option_is_read_by_kafkas_name_from_text():
    config = BrokerConfig({"num.partitions": "3", "auto.create.topics.enable": "false"})
    assert config["num.partitions"] == 3
    assert config["auto.create.topics.enable"] is False
    assert config.is_explicit("num.partitions")


def test_the_old_name_of_the_node_id_will_do():
    assert BrokerConfig({"broker.id": 7})["node.id"] == 7
    assert BrokerConfig({"broker.id": "7", "node.id": "7"})["node.id"] == 7
    with pytest.raises(KafkaConfigurationError, match="the same option"):
        BrokerConfig({"broker.id": 7, "node.id": 8})


@pytest.mark.parametrize("misspelt", ["num.partition", "numpartitions", "num_partition"])
def test_an_unknown_option_is_refused_with_the_nearest_name_as_kafka_spells_it(misspelt):
    with pytest.raises(KafkaConfigurationError, match=r"did you mean 'num\.partitions'\?"):
        BrokerConfig({misspelt: 3})


def test_an_unknown_option_that_is_near_to_one_without_an_effect_is_told_both():
    with pytest.raises(KafkaConfigurationError, match=r"'num\.io\.threads', which has no"):
        BrokerConfig({"num.io.thread": 3})


def test_an_option_that_is_no_name_is_refused():
    with pytest.raises(KafkaConfigurationError, match="option names must be strings, not 9092"):
        BrokerConfig({9092: "port"})  # type: ignore[dict-item]


def test_a_value_that_is_not_allowed_is_refused_with_what_is():
    with pytest.raises(KafkaConfigurationError, match="an integer of 32 bits, at least 1"):
        BrokerConfig({"num.partitions": 0})


@pytest.mark.parametrize(
    ("option", "value", "bits"),
    [
        ("connections.max.idle.ms", 2**63, 64),
        ("log.retention.bytes", "-9223372036854775809", 64),
        ("node.id", 2**31, 32),
        ("socket.send.buffer.bytes", 2**31, 32),
        ("offsets.topic.replication.factor", 2**15, 16),
        ("num.partitions", "1_000", 32),
        ("num.partitions", "\u0663", 32),
    ],
)
def test_an_integer_has_the_digits_and_the_size_that_it_has_in_java(option, value, bits):
    with pytest.raises(KafkaConfigurationError, match=f"an integer of {bits} bits"):
        BrokerConfig({option: value})


@pytest.mark.parametrize(("option", "value"), [("flush.ms", 2**63), ("max.message.bytes", 2**31)])
def test_a_topics_integers_have_sizes_too(option, value):
    with pytest.raises(InvalidConfigurationError, match="Not a number of type"):
        BrokerConfig().check_topic({option: str(value)})
    BrokerConfig().check_topic({option: str(value - 1)})


def test_kafkas_options_without_an_effect_are_named_in_one_warning(caplog):
    with caplog.at_level(logging.WARNING, "broker_stub"):
        config = BrokerConfig(
            {
                "num.io.threads": 8,
                "process.roles": "broker,controller",
                "listener.name.internal.sasl.enabled.mechanisms": "PLAIN",
                "num.partitions": 2,
            }
        )
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "listener.name.internal.sasl.enabled.mechanisms, num.io.threads, process.roles"
    )
    assert config["num.partitions"] == 2


def test_options_with_an_effect_are_worth_no_warning(caplog):
    BrokerConfig({"num.partitions": 2, "log.retention.hours": 1})
    assert not caplog.records


def test_every_option_is_one_of_kafkas():
    ours = {"transaction.version"}  # a feature of Apache Kafka's, not an option
    assert {name for name in BROKER_DEFINITION.keys if not is_known_to_kafka(name)} == ours
    assert set(BROKER_DEFINITION.keys) >= DYNAMIC_NAMES


def test_a_topic_goes_by_the_broker_where_it_says_nothing_itself():
    config = BrokerConfig({"log.retention.minutes": 2, "log.segment.bytes": 4096})
    values = config.topic_values({"segment.bytes": "8192"})
    assert (values["retention.ms"], values["segment.bytes"]) == (120_000, 8192)


@pytest.mark.parametrize(
    ("options", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": 1}, 3_600_000),
        ({"log.retention.hours": 1, "log.retention.minutes": 2}, 120_000),
        ({"log.retention.minutes": 2, "log.retention.ms": 3}, 3),
        ({"log.retention.hours": -1}, -1),
    ],
)
def test_the_finest_unit_counts(options, retention_ms):
    assert BrokerConfig(options).topic_values({})["retention.ms"] == retention_ms


def test_what_is_set_while_the_broker_runs_goes_over_what_it_was_started_with():
    config = BrokerConfig({"log.retention.ms": 1})
    config.set_dynamic(broker={"log.retention.ms": "2"}, default={"log.retention.ms": "3"})
    assert config.topic_values({})["retention.ms"] == 2
    config.set_dynamic(broker={}, default={"log.retention.ms": "3"})
    assert config.topic_values({})["retention.ms"] == 3
    config.set_dynamic(broker={}, default={})
    assert config.topic_values({})["retention.ms"] == 1


def test_what_a_folder_of_apache_kafka_sets_and_means_nothing_here_is_told_once(caplog):
    config = BrokerConfig()
    for _ in range(3):
        values = config.topic_values({"preallocate": "true", "remote.storage.enable": "true"})
    assert values["preallocate"] is False
    assert len(caplog.records) == 2


def test_a_topic_may_not_set_what_is_unknown_or_not_so():
    config = BrokerConfig()
    for wrong in ({"no.such": "1"}, {"preallocate": "true"}, {"retention.ms": None}):
        with pytest.raises(InvalidConfigurationError):
            config.check_topic(wrong)
    with pytest.raises(InvalidConfigurationError, match=r"did you mean retention\.ms"):
        config.check_topic({"retention.mss": "1"})
    with pytest.raises(InvalidConfigurationError, match="true or false, here only false"):
        config.check_topic({"preallocate": "true"})
    as_it_is = {"preallocate": "false", "unclean.leader.election.enable": "false"}
    assert config.check_topic(as_it_is) == as_it_is


def test_a_running_broker_takes_the_defaults_of_topics_only():
    config = BrokerConfig()
    assert config.check_dynamic({"log.retention.ms": "1"}) == {"log.retention.ms": "1"}
    with pytest.raises(InvalidRequestError, match=r"listeners, node\.id"):
        config.check_dynamic({"node.id": "2", "listeners": "PLAINTEXT://h:1"})
