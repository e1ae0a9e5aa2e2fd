"""The engine against our broker: its restarts, faults and older versions, and idling."""

import os
import threading

import pytest

from broker_stub import Broker
from pyclient.config.common import COMMON_KEYS
from pyclient.config.definition import ConfigDefinition
from pyclient.errors import KafkaConnectionError, KafkaTimeoutError, RequestTimedOutError
from pyclient.net.engine import Engine
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.describe_cluster import DescribeClusterRequest
from pyclient.protocol.messages.metadata import MetadataRequest

COMMON = ConfigDefinition("a client", COMMON_KEYS)


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


@pytest.fixture
def engine(broker):
    engine = new_engine(broker)
    engine.bootstrap(timeout_ms=10_000)
    yield engine
    engine.close(timeout_ms=10_000)


def new_engine(broker, **options):
    config = COMMON.parse({"bootstrap_servers": broker.bootstrap_servers, **options})
    engine = Engine(config, client_id="test")
    engine.start()
    return engine


def test_a_topic_is_found_and_created_by_asking(broker, engine):
    broker.create_topic("orders", partitions=3)
    found = engine.metadata.wait_for_topic("orders", timeout_ms=10_000)
    assert found.available == (0, 1, 2)
    assert engine.metadata.wait_for_topic("fresh", timeout_ms=10_000).name == "fresh"


def test_without_auto_creation_the_error_names_the_topic_and_the_remedy():
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        engine = new_engine(broker)
        with pytest.raises(KafkaTimeoutError, match=r"'oders' .* does not exist, .*create_topics"):
            engine.metadata.wait_for_topic("oders", timeout_ms=500)
        engine.close(timeout_ms=10_000)


def test_a_broker_that_comes_back_on_its_port_is_used_again(broker, engine):
    assert engine.request(DescribeClusterRequest(), 1, timeout_ms=10_000)
    broker.kill()
    with pytest.raises(KafkaConnectionError):
        engine.request(DescribeClusterRequest(), 1, timeout_ms=10_000)
    broker.start()
    assert engine.request(DescribeClusterRequest(), None, timeout_ms=10_000)


def test_an_answer_that_comes_too_late_ends_its_connection_only(broker, engine):
    fault = broker.faults.delay(DescribeClusterRequest, 60_000)
    with pytest.raises(RequestTimedOutError, match="no response to DescribeClusterRequest"):
        engine.request(DescribeClusterRequest(), 1, timeout_ms=100)
    fault.cancel()
    assert engine.request(DescribeClusterRequest(), 1, timeout_ms=10_000)


def test_an_answer_cut_at_any_byte_fails_its_request_and_nothing_else(broker, engine):
    whole = 60  # the answer of a cluster of one is about as long
    for cut_at in range(0, whole, 7):
        broker.faults.cut(DescribeClusterRequest, after_bytes=cut_at)
        with pytest.raises(KafkaConnectionError, match="the connection broke"):
            engine.request(DescribeClusterRequest(), 1, timeout_ms=10_000)
    assert engine.request(DescribeClusterRequest(), 1, timeout_ms=10_000)


@pytest.mark.parametrize("cut_at", [0, 3, 4, 9, 100])
def test_a_greeting_cut_at_any_byte_is_repeated(broker, cut_at):
    broker.faults.cut(ApiVersionsRequest, after_bytes=cut_at)
    engine = new_engine(broker)
    engine.bootstrap(timeout_ms=10_000)
    engine.close(timeout_ms=10_000)


def test_an_older_broker_is_spoken_to_in_its_versions(broker):
    broker.faults.hide(ApiVersionsRequest, above=2)
    broker.faults.hide(MetadataRequest, above=5)
    broker.create_topic("orders", partitions=2)
    engine = new_engine(broker)
    found = engine.metadata.wait_for_topic("orders", timeout_ms=10_000)
    assert len(found.partitions) == 2
    assert found.topic_id == bytes(16)  # version 5 has none
    assert {one.api_version for one in broker.requests.received(MetadataRequest)} == {5}
    engine.close(timeout_ms=10_000)


def test_an_idle_engine_sleeps(engine):
    engine.metadata.wait_for_topic("orders", timeout_ms=10_000)
    engine.waiter().wait(300)  # what was going on comes to its end
    before = voluntary_switches(engine)
    engine.waiter().wait(1_000)
    assert voluntary_switches(engine) - before <= 4  # of which the look itself takes some


def voluntary_switches(engine):
    thread_id = engine.call(threading.get_native_id, timeout_ms=10_000)
    with open(f"/proc/self/task/{thread_id}/status") as status:
        (line,) = [line for line in status if line.startswith("voluntary_ctxt_switches")]
    return int(line.split()[1])


def test_many_engines_open_work_and_close_without_a_leak():
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with Broker() as broker:
        engines = [new_engine(broker) for _ in range(50)]
        for engine in engines:
            engine.bootstrap(timeout_ms=30_000)
            assert engine.request(DescribeClusterRequest(), None, timeout_ms=30_000)
        for engine in engines:
            engine.close(timeout_ms=10_000)
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= files
