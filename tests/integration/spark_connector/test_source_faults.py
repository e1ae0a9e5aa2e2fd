"""Faults around the Spark source: killed drivers, repeated tasks, brokers that restart."""

import json
import random
from collections import Counter
from typing import Any

import pytest

from broker_stub import Broker
from tests.integration.spark_connector.miniature_spark import (
    StreamQuery,
    offsets_of,
    plan,
    rows_of,
)
from tests.integration.spark_connector.topics import fill

OPTIONS = {"subscribe": "t", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 17}


class Killed(Exception):
    """The driver dies here."""


@pytest.mark.parametrize("seed", range(5))
def test_a_query_killed_at_random_points_loses_nothing_and_repeats_no_committed_batch(
    kafka_broker: Broker, seed: int
) -> None:
    # As Spark does: an end is written down before its batch runs, and runs again after a death.
    chance = random.Random(seed)
    kafka_broker.create_topic("t", partitions=3)
    committed: list[str] = []
    planned: str | None = None
    read: Counter[tuple[int, int]] = Counter()
    produced = 0

    def may_die() -> None:
        if chance.random() < 0.25:
            raise Killed

    for _ in range(60):
        if produced < 120 and chance.random() < 0.5:
            fill(kafka_broker, "t", 5, (chance.randrange(3),))
            produced += 5
        query = StreamQuery(kafka_broker, list(committed), **OPTIONS)
        try:
            while True:
                if planned is None:
                    planned = query.next_end()
                    if planned is None:
                        break
                may_die()
                rows = query.run_batch(planned)
                may_die()
                committed, planned = list(query.checkpoint), None
                read.update(offsets_of(rows))
                may_die()
        except Killed:
            pass
        finally:
            query.reader.stop()
    with StreamQuery(kafka_broker, list(committed), **OPTIONS) as query:
        if planned is not None:
            read.update(offsets_of(query.run_batch(planned)))
        for rows in query.drain():
            read.update(offsets_of(rows))
    assert sum(read.values()) == produced
    assert set(read.values()) <= {1}


def test_a_task_that_is_tried_again_or_twice_at_once_reads_the_same(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 50)
    with StreamQuery(kafka_broker, **OPTIONS) as query:
        (task,) = query.tasks(query.next_end())
        fill(kafka_broker, "t", 50)
        attempt, speculative = rows_of(query.reader, task), rows_of(query.reader, task)
        first = next(attempt)
        rest = list(speculative)
        assert [first, *attempt] == rest
        assert len(rest) == 17
        assert list(rows_of(query.reader, task)) == rest


def test_a_broker_that_restarts_during_a_query_is_waited_for(tmp_path: Any) -> None:
    with Broker(data_dir=tmp_path) as broker:
        fill(broker, "t", 30)
        with StreamQuery(broker, **OPTIONS) as query:
            assert len(query.step()) == 17
            broker.restart()
            assert len(query.step()) == 13
        reader, (task,) = plan(broker, subscribe="t")
        rows = rows_of(reader, task)
        first = next(rows)
        broker.restart()
        assert len([first, *rows]) == 30


def test_ends_that_lie_before_known_offsets_are_asked_for_again(kafka_broker: Broker) -> None:
    from pyclient.protocol.messages.list_offsets import ListOffsetsRequest

    fill(kafka_broker, "t", 10)
    with StreamQuery(kafka_broker, **OPTIONS) as query:
        start = {"t": {"0": 12}}  # a new leader may know of an older end for a moment
        before = kafka_broker.requests.count(ListOffsetsRequest)
        end = query.reader.latestOffset(start, query.reader.getDefaultReadLimit())
        assert json.loads(json.dumps(end))["t"] == {"0": 10}
        assert kafka_broker.requests.count(ListOffsetsRequest) - before >= 3
