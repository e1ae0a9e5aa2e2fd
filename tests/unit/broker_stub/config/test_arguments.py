"""What a broker and its topics are made of: mistakes are told in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_stub import Broker
from broker_stub.config.arguments import given_topic
from broker_stub.metadata.topics import NEW_PARTITIONS_MAX
from pyclient.clock import ManualClock, SystemClock
from pyclient.errors import KafkaConfigurationError, PolicyViolationError


class BytesPath:
    """A path of bytes: Python has such."""

    def __fspath__(self) -> bytes:
        return b"data"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"config": [("num.partitions", 3)]}, "config is a dict .* not list"),
        ({"config": "num.partitions=3"}, "config is a dict .* not str"),
        ({"config": ""}, "config is a dict"),
        ({"config": {5: 3}}, "5 is no option: they are named by strings"),
        ({"host": 5}, "the host is a str, as '127.0.0.1', not int"),
        ({"host": b"localhost"}, "the host is a str, .* not bytes"),
        ({"port": True}, "True is no port: 0 to 65535 are"),
        ({"port": None}, "None is no port"),
        ({"port": 9092.0}, "9092.0 is no port"),
        ({"port": "9092"}, "'9092' is no port"),
        ({"port": -1}, "-1 is no port"),
        ({"port": 70_000}, "70000 is no port"),
        ({"data_dir": b"data"}, "a str or a Path, not bytes"),
        ({"data_dir": BytesPath()}, "a str or a Path, not bytes"),
        ({"data_dir": 5}, "a str or a Path, not int"),
        ({"data_dir": {"num.partitions": 3}}, "dict: options are given as config="),
        ({"data_dir": ""}, "no name"),
        ({"data_dir": 5, "config": {"log.dirs": "a"}}, "not int"),
        ({"clock": SystemClock}, "is no clock: ManualClock"),
        ({"clock": 5}, "5 is no clock"),
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
        ({"name": 5}, "a topic's name is a str, not int"),
        ({"name": None}, "a topic's name is a str, not NoneType"),
        ({"name": b"x"}, "a topic's name is a str, not bytes"),
        ({"partitions": "3"}, "the number of partitions is an int, not '3'"),
        ({"partitions": 2.5}, "the number of partitions is an int, not 2.5"),
        ({"partitions": None}, "the number of partitions is an int, not None"),
        ({"partitions": True}, "the number of partitions is an int, not True"),
        ({"config": "x"}, "config is a dict of the topic's options, .* not str"),
        ({"config": {5: "x"}}, "5 is no option: they are named by strings"),
    ],
)
def test_a_topic_is_not_made_of_something_else(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        given_topic(**{"name": "orders", "partitions": 1, "config": None, **arguments})


def test_a_topic_has_no_more_partitions_than_a_client_could_ask_for() -> None:
    assert given_topic("orders", NEW_PARTITIONS_MAX, None).partitions == NEW_PARTITIONS_MAX
    for partitions in (NEW_PARTITIONS_MAX + 1, 2**31):
        with pytest.raises(PolicyViolationError, match="Excessively large number of partitions"):
            given_topic("orders", partitions, None)
