"""An engine for tests of the producer's parts: a manual clock, no loop, no network."""

from pyclient.clock import ManualClock
from pyclient.entropy import Entropy
from pyclient.errors import IllegalStateError
from pyclient.metadata import ClusterMetadata, TopicMetadata
from pyclient.types import PartitionMetadata

NOW_MS = 1_700_000_000_000  # the same in every run


class FakeWaiter:
    """Does not wait: runs the next `meanwhile` instead; then it was woken, or has timed out."""

    def __init__(self, engine):
        self._engine = engine
        self.woken = False

    def wake(self):
        self.woken = True

    def wait(self, timeout_ms):
        if not self.woken and self._engine.meanwhile:
            self._engine.meanwhile.pop(0)()
        if not self.woken:
            self._engine.clock.advance(min(timeout_ms, 10**9))
        return self.woken


class FakeMetadata:
    def __init__(self):
        self.snapshot = ClusterMetadata()
        self.update_requests = 0
        self.kept_topics = []

    def request_update(self):
        self.update_requests += 1

    def keep_topic(self, topic):
        self.kept_topics.append(topic)

    def update_leaders(self, leaders, endpoints):
        self.snapshot = self.snapshot.with_leaders(leaders, endpoints)


class FakeEngine:
    """What the accumulator, the pool and futures use of an engine.

    `meanwhile` is what other threads do while this one waits, one function per wait.
    """

    def __init__(self):
        self.clock = ManualClock(NOW_MS)
        self.entropy = Entropy(0)
        self.metadata = FakeMetadata()
        self.meanwhile = []
        self.wakes = 0
        self.is_io_thread = False

    def waiter(self):
        return FakeWaiter(self)

    def wake(self):
        self.wakes += 1

    def on_io_thread(self):
        return self.is_io_thread

    def check_usable(self, call):
        pass

    def check_may_wait(self, call):
        if self.is_io_thread:
            raise IllegalStateError(f"{call} in a callback")

    def describe(self, topic, leaders, epoch=0):
        """A new snapshot, in which `topic` has these leaders (-1: none)."""
        self.metadata.snapshot = ClusterMetadata(
            version=self.metadata.snapshot.version + 1,
            topics={**self.metadata.snapshot.topics, topic: topic_metadata(topic, leaders, epoch)},
        )
        return self.metadata.snapshot


def topic_metadata(topic, leaders, epoch=0):
    return TopicMetadata(
        name=topic,
        topic_id=topic.encode().ljust(16, b"."),
        is_internal=False,
        partitions=tuple(
            PartitionMetadata(topic, index, leader, epoch, (), (), ())
            for index, leader in enumerate(leaders)
        ),
        available=tuple(index for index, leader in enumerate(leaders) if leader >= 0),
    )
