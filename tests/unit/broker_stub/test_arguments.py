"""Arguments of brokers and topics: mistakes raise clear errors."""

from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from broker_stub.arguments import given_topic
from broker_stub.metadata.topics import NEW_PARTITIONS_MAX
from pyclient.clock import ManualClock, SystemClock
from pyclient.errors import KafkaConfigurationError, PolicyViolationError


class BytesPath:
    """A path-like object whose path is bytes."""

    def __fspath__(self) -> bytes:
        return b"data"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"config": [("num.partitions", 3)]}, "config must be a dict .* not list"),
        ({"config": "num.partitions=3"}, "config must be a dict .* not str"),
        ({"config": ""}, "config must be a dict"),
        ({"config": {5: 3}}, "option names must be strings, not 5"),
        ({"host": 5}, "the host must be a str, such as '127.0.0.1', not int"),
        ({"host": b"localhost"}, "the host must be a str, .* not bytes"),
        ({"port": True}, "the port must be 0 to 65535, not True"),
        ({"port": None}, "the port must be .* not None"),
        ({"port": 9092.0}, "the port must be .* not 9092.0"),
        ({"port": "9092"}, "the port must be .* not '9092'"),
        ({"port": -1}, "the port must be .* not -1"),
        ({"port": 70_000}, "the port must be .* not 70000"),
        ({"data_dir": b"data"}, "a str or a Path, not bytes"),
        ({"data_dir": BytesPath()}, "a str or a Path, not bytes"),
        ({"data_dir": 5}, "a str or a Path, not int"),
        ({"data_dir": {"num.partitions": 3}}, "dict: pass options as config="),
        ({"data_dir": ""}, "empty string"),
        ({"data_dir": 5, "config": {"log.dirs": "a"}}, "not int"),
        ({"clock": SystemClock}, "is not a clock: pass ManualClock"),
        ({"clock": 5}, "5 is not a clock"),
    ],
)
def test_a_broker_is_not_made_of_something_else(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=words):
        Broker(**arguments)


def test_a_broker_is_made_of_what_is_allowed(tmp_path: Path) -> None:
    broker = Broker(tmp_path, 9092, {"num.partitions": 3}, ManualClock(), host="localhost")
    assert (broker.data_dir, broker.bootstrap_servers) == (tmp_path, "localhost:9092")
    assert Broker(str(tmp_path)).data_dir == tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": 5}, "the topic name must be a str, not int"),
        ({"name": None}, "the topic name must be a str, not NoneType"),
        ({"name": b"x"}, "the topic name must be a str, not bytes"),
        ({"partitions": "3"}, "the number of partitions must be an int, not '3'"),
        ({"partitions": 2.5}, "the number of partitions must be an int, not 2.5"),
        ({"partitions": None}, "the number of partitions must be an int, not None"),
        ({"partitions": True}, "the number of partitions must be an int, not True"),
        ({"config": "x"}, "config must be a dict of topic options, .* not str"),
        ({"config": {5: "x"}}, "option names must be strings, not 5"),
    ],
)
def test_a_topic_is_not_made_of_something_else(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        given_topic(**{"name": "orders", "partitions": 1, "config": None, **arguments})


def test_a_topic_has_no_more_partitions_than_a_client_could_ask_for() -> None:
    assert given_topic("orders", NEW_PARTITIONS_MAX, None).partitions == NEW_PARTITIONS_MAX
    for partitions in (NEW_PARTITIONS_MAX + 1, 2**31):
        with pytest.raises(PolicyViolationError, match="at most 10000 can be created"):
            given_topic("orders", partitions, None)
