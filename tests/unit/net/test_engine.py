"""Engines with a thread and sockets: against servers that are no brokers, forks, the end."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from pyclient.errors import (
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RequestTimedOutError,
)
from pyclient.protocol.messages.metadata import MetadataRequest
from tests.support.forked_child import told_by_child
from tests.support.threads import run_on_threads, switching


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def servers(listener):
    return f"127.0.0.1:{listener.getsockname()[1]}"


def serve_once(listener, answer):
    """Accept connections and answer each first request with `answer`, until it is closed."""

    def serve():
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.recv(4_096)
                peer.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


def bootstrap_error(engine, timeout_ms=300):
    engine.start()
    with pytest.raises(NoBrokersAvailable) as caught:
        engine.bootstrap(timeout_ms)
    return str(caught.value)


def test_nothing_listens(listener, new_real_engine):
    listener.close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = bootstrap_error(new_real_engine(bootstrap_servers=f"127.0.0.1:{port}"))
    assert f"127.0.0.1:{port}: could not connect (connection refused)" in text


def test_a_web_server_listens(listener, new_real_engine):
    serve_once(listener, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    text = bootstrap_error(new_real_engine(bootstrap_servers=servers(listener)), 1_000)
    assert "this is a web server, not a Kafka broker" in text


def test_a_tls_listener_listens(listener, new_real_engine):
    serve_once(listener, bytes.fromhex("15030300020250"))
    text = bootstrap_error(new_real_engine(bootstrap_servers=servers(listener)), 1_000)
    assert "this listener needs security_protocol SSL" in text


def test_something_listens_and_says_nothing(listener, new_real_engine):
    text = bootstrap_error(new_real_engine(bootstrap_servers=servers(listener)))
    assert "connected, but no answer to the first request (ApiVersions)" in text


def test_a_closed_engine_leaves_no_thread_and_no_socket(listener, new_real_engine):
    threads, files = set(threading.enumerate()), open_files()
    engine = new_real_engine(bootstrap_servers=servers(listener))
    engine.start()
    peer, _ = listener.accept()
    engine.close(timeout_ms=5_000)
    peer.close()
    assert set(threading.enumerate()) == threads
    assert open_files() <= files


def open_files():
    return sorted(os.listdir("/proc/self/fd"))


def test_an_engine_that_was_never_started_closes_too(new_real_engine):
    files = open_files()
    engine = new_real_engine()
    engine.close(timeout_ms=5_000)
    assert open_files() <= files


def test_closing_twice_does_no_harm(new_real_engine):
    engine = new_real_engine()
    engine.start()
    engine.close(timeout_ms=5_000)
    engine.close(timeout_ms=5_000)
    with pytest.raises(IllegalStateError, match=r"send\(\): the client cannot be used, it is clo"):
        engine.check_usable("send()")


def test_a_callback_that_holds_the_loop_does_not_hold_up_close(new_real_engine, caplog):
    engine = new_real_engine()
    engine.start()
    held, release = threading.Event(), threading.Event()
    engine.submit(lambda: (held.set(), release.wait(30)))
    assert held.wait(10)
    engine.close(timeout_ms=20)
    assert "did not end within 20 ms" in caplog.text
    release.set()
    assert engine._io_thread.ended.wait(10_000)


def test_a_request_that_was_given_up_while_the_loop_was_held_is_not_sent_later(
    new_real_engine, listener, monkeypatch
):
    monkeypatch.setattr("pyclient.net.engine._LOOP_MARGIN_MS", 10)
    engine = new_real_engine(bootstrap_servers=servers(listener))
    engine.start()
    held, release = threading.Event(), threading.Event()
    engine.submit(lambda: (held.set(), release.wait(30)))
    assert held.wait(10)
    sent = []
    monkeypatch.setattr(engine.network, "send", lambda *arguments: sent.append(arguments))
    with pytest.raises(RequestTimedOutError, match="no answer to <MetadataRequest"):
        engine.request(MetadataRequest(topics=[]), None, timeout_ms=10)
    release.set()
    engine.call(lambda: None, timeout_ms=10_000)  # the loop has got past it
    assert [one for one, _ in sent if one.timeout_ms == 10] == []


def test_closing_inside_a_callback_is_refused(new_real_engine):
    engine = new_real_engine()
    engine.start()
    with pytest.raises(IllegalStateError, match=r"close\(\) would block"):
        engine.call(lambda: engine.close(timeout_ms=5_000), timeout_ms=5_000)


def test_listeners_are_told_when_the_engine_becomes_unusable(new_real_engine):
    engine = new_real_engine()
    flags = []
    engine.on_unusable(lambda: flags.append("cleared"))
    engine.start()
    engine.check_usable("send()")
    assert not flags
    engine.close(timeout_ms=5_000)
    assert flags == ["cleared"]


def test_in_a_forked_child_every_use_is_an_error_at_once(listener, new_real_engine):
    engine = new_real_engine(bootstrap_servers=servers(listener))
    engine.start()
    waiter = engine.waiter()
    text = told_by_child(lambda: engine.check_usable("send()"))
    assert f"made in process {os.getpid()}, and this is a forked child" in text
    assert "make a new client here" in text
    assert "IllegalStateError" in told_by_child(lambda: waiter.wait(60_000))
    assert "IllegalStateError" in told_by_child(
        lambda: engine.metadata.wait_for_topic("orders", 60_000)
    )
    assert told_by_child(lambda: engine.close(60_000)) == "None"
    engine.check_usable("send()")  # the parent's still works


def test_a_program_that_closes_nothing_ends_all_the_same():
    program = """
from pyclient.config.common import COMMON_KEYS
from pyclient.config.definition import ConfigDefinition
from pyclient.net.engine import Engine
config = ConfigDefinition("a client", COMMON_KEYS).parse({"bootstrap_servers": "127.0.0.1:1"})
Engine(config, client_id="test").start()
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"done\n"
    assert b"Traceback" not in done.stderr


def test_many_engines_open_and_close_without_a_leak(listener, new_real_engine):
    listener.listen(200)
    files = open_files()
    engines = [new_real_engine(bootstrap_servers=servers(listener)) for _ in range(50)]
    for engine in engines:
        engine.start()
    for engine in engines:
        with pytest.raises(KafkaTimeoutError):
            engine.metadata.wait_for_topic("orders", timeout_ms=0)
        engine.close(timeout_ms=5_000)
    assert open_files() <= files


def test_no_wake_up_is_lost_however_threads_take_turns(new_real_engine):
    engine = new_real_engine(bootstrap_servers="127.0.0.1:1", reconnect_backoff_ms=60_000)
    engine.start()
    results: list[int] = []

    def keep_calling(_thread):
        # A lost wake-up would leave a call to its time-out.
        results.append(sum(engine.call(lambda: 1, timeout_ms=20_000) for _ in range(300)))

    with switching():
        run_on_threads(4, keep_calling)
    assert results == [300] * 4
