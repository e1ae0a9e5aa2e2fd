"""Stand-ins around the consumer's cores, without an engine: a cluster, an inbox, batches."""

import math

from pyclient.clock import ManualClock
from pyclient.consumer.inbox import Inbox
from pyclient.consumer.metrics import ConsumerMetrics
from pyclient.consumer.partition_state import PartitionEpoch, PartitionOffsets
from pyclient.consumer.subscription_state import SubscriptionState
from pyclient.entropy import Entropy
from pyclient.metadata import ClusterMetadata, TopicMetadata
from pyclient.timers import ExponentialBackoff
from pyclient.types import BrokerMetadata, PartitionMetadata, TopicPartition
from tests.support.batches import build_batch

BACKOFF_MS = 100


class FakeCluster:
    """Metadata that a test sets; records what is asked for."""

    def __init__(self):
        self.snapshot = ClusterMetadata()
        self.update_requests = 0
        self.topics = set()
        self.added = []

    def request_update(self):
        self.update_requests += 1

    def set_topics(self, names):
        self.topics = None if names is None else set(names)

    def add_topic(self, topic):
        self.added.append(topic)

    def update_leaders(self, leaders, endpoints):
        self.snapshot = self.snapshot.with_leaders(leaders, endpoints)

    def describe(self, topics, *, errors=None, racks=None, internal=(), epoch=0):
        """A new snapshot: leaders by topic, as in {"orders": [1, 2]}; -1 is none."""
        brokers = {node for leaders in topics.values() for node in leaders if node >= 0}
        racks = racks or {}
        self.snapshot = ClusterMetadata(
            version=self.snapshot.version + 1,
            brokers={
                node: BrokerMetadata(node, f"broker{node}", 9092, racks.get(node))
                for node in brokers
            },
            topics={
                topic: TopicMetadata(
                    name=topic,
                    topic_id=topic_id(topic),
                    is_internal=topic in internal,
                    partitions=tuple(
                        PartitionMetadata(topic, index, node, epoch, (node,), (node,), ())
                        for index, node in enumerate(leaders)
                    ),
                    available=tuple(index for index, node in enumerate(leaders) if node >= 0),
                )
                for topic, leaders in topics.items()
            },
            topic_errors=errors or {},
            topic_names={topic_id(topic): topic for topic in topics},
        )
        return self.snapshot


def topic_id(topic):
    return topic.encode().ljust(16, b".")


class FakeWaiter:
    """Never waits."""

    def __init__(self):
        self.woken = False

    def wake(self):
        self.woken = True

    def wait(self, timeout_ms):
        return self.woken


def new_inbox():
    """An inbox whose commands for the I/O thread run at once."""
    return Inbox(FakeWaiter, lambda action: action())


def new_metrics():
    return ConsumerMetrics(ManualClock())


def new_backoff():
    """Without jitter, always the same."""
    return ExponentialBackoff(Entropy(0), BACKOFF_MS, BACKOFF_MS)


def started(subscription, offsets):
    """Assign these partitions and give them these positions: {partition: offset}."""
    subscription.assign_from_user(list(offsets))
    subscription.start()
    for partition, offset in offsets.items():
        subscription.seek(partition, offset)
    return subscription


def epoch_of(subscription: SubscriptionState, partition: TopicPartition) -> PartitionEpoch:
    for target in subscription.fetchable():
        if target.partition == partition:
            return PartitionEpoch(partition, target.epoch)
    for at in (*subscription.to_initialize(), *subscription.to_reset()):
        if at.partition == partition:
            return at
    raise AssertionError(f"{partition} has no epoch to be seen")


def batch_at(base_offset, values, **options):
    """A batch whose first record has this offset."""
    records = [(1_700_000_000_000 + index, None, value, []) for index, value in enumerate(values)]
    return build_batch(records, buffer=1 << 16, base_offset=base_offset, **options)


NO_OFFSETS = PartitionOffsets(-1, -1, -1)
FOREVER = math.inf
