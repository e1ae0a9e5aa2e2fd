"""Several threads start, stop and use one broker at once, its own threads included."""

import sys
import threading
from collections.abc import Callable
from functools import partial

import pytest

from broker_stub import Broker
from broker_stub.node import Node
from pyclient.clock import ManualClock
from pyclient.errors import IllegalStateError
from pyclient.protocol.messages.metadata import MetadataRequest
from tests.integration.broker_stub.raw_client import RawClient

TIMEOUT_SECONDS = 20


def at_once(*acts: Callable[[], object]) -> list[BaseException]:
    """Run each function on its own thread and wait; returns the exceptions raised."""
    barrier = threading.Barrier(len(acts))
    raised: list[BaseException] = []

    def run(act: Callable[[], object]) -> None:
        barrier.wait(TIMEOUT_SECONDS)
        try:
            act()
        except BaseException as error:  # noqa: BLE001  returned to the caller
            raised.append(error)

    threads = [threading.Thread(target=run, args=(act,), daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)
        assert not thread.is_alive(), "it waits for ever"
    return raised


def test_threads_that_stop_a_broker_at_once_do_it_once():
    for _ in range(5):
        broker = Broker().start()
        folder = broker.data_dir
        assert at_once(*[broker.stop] * 8) == []
        assert not broker.running
        assert not folder.exists()


def test_threads_that_end_and_restart_a_broker_take_turns():
    with Broker() as broker:
        port = broker.port
        for _ in range(5):
            assert at_once(*[broker.stop, broker.kill, broker.restart] * 2) == []
        broker.restart()
        broker.create_topic("orders")
        assert broker.port == port
        folder = broker.data_dir
    assert not folder.exists()


def test_of_threads_that_start_a_broker_at_once_one_does():
    broker = Broker()
    raised = at_once(*[broker.start] * 4)
    assert [type(error) for error in raised] == [IllegalStateError] * 3
    assert broker.running
    broker.stop()


def test_threads_that_ask_for_faults_at_once_get_the_same():
    with Broker() as broker:
        seen = []
        assert at_once(*[lambda: seen.append(broker.faults)] * 4, broker.restart) == []
        assert len(set(seen)) == 1
        broker.faults.drop(MetadataRequest)
        with RawClient(broker.port) as client:
            client.send(MetadataRequest(topics=None), 9)
            assert client.is_closed_by_peer()


USES: dict[str, Callable[[Broker], object]] = {
    "call": lambda broker: broker.call(lambda node: node),
    "create_topic": lambda broker: broker.create_topic("orders"),
    "faults": lambda broker: broker.faults,
    "start": Broker.start,
    "stop": Broker.stop,
    "kill": Broker.kill,
    "restart": Broker.restart,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_what_would_make_the_serving_thread_wait_for_itself_is_refused_there(use):
    with Broker() as broker:
        folder = broker.data_dir
        with pytest.raises(IllegalStateError, match="serving thread, which would wait for itself"):
            broker.call(lambda node: use(broker))
        assert broker.running
        assert folder.exists()
        broker.create_topic("orders")


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_stop_that_waits_for_the_serving_thread_is_not_waited_for_there(use):
    broker = Broker().start()
    entered = threading.Event()
    raised: list[BaseException] = []

    def use_while_it_is_stopped(node: Node) -> None:
        entered.set()
        while broker.running:
            pass
        with pytest.raises(IllegalStateError, match="serving thread") as caught:
            use(broker)
        raised.append(caught.value)

    def stop() -> None:
        assert entered.wait(TIMEOUT_SECONDS)
        broker.stop()

    assert at_once(partial(broker.call, use_while_it_is_stopped), stop) == []
    assert len(raised) == 1
    assert not broker.running


def test_a_signal_handler_that_stops_a_broker_while_it_stops_changes_nothing(monkeypatch, tmp_path):
    broker = Broker(tmp_path).start()
    close = Node.close

    def interrupted(node: Node) -> None:
        broker.stop()
        broker.kill()
        with pytest.raises(IllegalStateError, match="in the middle of starting or stopping"):
            broker.restart()
        close(node)

    monkeypatch.setattr(Node, "close", interrupted)
    assert at_once(broker.stop) == []
    assert not broker.running
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    monkeypatch.undo()
    broker.start().stop()


def test_a_signal_handler_that_stops_a_broker_while_it_starts_has_its_way(monkeypatch, tmp_path):
    opened = Node.open

    def interrupted(node: Node, endpoints: object) -> None:
        broker.stop()
        opened(node, endpoints)

    broker = Broker(tmp_path)
    monkeypatch.setattr(Node, "open", interrupted)
    assert at_once(broker.start) == []
    assert not broker.running
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.parametrize("step", ["open", "close"])
def test_ctrl_c_while_a_broker_starts_or_stops_leaves_its_folder_to_the_next(
    monkeypatch, tmp_path, step
):
    broker = Broker(tmp_path, clock=ManualClock())
    act = getattr(Node, step)

    def interrupted(node: Node, *arguments: object) -> None:
        if step == "open":
            act(node, *arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Node, step, interrupted)
        with pytest.raises(KeyboardInterrupt), broker:
            pass
    assert not broker.running
    with broker, Broker(tmp_path / "another"):
        broker.create_topic("orders")


def test_what_a_call_raises_is_its_callers_also_where_it_would_end_a_thread():
    with Broker() as broker:
        with pytest.raises(SystemExit):
            broker.call(lambda node: sys.exit(3))
        with pytest.raises(pytest.fail.Exception, match="not what was expected"):
            broker.call(lambda node: pytest.fail("not what was expected"))
        broker.create_topic("orders")


@pytest.fixture
def dead_broker() -> Broker:
    broker = Broker().start()
    broker.create_topic("orders")
    serving = broker.call(lambda node: threading.current_thread())
    broker._running()._server.call_soon(sys.exit)  # ends it, as a mistake in its loop would
    serving.join(TIMEOUT_SECONDS)
    return broker


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_broker_whose_serving_thread_has_ended_by_itself_does_not_run(dead_broker):
    assert not dead_broker.running
    with pytest.raises(IllegalStateError, match="serving thread has died"):
        dead_broker.create_topic("clicks")
    folder = dead_broker.data_dir
    dead_broker.stop()
    assert not folder.exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("how", [Broker.start, Broker.restart, Broker.__enter__])
def test_a_broker_whose_serving_thread_has_ended_by_itself_can_be_started_again(dead_broker, how):
    assert dead_broker.faults.standing == ()
    port = dead_broker.port
    how(dead_broker)
    assert dead_broker.running
    assert dead_broker.port == port
    assert dead_broker.call(lambda node: node.image.topic("orders")) is not None
    dead_broker.stop()
