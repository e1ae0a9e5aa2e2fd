"""Whether admin calls did to the topics what they said they did.

`TopicLives` knows how the topics were at every moment. The checker is told of every call: what it
asked for, when, and how it ended; afterwards it compares both. Each creation and each alteration
sets a unique value, so that the effect of one call can be told from that of another.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from broker_stub.node import Node
from pyclient.errors import (
    InvalidPartitionsError,
    KafkaError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from tests.simulation.topic_lives import TopicLives, TopicState

# What creations and alterations mark: the latter always both entries of the pair in `TopicLives`.
MARK = "retention.ms"
POLICY, COMPACT = "cleanup.policy", "compact"


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
    seen: int | Mapping[str, str] | None = None
    """Of a description: how many partitions, or which entries; None: no such topic."""

    @property
    def succeeded(self) -> bool:
        return self.error is None

    def __str__(self) -> str:
        outcome = "done" if self.error is None else type(self.error).__name__
        return (
            f"{self.program}: {self.kind} {self.name} ({self.partitions} partitions, mark"
            f" {self.mark!r}, {self.began_ms:.3f} to {self.ended_ms:.3f} ms): {outcome}"
        )


# What is true of a topic at some moment of an alteration that says that it is done.
_EFFECTS: Mapping[str, Callable[[TopicState, Call], bool]] = {
    "alter": lambda topic, call: topic.pair == call.mark,
    "replace": lambda topic, call: topic.pair == call.mark,
    "reset": lambda topic, _call: topic.pair is None,
    "append": lambda topic, _call: COMPACT in topic.configs.get(POLICY, ""),
    "subtract": lambda topic, _call: COMPACT not in topic.configs.get(POLICY, ""),
}


class TopicChecker:
    """Watches a broker's topics, and judges calls by what it saw."""

    def __init__(self, now_ms: Callable[[], float], margin_ms: float) -> None:
        """Watch from now on; calls may outlast their timeout by `margin_ms`."""
        self.calls: list[Call] = []
        self._topics = TopicLives(now_ms)
        self._margin_ms = margin_ms

    def watch(self, node: Node) -> None:
        """The node has done something: note what changed."""
        self._topics.watch(node)

    def state(self) -> dict[str, TopicState]:
        """The topics that are there."""
        return self._topics.topics()

    def check(self) -> None:
        """Compare every call with what happened.

        Raises:
            AssertionError: one does not agree with it.
        """
        claimed: set[tuple[str, int, float]] = set()
        for call in self.calls:
            late_ms = call.ended_ms - call.began_ms - call.timeout_ms
            assert late_ms <= self._margin_ms, f"ended {late_ms:.0f} ms late: {call}"
            if not call.succeeded:
                self._check_error(call)
            elif call.kind in ("describe", "inspect"):
                self._check_description(call)
            elif call.kind in _EFFECTS:
                self._check_alteration(call)
            else:
                change = next((one for one in self._changes(call) if one not in claimed), None)
                assert change is not None, f"did not happen: {call}"
                claimed.add(change)
        self._check_origins()

    def _changes(self, call: Call) -> Iterator[tuple[str, int, float]]:
        """The changes during a call that the call could have made."""
        for number, life in enumerate(self._topics.lives):
            if life.name != call.name:
                continue
            if call.kind == "create":
                born = (life.birth.configs.get(MARK), life.birth.partitions)
                when = [life.born_ms] if born == (call.mark, call.partitions) else []
            elif call.kind == "grow":
                when = [at_ms for at_ms, count in life.growths if count == call.partitions]
            else:
                when = [] if life.died_ms is None else [life.died_ms]
            for at_ms in when:
                if call.began_ms <= at_ms <= call.ended_ms:
                    yield call.kind, number, at_ms

    def _check_alteration(self, call: Call) -> None:
        states = self._states_during(call)
        has_effect = _EFFECTS[call.kind]
        assert any(topic is not None and has_effect(topic, call) for topic in states), (
            f"did not happen: {call}; it was {states}"
        )

    def _check_error(self, call: Call) -> None:
        """An error about the topic's state must have been true at some moment of the call."""
        states = self._states_during(call)
        if isinstance(call.error, TopicExistsError):
            assert any(topic is not None for topic in states), f"it did not exist: {call}"
        elif isinstance(call.error, UnknownTopicOrPartitionError):
            assert any(topic is None for topic in states), f"it did exist: {call}"
        elif isinstance(call.error, InvalidPartitionsError):
            enough = [one for one in states if one and one.partitions >= call.partitions]
            assert enough, f"it had less partitions: {call}"

    def _check_description(self, call: Call) -> None:
        states = self._states_during(call)
        shown: list[int | Mapping[str, str] | None]
        if call.kind == "describe":
            shown = [one.partitions if one else None for one in states]
        else:
            shown = [one.configs if one else None for one in states]
        assert call.seen in shown, f"saw {call.seen}, but it had {shown}: {call}"

    def _states_during(self, call: Call) -> list[TopicState | None]:
        return self._topics.states_during(call.name, call.began_ms, call.ended_ms)

    def _check_origins(self) -> None:
        """Every topic is what some call asked for, and was not created before that call."""
        by_mark = {one.mark: one for one in self.calls}
        for life in self._topics.lives:
            origin = by_mark.get(life.birth.configs.get(MARK, ""))
            assert origin is not None, f"nobody asked for {life}"
            assert origin.kind == "create", (life, origin)
            assert (life.name, life.birth.partitions) == (origin.name, origin.partitions), (
                f"{life} is not what was asked for: {origin}"
            )
            assert origin.began_ms <= life.born_ms, f"{life} was there before {origin}"
            wanted = {one.partitions for one in self.calls if one.kind == "grow"}
            assert {count for _, count in life.growths} <= wanted, f"nobody asked for {life}"
            for when_ms, state in life.states:
                if state.pair is not None:
                    call = by_mark[state.pair]
                    assert call.kind in ("alter", "replace"), (life, call)
                    assert call.name == life.name, (life, call)
                    assert call.began_ms <= when_ms, (life, call)
