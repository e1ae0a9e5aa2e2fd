"""The producer's figures."""

import math

import pytest
from kafka.metrics.metrics_reporter import AbstractMetricsReporter

from pyclient.errors import (
    BufferExhaustedError,
    NotLeaderOrFollowerError,
    TopicAuthorizationError,
)
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


def test_a_broker_that_throttles_is_seen():
    world = SenderWorld(linger_ms=0)
    world.metrics.request_done(20, throttle_ms=15)
    world.metrics.request_done(20, throttle_ms=5)
    shown = figures(world)
    assert (shown["produce-throttle-time-avg"], shown["produce-throttle-time-max"]) == (10, 15)


class Reporter:
    """Remembers what it is told."""

    def __init__(self):
        self.told = []
        self.metrics = {}

    def configure(self, configs):
        self.told.append(("configure", configs["client.id"]))

    def init(self, metrics):
        self.told.append(("init", metrics))

    def metric_change(self, metric):
        self.metrics[metric.metric_name.name] = metric

    def metric_removal(self, metric):
        del self.metrics[metric.metric_name.name]

    def close(self):
        self.told.append(("close", None))


class TestReporters:
    def test_they_are_told_of_every_figure_and_can_read_it_at_any_time(self, log, new_producer):
        reporter = Reporter()
        producer = new_producer(metric_reporters=[reporter], client_id="till-3")
        assert reporter.metrics.keys() == producer.metrics()["producer-metrics"].keys()
        sent = reporter.metrics["record-send-total"]
        assert sent.metric_name.tags == {"client-id": "till-3"}
        assert sent.value() == 0
        producer.send("orders", b"v").get(5)
        assert sent.value() == 1
        producer.close()
        assert reporter.told == [("configure", "till-3"), ("init", []), ("close", None)]
        assert reporter.metrics == {}

    def test_a_class_of_kafka_pythons_interface_works_too(self, log, new_producer):
        made = []

        class Theirs(AbstractMetricsReporter):
            def __init__(self):
                self.names = []
                made.append(self)

            def init(self, metrics):
                pass

            def metric_change(self, metric):
                self.names.append(metric.metric_name.name)

            def metric_removal(self, metric):
                pass

            def configure(self, configs):
                pass

            def close(self):
                pass

        new_producer(metric_reporters=[Theirs])
        assert "record-send-rate" in made[0].names

    def test_what_they_raise_is_logged_and_harms_nobody(self, log, new_producer, caplog):
        class Clumsy:
            def metric_change(self, metric):
                raise RuntimeError("broke")

        good = Reporter()
        producer = new_producer(metric_reporters=[Clumsy(), good])
        producer.send("orders", b"v").get(5)
        assert "failed in metric_change()" in caplog.text
        assert good.metrics


def test_raw_figures_are_objects_by_name(log, producer):
    producer.send("orders", b"v").get(5)
    (total,) = (
        metric
        for name, metric in producer.metrics(raw=True).items()
        if (name.group, name.name) == ("producer-metrics", "record-send-total")
    )
    assert total.value() == 1


def test_without_metrics_nothing_is_kept_or_told(network, log, new_producer):
    reporter = Reporter()
    producer = new_producer(metrics_enabled=False, metric_reporters=[reporter])
    log.script.append(NotLeaderOrFollowerError.code)
    producer.send("orders", b"v").get(5)
    log.script.append(TopicAuthorizationError.code)
    assert producer.send("orders", b"v").exception is None
    producer.flush()
    assert producer.metrics() == producer.metrics(raw=True) == {}
    assert (reporter.told, reporter.metrics) == ([], {})


def test_the_windows_are_those_of_the_options(network, log, new_producer):
    producer = new_producer(metrics_num_samples=3, metrics_sample_window_ms=1_000)
    producer.send("orders", b"v").get(5)
    assert producer.metrics()["producer-metrics"]["record-send-rate"] > 0
    network.run_for(4_000)
    assert producer.metrics()["producer-metrics"]["record-send-rate"] == 0
