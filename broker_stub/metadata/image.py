"""The cluster's state according to the metadata log: brokers, topics, partitions, configurations.

`ClusterImage.apply` applies one record of the log; nothing else changes an image. Handlers only
read it. Serving thread only; while the node opens, the thread that opens it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from broker_stub.config.listeners import Endpoint
from pyclient.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from pyclient.protocol.primitives import ZERO_UUID, Uuid
from pyclient.protocol.schema import Message

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})

_NO_CHANGE: Final = -2  # PartitionChangeRecord.leader


def collision_key(name: str) -> str:
    """The key that two topics may not share: metric names replace dots by underscores."""
    return name.replace(".", "_")


class BrokerImage(NamedTuple):
    broker_id: int
    epoch: int
    endpoints: Mapping[str, Endpoint]
    rack: str | None
    fenced: bool


class PartitionImage(NamedTuple):
    """A partition: its replicas and its leader."""

    partition_id: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[Uuid, ...]

    def directory_of(self, broker_id: int) -> Uuid:
        """The folder of a broker's replica; zeros where none was recorded."""
        placed = dict(zip(self.replicas, self.directories, strict=False))
        return placed.get(broker_id, ZERO_UUID)


class TopicImage:
    """A topic and its partitions, by index."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: Uuid) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionImage] = {}

    @property
    def is_internal(self) -> bool:
        """Whether brokers keep their own state in it."""
        return self.name in INTERNAL_TOPICS


class ClusterImage:
    """The state after all records of the metadata log up to an offset."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerImage] = {}
        self.next_producer_id = 0
        self.on_topic_removed: list[Callable[[TopicImage], None]] = []
        self.on_partition_changed: list[Callable[[TopicImage, int], None]] = []
        self.on_config_changed: list[Callable[[int, str], None]] = []
        self._topics: dict[str, TopicImage] = {}
        self._topics_by_id: dict[Uuid, TopicImage] = {}
        self._collision_keys: dict[str, str] = {}
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        self._appliers: Mapping[type[Message], Callable[[Any, int], None]] = {
            RegisterBrokerRecord: self._register_broker,
            UnregisterBrokerRecord: self._unregister_broker,
            BrokerRegistrationChangeRecord: self._change_registration,
            TopicRecord: self._add_topic,
            RemoveTopicRecord: self._remove_topic,
            PartitionRecord: self._add_partition,
            PartitionChangeRecord: self._change_partition,
            ConfigRecord: self._set_config,
            ProducerIdsRecord: self._set_producer_ids,
        }

    def topics(self) -> Iterable[TopicImage]:
        """Every topic, in the order of creation."""
        return self._topics.values()

    def topic(self, name: str) -> TopicImage | None:
        """The topic of a name."""
        return self._topics.get(name)

    def topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """The topic of an id."""
        return self._topics_by_id.get(topic_id)

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of the topic with this id."""
        found = self._topics_by_id.get(topic_id)
        return None if found is None else found.name

    def colliding_topic(self, name: str) -> str | None:
        """The topic whose metric names would collide with those of a new topic."""
        return self._collision_keys.get(collision_key(name))

    def topic_config(self, name: str) -> Mapping[str, str]:
        """The options set on a topic, which override the broker's defaults."""
        return self.config(TOPIC_RESOURCE, name)

    def config(self, resource_type: int, resource_name: str) -> Mapping[str, str]:
        """The options set on a resource."""
        return self._configs.get((resource_type, resource_name), {})

    def knows(self, record: Message) -> bool:
        """Whether records of this type change the image."""
        return type(record) in self._appliers

    def apply(self, record: Message, offset: int) -> None:
        """Apply `record`, which is at `offset` of the log."""
        self._appliers[type(record)](record, offset)

    def _register_broker(self, record: RegisterBrokerRecord, offset: int) -> None:
        self.brokers[record.broker_id] = BrokerImage(
            broker_id=record.broker_id,
            epoch=record.broker_epoch if record.broker_epoch >= 0 else offset,
            endpoints={
                endpoint.name: Endpoint(
                    endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol
                )
                for endpoint in record.end_points
            },
            rack=record.rack,
            fenced=record.fenced,
        )

    def _unregister_broker(self, record: UnregisterBrokerRecord, _offset: int) -> None:
        self.brokers.pop(record.broker_id, None)

    def _change_registration(self, record: BrokerRegistrationChangeRecord, _offset: int) -> None:
        broker = self.brokers.get(record.broker_id)
        if broker is not None and record.fenced:
            self.brokers[record.broker_id] = broker._replace(fenced=record.fenced > 0)

    def _add_topic(self, record: TopicRecord, _offset: int) -> None:
        topic = TopicImage(record.name, record.topic_id)
        self._topics[record.name] = topic
        self._topics_by_id[record.topic_id] = topic
        self._collision_keys[collision_key(record.name)] = record.name

    def _remove_topic(self, record: RemoveTopicRecord, _offset: int) -> None:
        topic = self._topics_by_id.pop(record.topic_id, None)
        if topic is not None:
            del self._topics[topic.name]
            self._collision_keys.pop(collision_key(topic.name), None)
            # No other records remove them.
            self._configs.pop((TOPIC_RESOURCE, topic.name), None)
            for listener in self.on_topic_removed:
                listener(topic)

    def _add_partition(self, record: PartitionRecord, _offset: int) -> None:
        self._topics_by_id[record.topic_id].partitions[record.partition_id] = PartitionImage(
            partition_id=record.partition_id,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            directories=tuple(record.directories),
        )

    def _change_partition(self, record: PartitionChangeRecord, _offset: int) -> None:
        topic = self._topics_by_id[record.topic_id]
        old = topic.partitions[record.partition_id]
        unled = record.leader == _NO_CHANGE
        topic.partitions[record.partition_id] = PartitionImage(
            partition_id=old.partition_id,
            leader=old.leader if unled else record.leader,
            # Naming a leader starts a new epoch, even if the leader is the same.
            leader_epoch=old.leader_epoch if unled else old.leader_epoch + 1,
            partition_epoch=old.partition_epoch + 1,
            replicas=old.replicas if record.replicas is None else tuple(record.replicas),
            isr=old.isr if record.isr is None else tuple(record.isr),
            directories=(
                old.directories if record.directories is None else tuple(record.directories)
            ),
        )
        for listener in self.on_partition_changed:
            listener(topic, record.partition_id)

    def _set_config(self, record: ConfigRecord, _offset: int) -> None:
        resource = (record.resource_type, record.resource_name)
        if record.value is None:
            configs = self._configs.get(resource, {})
            configs.pop(record.name, None)
            if not configs:
                self._configs.pop(resource, None)
        else:
            self._configs.setdefault(resource, {})[record.name] = record.value
        for listener in self.on_config_changed:
            listener(record.resource_type, record.resource_name)

    def _set_producer_ids(self, record: ProducerIdsRecord, _offset: int) -> None:
        self.next_producer_id = record.next_producer_id
