"""A process that forks while its broker runs: the broker stays the parent's."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from broker_stub import Broker, running_broker
from broker_stub.node import Node
from pyclient.errors import IllegalStateError
from pyclient.protocol.messages.metadata import MetadataRequest
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.forked_child import told_by_child

TIMEOUT_SECONDS = 20


@contextmanager
def forked_child(act: Callable[[], None]) -> Iterator[None]:
    """A child that inherits all that is open here, acts, and then lives as long as the block."""
    acted, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            os.write(told, b"!")
            signal.pause()
        finally:
            os._exit(1)
    try:
        os.close(told)
        assert os.read(acted, 1) == b"!"
        yield
    finally:
        os.close(acted)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("end", [Broker.stop, Broker.kill])
def test_a_forked_child_leaves_the_broker_to_its_parent(end):
    with Broker() as broker, forked_child(lambda: end(broker)):
        assert is_served(broker)
        assert broker.data_dir.exists()


@pytest.mark.parametrize("end", [Broker.stop, Broker.kill])
def test_what_a_forked_child_inherits_keeps_neither_connections_nor_port_nor_folder(tmp_path, end):
    with Broker(tmp_path) as broker, RawClient(broker.port) as client:
        client.ask(MetadataRequest(topics=None), 9)
        with forked_child(lambda: None):
            end(broker)
            assert client.is_closed_by_peer()
            port = broker.port
            assert broker.start().port == port


def is_served(broker: Broker) -> bool:
    with RawClient(broker.port) as client:
        return len(client.ask(MetadataRequest(topics=None), 9).brokers) == 1


def test_to_a_forked_child_the_broker_does_not_run():
    with Broker() as broker:
        assert told_by_child(lambda: broker.running) == "False"
        assert broker.running


@pytest.mark.parametrize(
    "use",
    [
        lambda broker: broker.call(lambda node: node.node_id),
        lambda broker: broker.create_topic("orders"),
        lambda broker: broker.faults,
        Broker.start,
        Broker.restart,
        Broker.__enter__,
    ],
    ids=["call", "create_topic", "faults", "start", "restart", "with"],
)
def test_a_forked_child_is_told_at_once_whose_the_broker_is(monkeypatch, use):
    monkeypatch.setattr(running_broker, "_LOOK_AGAIN_SECONDS", 3600)  # it would wait for that long
    with Broker() as broker:
        assert broker.faults.standing == ()
        text = told_by_child(lambda: use(broker))
        assert f"runs in process {os.getpid()}, and this is a forked child" in text
        assert "use it from the process that started it" in text
        assert text.startswith(IllegalStateError.__name__)
        assert is_served(broker)


def test_a_forked_child_that_lets_go_of_the_broker_may_have_one_of_its_own():
    def start_again() -> tuple[bool, bool]:
        broker.stop()
        with broker:
            return broker.port != port, is_served(broker)

    with Broker() as broker:
        port = broker.port
        assert told_by_child(start_again) == "(True, True)"
        assert is_served(broker)


@pytest.mark.parametrize("end", [Broker.stop, Broker.kill])
def test_a_forked_child_does_not_wait_for_a_turn_that_its_parent_took(monkeypatch, end):
    broker = Broker().start()
    close, is_closing, may_close = Node.close, threading.Event(), threading.Event()

    def close_slowly(node: Node) -> None:
        is_closing.set()
        assert may_close.wait(TIMEOUT_SECONDS)
        close(node)

    monkeypatch.setattr(Node, "close", close_slowly)
    stopping = threading.Thread(target=broker.stop)
    stopping.start()
    try:
        assert is_closing.wait(TIMEOUT_SECONDS)
        folder = broker.data_dir

        def start_again() -> str:
            may_close.set()
            end(broker)
            with broker:
                return f"{broker.running}, {broker.data_dir != folder}, {is_served(broker)}"

        assert told_by_child(start_again) == "'True, True, True'"
        assert folder.exists()
    finally:
        may_close.set()
        stopping.join(TIMEOUT_SECONDS)
    assert not folder.exists()
