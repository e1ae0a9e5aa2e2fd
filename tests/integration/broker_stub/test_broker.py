"""A broker's life: start, stop, kill, restart."""

import os
import socket
import subprocess
import sys

import pytest

from broker_stub import Broker
from broker_stub.net.server import PortInUseError
from pyclient.errors import (
    IllegalStateError,
    InvalidTopicError,
    KafkaConfigurationError,
    KafkaStorageError,
    PolicyViolationError,
    TopicExistsError,
)
from pyclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.records.batch import iter_batches
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request
from tests.support.server_process import ROOT


def produce(broker: Broker, *values: bytes) -> int:
    with RawClient(broker.port) as client:
        response = client.ask(produce_request("orders", batch(*values)), 9)
    (outcome,) = response.responses[0].partition_responses
    assert outcome.error_code == 0
    return outcome.base_offset


def values_in(broker: Broker) -> list[bytes | None]:
    request = FetchRequest(
        topics=[
            FetchTopic(
                topic="orders",
                partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)],
            )
        ]
    )
    with RawClient(broker.port) as client:
        data = client.ask(request, 12).responses[0].partitions[0]
    return [record.value for one in iter_batches(data.records) for record in one.decode()]


def test_a_broker_serves_within_its_with_block_and_leaves_nothing():
    with Broker() as broker:
        folder = broker.data_dir
        assert broker.running
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        with RawClient(broker.port) as client:
            (node,) = client.ask(MetadataRequest(topics=None), 9).brokers
        assert (node.host, node.port) == ("127.0.0.1", broker.port)
    assert not broker.running
    assert not folder.exists()


@pytest.mark.parametrize("how", [Broker.restart, lambda broker: (broker.kill(), broker.start())])
def test_records_and_port_outlive_a_restart_and_a_kill(how):
    with Broker() as broker:
        broker.create_topic("orders")
        port = broker.port
        assert produce(broker, b"a") == 0
        how(broker)
        assert broker.port == port
        assert values_in(broker) == [b"a"]
        assert produce(broker, b"b") == 1


def test_a_killed_broker_is_recovered_by_restart():
    with Broker() as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
        broker.kill()
        assert not broker.running
        broker.restart()
        assert values_in(broker) == [b"a"]


def test_a_start_that_fails_leaves_no_temporary_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Broker(tmp_path / "data") as broker, pytest.raises(PortInUseError):
        Broker(port=broker.port).start()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_killed_broker_leaves_its_temporary_folder_to_the_end_of_the_process(tmp_path):
    program = "from broker_stub import Broker; b = Broker().start(); b.kill(); print(b.data_dir)"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_no_place_for_a_temporary_folder_is_told_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with pytest.raises(KafkaStorageError, match=r"temporary folder in .*nowhere"):
        Broker().start()


def test_data_stays_in_a_folder_that_was_given(tmp_path):
    with Broker(tmp_path) as broker:
        broker.create_topic("orders")
        produce(broker, b"a")
    assert (tmp_path / "orders-0" / "00000000000000000000.log").stat().st_size > 0
    with Broker(tmp_path) as broker:
        assert values_in(broker) == [b"a"]


def test_a_folder_is_found_again_wherever_the_process_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Broker("data") as broker:
        broker.create_topic("orders")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        broker.restart()
        assert broker.data_dir == tmp_path / "data"
        assert broker.call(lambda node: node.image.topic("orders")) is not None
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_serves_one_broker_at_a_time(tmp_path):
    with Broker(tmp_path), pytest.raises(KafkaStorageError, match=str(tmp_path)):
        Broker(tmp_path).start()


def test_a_port_serves_one_broker_at_a_time():
    with Broker() as first, pytest.raises(PortInUseError, match=f"port {first.port}"):
        Broker(port=first.port).start()


def test_a_broker_starts_once_at_a_time():
    with Broker() as broker, pytest.raises(IllegalStateError, match="already"):
        broker.start()


def test_stop_may_come_twice_or_without_a_start():
    broker = Broker()
    broker.stop()
    broker.start()
    broker.stop()
    broker.stop()


def test_a_stopped_broker_starts_again_empty_on_its_port():
    broker = Broker().start()
    broker.create_topic("orders")
    port = broker.port
    broker.stop()
    with broker:
        assert broker.port == port
        broker.create_topic("orders")


def test_a_misspelt_option_is_refused_with_the_nearest_name():
    with pytest.raises(KafkaConfigurationError, match=r"did you mean 'num\.partitions'"):
        Broker(config={"num.partition": 3})


def test_a_wrong_value_is_refused_by_name():
    with pytest.raises(KafkaConfigurationError, match=r"num\.partitions.*at least 1"):
        Broker(config={"num.partitions": 0})


def test_options_of_a_topic_have_their_types_in_python():
    options = {"cleanup.policy": ["compact", "delete"], "preallocate": False, "retention.ms": 1000}
    with Broker() as broker:
        broker.create_topic("orders", config=options)
        assert broker.call(lambda node: node.image.topic_config("orders")) == {
            "cleanup.policy": "compact,delete",
            "preallocate": "false",
            "retention.ms": "1000",
        }


def test_topics_are_created_from_any_thread_and_errors_are_raised():
    with Broker() as broker:
        broker.create_topic("orders", partitions=3, config={"retention.ms": 1000})
        assert broker.call(lambda node: len(node.image.topic("orders").partitions)) == 3
        with pytest.raises(TopicExistsError, match="orders"):
            broker.create_topic("orders")
        with pytest.raises(InvalidTopicError):
            broker.create_topic("no/slash")
        with pytest.raises(TypeError, match="the topic name must be a str"):
            broker.create_topic(None)
        with pytest.raises(PolicyViolationError, match="at most 10000"):
            broker.create_topic("large", partitions=2**31)


def test_a_call_returns_or_raises_what_the_function_does():
    with Broker() as broker:
        assert broker.call(lambda node: node.node_id) == 1
        with pytest.raises(ZeroDivisionError):
            broker.call(lambda _: 1 // 0)
    with pytest.raises(IllegalStateError, match="not running"):
        broker.call(lambda _: None)


def test_a_start_that_fails_frees_the_port(tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=99\n")
    with Broker() as other:
        port = other.port
    broker = Broker(tmp_path, port=port)
    with pytest.raises(KafkaStorageError):
        broker.start()
    assert not broker.running
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
