"""The producer's figures."""

import math

import pytest

from pyclient.errors import BufferExhaustedError, TopicAuthorizationError
from tests.support.sender_world import SenderWorld


def figures(world):
    return world.metrics.snapshot()["producer-metrics"]


def test_before_anything_is_sent_averages_are_not_numbers_and_totals_are_zero():
    shown = figures(SenderWorld())
    assert math.isnan(shown["batch-size-avg"])
    assert shown["record-send-total"] == 0
    assert shown["requests-in-flight"] == 0


def test_batches_requests_and_times_are_counted():
    world = SenderWorld(linger_ms=5, batch_size=1000)
    for number in range(4):
        world.send(b"%d" % number, number % 2)
    world.clock.advance(5)
    world.poll()
    assert figures(world)["requests-in-flight"] == 2
    world.clock.advance(30)
    for node in (1, 2):
        world.serve(node)
        world.answer(node)
    shown = figures(world)
    assert shown["record-send-total"] == 4
    assert shown["request-total"] == 2
    assert shown["records-per-request-avg"] == 2
    assert shown["record-queue-time-avg"] == shown["record-queue-time-max"] == 5
    assert shown["request-latency-avg"] == shown["request-latency-max"] == 30
    assert shown["compression-rate-avg"] == 1
    assert 60 < shown["batch-size-avg"] == shown["batch-size-max"] < 100
    assert shown["byte-total"] == 2 * shown["batch-size-avg"]
    assert shown["requests-in-flight"] == 0


def test_errors_retries_and_waits_are_counted():
    world = SenderWorld(batch_size=300, memory=300)
    world.send(b"a", 0)
    world.accumulator.seal_all()
    world.poll()
    world.serve(1, 19)
    world.answer(1)
    world.clock.advance(50)
    world.poll()
    world.serve(1, TopicAuthorizationError.code)
    world.answer(1)
    world.send(b"b", 0)
    with pytest.raises(BufferExhaustedError):
        world.accumulator.append(world.accumulator.topics["t"], 1, 1, None, b"c", (), 3_000)
    shown = figures(world)
    assert (shown["record-retry-total"], shown["record-error-total"]) == (1, 1)
    assert shown["buffer-exhausted-total"] == 1
    assert shown["bufferpool-wait-ratio"] == 3_000 / 30_000
    assert (shown["buffer-total-bytes"], shown["buffer-available-bytes"]) == (300, 0)


def test_rates_are_about_the_last_minute():
    world = SenderWorld(linger_ms=0)
    world.send(b"a", 0)
    world.settle()
    assert figures(world)["record-send-rate"] > 0
    for _ in range(3):
        world.clock.advance(30_000)
        world.poll()
    assert figures(world)["record-send-rate"] == 0
    assert figures(world)["record-send-total"] == 1
