"""What creating a topic means, and letting it grow: the rules, and the records that do it.

Pure functions over the image; the controller appends what they return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.metadata.image import TOPIC_RESOURCE, ClusterImage
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.metadata.placement import place
from pyclient.error_codes import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.metadata_records import ConfigRecord, PartitionRecord, TopicRecord
from pyclient.protocol.primitives import Uuid
from pyclient.protocol.schema import Message

_NAME_LENGTH_MAX: Final = 249  # a folder is named after it, with a partition's number behind
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_DEFAULT: Final = -1
# Kafka's own bound on what one request may ask for: a change is one batch of the metadata log.
NEW_PARTITIONS_MAX: Final = 10_000


class NewTopic(NamedTuple):
    """A topic as somebody wants it; -1 stands for the broker's default."""

    name: str
    partitions: int = _DEFAULT
    replication_factor: int = _DEFAULT
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class PlannedTopic(NamedTuple):
    """A topic that may be made: what it will be, and the records that make it."""

    name: str
    topic_id: Uuid
    replicas: list[tuple[int, ...]]
    configs: dict[str, str]

    @property
    def replication_factor(self) -> int:
        """Replicas of the first partition; manual assignments may differ."""
        return len(self.replicas[0])

    def records(self, directory_ids: Iterator[Uuid]) -> list[Message]:
        """The change to the metadata log; each partition takes one of the folders."""
        made: list[Message] = [TopicRecord(name=self.name, topic_id=self.topic_id)]
        made += [
            ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name=self.name, name=name, value=value
            )
            for name, value in self.configs.items()
        ]
        made += [
            partition_record(self.topic_id, index, replicas, next(directory_ids))
            for index, replicas in enumerate(self.replicas)
        ]
        return made


class MorePartitions(NamedTuple):
    """How many partitions a topic is to have, and who gets the new ones if that is decided."""

    topic: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


def partition_record(
    topic_id: Uuid, index: int, replicas: Sequence[int], directory_id: Uuid
) -> PartitionRecord:
    """What makes a partition: all replicas in sync, the first one leads."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory_id] * len(replicas),
    )


def check_name(name: str) -> None:
    """Refuse a name that can't be a topic's.

    Raises:
        InvalidTopicError: it is empty, too long, or holds other characters than
            letters, digits, dots, underscores and dashes.
    """
    if not name:
        raise InvalidTopicError("the topic name is empty")
    if name in (".", ".."):
        raise InvalidTopicError(f"the topic name can't be {name!r}")
    if len(name) > _NAME_LENGTH_MAX:
        raise InvalidTopicError(f"the topic name is longer than {_NAME_LENGTH_MAX}: {name!r}")
    if not _LEGAL.issuperset(name):
        raise InvalidTopicError(
            f"the topic name {name!r} holds other characters than a-z, A-Z, 0-9, '.', '_' and '-'"
        )


def plan_topic(
    topic: NewTopic, topic_id: Uuid, image: ClusterImage, config: BrokerConfig, start: int
) -> PlannedTopic:
    """Check a new topic against the rules and decide where its partitions go.

    Raises:
        InvalidTopicError, TopicExistsError, InvalidPartitionsError,
        InvalidReplicationFactorError, InvalidReplicaAssignmentError, InvalidRequestError,
        InvalidConfigurationError, PolicyViolationError: as their names say.
    """
    check_name(topic.name)
    if topic.name == CLUSTER_METADATA:
        raise InvalidRequestError(f"{topic.name!r} is the broker's own: it can't be created")
    if image.topic(topic.name) is not None:
        raise TopicExistsError(f"the topic {topic.name!r} exists already")
    _check_collision(topic.name, image)
    if topic.assignments:
        replicas = _assigned(topic, image)
    else:
        replicas = _placed(topic, image, config, start)
    return PlannedTopic(topic.name, topic_id, replicas, config.check_topic(topic.configs))


def plan_partitions(
    wanted: MorePartitions, image: ClusterImage, start: int
) -> list[tuple[int, ...]]:
    """Check that a topic may grow, and decide where its new partitions go.

    Raises:
        UnknownTopicOrPartitionError, InvalidTopicError, InvalidPartitionsError,
        InvalidReplicaAssignmentError: as their names say.
    """
    topic = image.topic(wanted.topic)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"there is no topic {wanted.topic!r}")
    if topic.is_internal:
        # Which of its partitions is whose follows from their number.
        raise InvalidTopicError(f"{topic.name!r} is the broker's own: it can't grow")
    count = len(topic.partitions)
    if wanted.total <= count:
        raise InvalidPartitionsError(
            f"the topic {topic.name!r} has {count} partition(s): {wanted.total} would be no more"
        )
    new = wanted.total - count
    check_new_partitions(new)
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        return place(sorted(image.brokers), new, factor, start)
    if len(wanted.assignments) != new:
        raise InvalidReplicaAssignmentError(
            f"{new} partition(s) more, but {len(wanted.assignments)} assignment(s)"
        )
    return _check_replicas(wanted.assignments, factor, image)


def _check_collision(name: str, image: ClusterImage) -> None:
    other = image.colliding_topic(name)
    if other is not None:
        raise InvalidTopicError(f"the topic {name!r} collides with {other!r}")


def _placed(
    topic: NewTopic, image: ClusterImage, config: BrokerConfig, start: int
) -> list[tuple[int, ...]]:
    partitions = topic.partitions
    if partitions == _DEFAULT:
        partitions = config["num.partitions"]
    if partitions < 1:
        raise InvalidPartitionsError(f"a topic can't have {partitions} partitions")
    check_new_partitions(partitions)
    factor = topic.replication_factor
    if factor == _DEFAULT:
        factor = config["default.replication.factor"]
    return place(sorted(image.brokers), partitions, factor, start)


def _assigned(topic: NewTopic, image: ClusterImage) -> list[tuple[int, ...]]:
    if topic.partitions != _DEFAULT or topic.replication_factor != _DEFAULT:
        raise InvalidRequestError("give either counts or assignments, and -1 for the others")
    if sorted(topic.assignments) != list(range(len(topic.assignments))):
        raise InvalidReplicaAssignmentError("the assigned partitions must be 0, 1, 2, ...")
    replicas = [topic.assignments[index] for index in range(len(topic.assignments))]
    return _check_replicas(replicas, len(replicas[0]), image)


def check_new_partitions(count: int) -> None:
    """Refuse what is too much for one request.

    Raises:
        PolicyViolationError: there are too many partitions to make.
    """
    if count > NEW_PARTITIONS_MAX:
        raise PolicyViolationError(
            f"{count} new partitions in one request: at most {NEW_PARTITIONS_MAX} can be made"
        )


def _check_replicas(
    assignments: Sequence[Sequence[int]], factor: int, image: ClusterImage
) -> list[tuple[int, ...]]:
    """The replicas of partitions as somebody chose them, if they can be had."""
    for brokers in assignments:
        if not brokers or len(set(brokers)) < len(brokers):
            raise InvalidReplicaAssignmentError(f"no replica, or one twice: {list(brokers)}")
        strangers = set(brokers) - set(image.brokers)
        if strangers:
            raise InvalidReplicaAssignmentError(f"there is no broker {min(strangers)}")
        if len(brokers) != factor:
            raise InvalidReplicaAssignmentError("all partitions need the same number of replicas")
    return [tuple(brokers) for brokers in assignments]
