"""Whether admin calls did to the topics what they said they did.

The checker watches the topics as the broker has them, so it knows when each came, grew and went.
It is told of every call: what it wanted, when, and how it ended. Afterwards it holds both
against each other. Each creation carries a mark of its own (a value of `retention.ms`), so that
topics can be told apart by who made them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from broker_stub.metadata.image import CONSUMER_OFFSETS, TopicImage
from broker_stub.node import Node
from pyclient.errors import (
    InvalidPartitionsError,
    KafkaError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)

MARK = "retention.ms"


@dataclass
class Life:
    """A topic from its creation to its end; another one of the same name is another life."""

    name: str
    topic_id: bytes
    mark: str
    partitions: int
    born_ms: float
    growths: list[tuple[float, int]] = field(default_factory=list)
    died_ms: float | None = None

    def is_alive(self, now_ms: float) -> bool:
        return self.born_ms <= now_ms and (self.died_ms is None or now_ms < self.died_ms)

    def partitions_at(self, now_ms: float) -> int:
        grown = [count for when_ms, count in self.growths if when_ms <= now_ms]
        return grown[-1] if grown else self.partitions


@dataclass
class Call:
    """One call of an admin client."""

    program: str
    kind: str
    name: str
    began_ms: float
    timeout_ms: float
    partitions: int = 0
    mark: str = ""
    ended_ms: float = -1.0
    error: KafkaError | None = None
    seen: int | None = None
    """Of a description: how many partitions; None: no such topic."""

    @property
    def succeeded(self) -> bool:
        return self.error is None

    def __str__(self) -> str:
        outcome = "done" if self.error is None else type(self.error).__name__
        return (
            f"{self.program}: {self.kind} {self.name} ({self.partitions} partitions, mark"
            f" {self.mark!r}, {self.began_ms:.3f} to {self.ended_ms:.3f} ms): {outcome}"
        )


class TopicChecker:
    """Watches a broker's topics, and judges calls by what it saw."""

    def __init__(self, now_ms: Callable[[], float], margin_ms: float) -> None:
        """Watch from now on; calls may outlast their timeout by `margin_ms`."""
        self.calls: list[Call] = []
        self.lives: list[Life] = []
        self._now_ms = now_ms
        self._margin_ms = margin_ms
        self._alive: dict[bytes, Life] = {}
        self._dead: set[bytes] = set()

    def watch(self, node: Node) -> None:
        """The node has done something: note what changed."""
        now_ms = self._now_ms()
        there = {one.topic_id: one for one in node.image.topics() if one.name != CONSUMER_OFFSETS}
        for topic_id, topic in there.items():
            assert topic_id not in self._dead, f"{topic.name} is back from the dead"
            _check_whole(topic)
            life = self._alive.get(topic_id)
            count = len(topic.partitions)
            if life is None:
                mark = node.image.topic_config(topic.name).get(MARK, "")
                life = Life(topic.name, topic_id, mark, count, now_ms)
                self._alive[topic_id] = life
                self.lives.append(life)
            elif count != life.partitions_at(now_ms):
                assert count > life.partitions_at(now_ms), f"{topic.name} has shrunk"
                life.growths.append((now_ms, count))
        for topic_id in self._alive.keys() - there.keys():
            self._alive.pop(topic_id).died_ms = now_ms
            self._dead.add(topic_id)

    def state(self) -> dict[str, int]:
        """The topics that are there, and how many partitions they have."""
        now_ms = self._now_ms()
        return {life.name: life.partitions_at(now_ms) for life in self._alive.values()}

    def check(self) -> None:
        """Hold every call against what happened.

        Raises:
            AssertionError: one does not agree with it.
        """
        claimed: set[tuple[str, int, float]] = set()
        for call in self.calls:
            late_ms = call.ended_ms - call.began_ms - call.timeout_ms
            assert late_ms <= self._margin_ms, f"ended {late_ms:.0f} ms late: {call}"
            if call.kind == "describe":
                self._check_description(call)
            elif call.succeeded:
                change = next((one for one in self._changes(call) if one not in claimed), None)
                assert change is not None, f"did not happen: {call}"
                claimed.add(change)
            else:
                self._check_error(call)
        self._check_origins()

    def _changes(self, call: Call) -> Iterator[tuple[str, int, float]]:
        """What happened during a call that would be its work."""
        for number, life in enumerate(self.lives):
            if life.name != call.name:
                continue
            if call.kind == "create":
                is_it = (life.mark, life.partitions) == (call.mark, call.partitions)
                when = [life.born_ms] if is_it else []
            elif call.kind == "grow":
                when = [at_ms for at_ms, count in life.growths if count == call.partitions]
            else:
                when = [] if life.died_ms is None else [life.died_ms]
            for at_ms in when:
                if call.began_ms <= at_ms <= call.ended_ms:
                    yield call.kind, number, at_ms

    def _check_error(self, call: Call) -> None:
        """An error that says something about the topic must have been true meanwhile."""
        states = self._states_during(call)
        if isinstance(call.error, TopicExistsError):
            assert any(count is not None for count in states), f"it did not exist: {call}"
        elif isinstance(call.error, UnknownTopicOrPartitionError):
            assert any(count is None for count in states), f"it did exist: {call}"
        elif isinstance(call.error, InvalidPartitionsError):
            enough = [count for count in states if count is not None and count >= call.partitions]
            assert enough, f"it had less partitions: {call}"

    def _check_description(self, call: Call) -> None:
        if call.succeeded:
            states = self._states_during(call)
            assert call.seen in states, f"saw {call.seen}, but it had {states}: {call}"

    def _states_during(self, call: Call) -> list[int | None]:
        """How many partitions the topic had at each moment of a call; None: it was not there."""
        own = [life for life in self.lives if life.name == call.name]
        moments = {call.began_ms, call.ended_ms}
        for life in own:
            moments |= {life.born_ms, *(when_ms for when_ms, _ in life.growths)}
            if life.died_ms is not None:
                moments.add(life.died_ms)
        states: list[int | None] = []
        for now_ms in sorted(one for one in moments if call.began_ms <= one <= call.ended_ms):
            alive = [life.partitions_at(now_ms) for life in own if life.is_alive(now_ms)]
            states.append(alive[0] if alive else None)
        return states

    def _check_origins(self) -> None:
        """Every topic is exactly what somebody asked for, and from when that was asked."""
        asked: Mapping[str, Call] = {one.mark: one for one in self.calls if one.kind == "create"}
        for life in self.lives:
            origin = asked.get(life.mark)
            assert origin is not None, f"nobody asked for {life}"
            assert (life.name, life.partitions) == (origin.name, origin.partitions), (
                f"{life} is not what was asked for: {origin}"
            )
            assert origin.began_ms <= life.born_ms, f"{life} was there before {origin}"
            wanted = {one.partitions for one in self.calls if one.kind == "grow"}
            assert {count for _, count in life.growths} <= wanted, f"nobody asked for {life}"


def _check_whole(topic: TopicImage) -> None:
    assert sorted(topic.partitions) == list(range(len(topic.partitions))), (
        f"{topic.name} is half done: {topic.partitions}"
    )
    assert all(one.leader >= 0 for one in topic.partitions.values()), topic.partitions
