"""The topics of a broker as they were at every moment, over all its crashes.

`TopicLives` watches the broker; it knows when each topic was created, grew, was reconfigured and
was deleted. Some states are errors whatever the calls were: a topic that exists in part, one that
comes back after its deletion, and a crash that changes anything but the change in progress.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from broker_stub.metadata.image import CONSUMER_OFFSETS, TopicImage
from broker_stub.node import Node

# Always set together, to the same value: one without the other is half a change.
PAIR = ("segment.ms", "flush.ms")


class TopicState(NamedTuple):
    """A topic at one moment."""

    partitions: int
    configs: Mapping[str, str]

    @property
    def pair(self) -> str | None:
        """What the pair of entries is set to; None if it is not."""
        return self.configs.get(PAIR[0])


@dataclass
class Life:
    """A topic from its creation to its deletion; recreated, it is another life."""

    name: str
    topic_id: bytes
    born_ms: float
    states: list[tuple[float, TopicState]] = field(default_factory=list)
    """From when on it was how; the first is how it was born."""
    died_ms: float | None = None

    def is_alive(self, now_ms: float) -> bool:
        return self.born_ms <= now_ms and (self.died_ms is None or now_ms < self.died_ms)

    def state_at(self, now_ms: float) -> TopicState:
        return [state for when_ms, state in self.states if when_ms <= now_ms][-1]

    @property
    def birth(self) -> TopicState:
        return self.states[0][1]

    @property
    def growths(self) -> list[tuple[float, int]]:
        """When it grew, and to how many partitions."""
        counts = [(when_ms, state.partitions) for when_ms, state in self.states]
        return [later for earlier, later in pairwise(counts) if earlier[1] != later[1]]


class TopicLives:
    """Watches a broker's topics."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self.lives: list[Life] = []
        self._now_ms = now_ms
        self._alive: dict[bytes, Life] = {}
        self._dead: set[bytes] = set()
        self._node: Node | None = None
        self._was_busy = False

    def watch(self, node: Node) -> None:
        """Called after each step of the node: note what changed."""
        there = {one.topic_id: one for one in node.image.topics() if one.name != CONSUMER_OFFSETS}
        before = self._known()
        self._note(node, there)
        if node is not self._node:
            assert self._was_busy or self._node is None or self._known() == before, (
                f"nothing was under way, and yet it starts with {self._known()}, not {before}"
            )
            self._node = node
        self._was_busy = node.controller.is_busy

    def _note(self, node: Node, there: Mapping[bytes, TopicImage]) -> None:
        now_ms = self._now_ms()
        for topic_id, topic in there.items():
            assert topic_id not in self._dead, f"{topic.name} is back from the dead"
            _check_whole(topic)
            state = TopicState(len(topic.partitions), dict(node.image.topic_config(topic.name)))
            assert len({state.configs.get(key) for key in PAIR}) == 1, f"{topic.name}: {state}"
            life = self._alive.get(topic_id)
            if life is None:
                life = self._alive[topic_id] = Life(topic.name, topic_id, now_ms)
                self.lives.append(life)
            elif state != life.states[-1][1]:
                assert state.partitions >= life.states[-1][1].partitions, f"{life} has shrunk"
            else:
                continue
            life.states.append((now_ms, state))
        for topic_id in self._alive.keys() - there.keys():
            self._alive.pop(topic_id).died_ms = now_ms
            self._dead.add(topic_id)

    def _known(self) -> dict[bytes, TopicState]:
        return {topic_id: life.states[-1][1] for topic_id, life in self._alive.items()}

    def topics(self) -> dict[str, TopicState]:
        """The topics that are there now."""
        return {life.name: life.states[-1][1] for life in self._alive.values()}

    def states_during(self, name: str, began_ms: float, ended_ms: float) -> list[TopicState | None]:
        """The states of a topic during a period; None where it did not exist."""
        own = [life for life in self.lives if life.name == name]
        moments = {began_ms, ended_ms}
        for life in own:
            moments |= {when_ms for when_ms, _ in life.states}
            if life.died_ms is not None:
                moments.add(life.died_ms)
        states: list[TopicState | None] = []
        for now_ms in sorted(one for one in moments if began_ms <= one <= ended_ms):
            alive = [life.state_at(now_ms) for life in own if life.is_alive(now_ms)]
            states.append(alive[0] if alive else None)
        return states


def _check_whole(topic: TopicImage) -> None:
    assert sorted(topic.partitions) == list(range(len(topic.partitions))), (
        f"{topic.name} is half done: {topic.partitions}"
    )
    assert all(one.leader >= 0 for one in topic.partitions.values()), topic.partitions
