"""Forks, and the end of the process."""

import os
import subprocess
import sys
import threading

import pytest

from pyclient import KafkaProducer
from pyclient.errors import IllegalStateError

SEND_AND_LEAVE = """
import sys
from pyclient import KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
for number in range(100):
    producer.send("orders", b"%d" % number)
"""

SEND_INTO_THE_VOID = """
import sys
import pyclient.producer.core as core
from broker_stub import Broker
from pyclient import KafkaProducer

core._EXIT_MS = 300
broker = Broker().start()
producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
producer.send("orders", b"v").get(10)
broker.kill()
producer.send("orders", b"lost")
"""


def run(program, *args):
    return subprocess.run(
        [sys.executable, "-c", program, *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_records_that_nobody_flushed_are_sent_at_the_end_of_the_program(kafka_broker, written):
    kafka_broker.create_topic("orders", partitions=1)
    ended = run(SEND_AND_LEAVE, kafka_broker.bootstrap_servers)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert len(written("orders")) == 100


def test_the_end_is_bounded_when_the_broker_is_gone_and_says_what_is_lost():
    ended = run(SEND_INTO_THE_VOID)
    assert ended.returncode == 0
    assert "closing with 1 unacknowledged batches after 0.3 s" in ended.stderr


def test_a_producer_that_is_dropped_sends_what_it_has_and_ends(kafka_broker, written):
    kafka_broker.create_topic("orders", partitions=1)
    before = set(threading.enumerate())
    producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers, linger_ms=60_000)
    future = producer.send("orders", b"v")
    with pytest.warns(ResourceWarning, match="was not closed"):
        del producer
    assert future.get(timeout=10).offset == 0
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_a_forked_child_every_call_says_so_at_once(kafka_broker, new_producer):
    producer = new_producer(linger_ms=60_000)
    done = producer.send("orders", b"v")
    producer.flush(timeout=10)
    pending = producer.send("orders", b"w")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # Only `os._exit` may end the child: pytest's stack is not its own.
        failures = []
        try:
            calls = {
                "send": lambda: producer.send("orders", b"x"),
                "flush": producer.flush,
                "get": lambda: pending.get(timeout=5),
                "partitions_for": lambda: producer.partitions_for("orders"),
            }
            for name, call in calls.items():
                try:
                    call()
                    failures.append(f"{name} did not raise")
                except IllegalStateError as error:
                    if "forked child" not in str(error):
                        failures.append(f"{name}: {error}")
            if done.get(timeout=0).offset != 0:
                failures.append("a known outcome is lost")
            producer.close(timeout=5)
        except BaseException as error:  # noqa: BLE001
            failures.append(repr(error))
        os.write(writer, "; ".join(failures).encode() or b"ok")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"ok"
    os.waitpid(child, 0)
    producer.flush(timeout=10)
    assert pending.get(timeout=0).offset == 1  # the parent is as it was
