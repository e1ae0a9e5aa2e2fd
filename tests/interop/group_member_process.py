"""A group member in a process of its own, by our client or by another one.

`python -m tests.interop.group_member_process LIBRARY JSON` subscribes, prints each poll's records
and then commits them synchronously. A line of standard output is an event: `assigned`, `records`
or `failed`. SIGTERM makes it leave the group, SIGKILL and SIGSTOP do what they always do.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

POLL_SECONDS = 0.1
HANGS_SECONDS = 8.0
_leaving = False


def leave(*_: object) -> None:
    global _leaving
    _leaving = True


def report(event: str, content: object) -> None:
    """Print a line in one call: a process that is killed prints all of it or nothing."""
    os.write(1, (json.dumps([event, content]) + "\n").encode())


class Reporter:
    """Prints what changed."""

    def __init__(self) -> None:
        self._assigned: list[list[Any]] | None = None

    def assigned(self, partitions: Iterable[Any]) -> None:
        """Print the assignment, if it is another one."""
        now = sorted([one.topic, one.partition] for one in partitions)
        if now != self._assigned:
            self._assigned = now
            report("assigned", now)


def new_consumer(
    kind: Callable[..., Any], options: dict[str, Any], assignors: Sequence[Any], **more: Any
) -> Any:
    """A subscribed consumer of one of the libraries that have kafka-python's arguments."""
    consumer = kind(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        group_instance_id=options["instance_id"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=options["heartbeat_ms"],
        max_poll_interval_ms=options["rebalance_ms"],
        metadata_max_age_ms=options["metadata_ms"],
        partition_assignment_strategy=assignors,
        **more,
    )
    if options["pattern"]:
        consumer.subscribe(pattern=options["pattern"])
    else:
        consumer.subscribe([options["topic"]])
    return consumer


def report_records(found: Mapping[Any, Iterable[Any]]) -> None:
    report("records", [one.value.decode() for many in found.values() for one in many])


def run_ours(options: dict[str, Any]) -> None:
    """pyclient. Several assignors, separated by commas, are preferred in that order."""
    from pyclient import KafkaConsumer
    from pyclient.errors import KafkaError

    reporter = Reporter()
    with new_consumer(KafkaConsumer, options, options["assignor"].split(",")) as consumer:
        while not _leaving:
            found = consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
            reporter.assigned(consumer.assignment())
            if not found:
                continue
            report_records(found)
            with suppress(KafkaError):  # in a rebalance: their next owner reads them again
                consumer.commit()


def run_confluent(options: dict[str, Any]) -> None:
    """confluent-kafka, which is librdkafka."""
    from confluent_kafka import Consumer, KafkaException

    config = {
        "bootstrap.servers": options["bootstrap"],
        "group.id": options["group"],
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": options["session_ms"],
        "heartbeat.interval.ms": options["heartbeat_ms"],
        "max.poll.interval.ms": max(options["session_ms"], options["rebalance_ms"]),
        "topic.metadata.refresh.interval.ms": options["metadata_ms"],
        "partition.assignment.strategy": options["assignor"],
    }
    if options["instance_id"]:
        config["group.instance.id"] = options["instance_id"]
    consumer = Consumer(config)
    consumer.subscribe([options["pattern"] or options["topic"]])
    reporter = Reporter()
    try:
        while not _leaving:
            found = consumer.consume(500, POLL_SECONDS)
            good = [one for one in found if one.error() is None]
            reporter.assigned(consumer.assignment())
            if not good:
                continue
            report("records", [one.value().decode() for one in good])
            with suppress(KafkaException):  # in a rebalance: their next owner reads them again
                consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def run_kafka_python(options: dict[str, Any]) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    assignor = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }[options["assignor"]]
    reporter = Reporter()
    while not _leaving:
        consumer = new_consumer(KafkaConsumer, options, [assignor])
        _poll_kafka_python(consumer, reporter)
        consumer.close()


def _poll_kafka_python(consumer: Any, reporter: Reporter) -> None:
    """Read until it is time to leave, or the consumer hangs.

    kafka-python 3.0.12 forgets a join that completes just between two polls, and then waits for
    ever: seen on Apache Kafka, too. Such a consumer is replaced.
    """
    from kafka.errors import KafkaError

    rebalancing_polls = 0
    while not _leaving and rebalancing_polls < HANGS_SECONDS / POLL_SECONDS:
        found = consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        reporter.assigned(consumer.assignment() or ())
        is_stable = consumer._coordinator.state == "<stable>"
        rebalancing_polls = 0 if is_stable else rebalancing_polls + 1
        if not found:
            continue
        report_records(found)
        with suppress(KafkaError):
            consumer.commit()


def run_aiokafka(options: dict[str, Any]) -> None:
    asyncio.run(_run_aiokafka(options))


async def _run_aiokafka(options: dict[str, Any]) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError

    assignor = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }[options["assignor"]]
    consumer = new_consumer(
        AIOKafkaConsumer, options, (assignor,), rebalance_timeout_ms=options["rebalance_ms"]
    )
    await consumer.start()
    reporter = Reporter()
    try:
        while not _leaving:
            found = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
            reporter.assigned(consumer.assignment())
            if not found:
                continue
            report_records(found)
            with suppress(KafkaError):
                await consumer.commit()
    finally:
        await consumer.stop()


LIBRARIES = {
    "ours": run_ours,
    "confluent": run_confluent,
    "kafka-python": run_kafka_python,
    "aiokafka": run_aiokafka,
}


def main(library: str, options: str) -> None:
    """Run one member to its end."""
    signal.signal(signal.SIGTERM, leave)
    try:
        LIBRARIES[library](json.loads(options))
    except BaseException as error:
        report("failed", re.sub(r"\s+", " ", f"{type(error).__name__}: {error}"))
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
