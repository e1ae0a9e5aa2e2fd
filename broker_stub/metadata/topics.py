"""Checks new topics and new partitions, and makes the metadata records for them.

Pure functions over the image; the controller appends the records.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from broker_stub.config.broker_config import BrokerConfig
from broker_stub.metadata.image import TOPIC_RESOURCE, ClusterImage
from broker_stub.metadata.log import CLUSTER_METADATA
from broker_stub.metadata.placement import place
from pyclient.error_codes import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    PolicyViolationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.metadata_records import ConfigRecord, PartitionRecord, TopicRecord
from pyclient.protocol.primitives import Uuid
from pyclient.protocol.schema import Message

_NAME_LENGTH_MAX: Final = 249  # a directory is named after it, followed by a partition's number
_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_DEFAULT: Final = -1
# Kafka's limit for one request: a change is one batch of the metadata log.
NEW_PARTITIONS_MAX: Final = 10_000


class NewTopic(NamedTuple):
    """A topic to create; -1 stands for the broker's default."""

    name: str
    partitions: int = _DEFAULT
    replication_factor: int = _DEFAULT
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class PlannedTopic(NamedTuple):
    """A topic that passed the checks, with its settings and replicas."""

    name: str
    topic_id: Uuid
    replicas: list[tuple[int, ...]]
    configs: dict[str, str]

    @property
    def replication_factor(self) -> int:
        """The replicas of the first partition; with manual assignments, others may differ."""
        return len(self.replicas[0])

    def records(self, directory_ids: Iterator[Uuid]) -> list[Message]:
        """The records that create the topic; each partition takes one of the log dirs."""
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
    """The new number of partitions of a topic, and the replicas of the new ones if assigned."""

    topic: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


def partition_record(
    topic_id: Uuid, index: int, replicas: Sequence[int], directory_id: Uuid
) -> PartitionRecord:
    """The record of a new partition: all replicas in sync, the first one leads."""
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
    """Refuse an invalid topic name.

    Raises:
        InvalidTopicError: it is empty, too long, or has characters other than
            letters, digits, dots, underscores and dashes.
    """
    if not name:
        raise InvalidTopicError("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopicError(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > _NAME_LENGTH_MAX:
        raise InvalidTopicError(
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{_NAME_LENGTH_MAX}"
        )
    if not _LEGAL.issuperset(name):
        raise InvalidTopicError(
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )


def plan_topic(
    topic: NewTopic, topic_id: Uuid, image: ClusterImage, config: BrokerConfig, start: int
) -> PlannedTopic:
    """Check a new topic and place its partitions.

    Raises:
        InvalidTopicError, TopicExistsError, InvalidPartitionsError,
        InvalidReplicationFactorError, InvalidReplicaAssignmentError, InvalidRequestError,
        InvalidConfigurationError, PolicyViolationError: as their names say.
    """
    check_name(topic.name)
    if topic.name == CLUSTER_METADATA:
        raise InvalidRequestError(f"Creation of internal topic {topic.name} is prohibited.")
    if image.topic(topic.name) is not None:
        raise TopicExistsError(f"Topic '{topic.name}' already exists.")
    _check_collision(topic.name, image)
    configs = config.check_topic(topic.configs)
    if topic.assignments:
        replicas = _assigned(topic, image)
    else:
        replicas = _placed(topic, image, config, start)
    return PlannedTopic(topic.name, topic_id, replicas, configs)


def plan_partitions(
    wanted: MorePartitions, image: ClusterImage, start: int
) -> list[tuple[int, ...]]:
    """Check the new partitions of a topic and place them.

    Raises:
        UnknownTopicOrPartitionError, InvalidTopicError, InvalidPartitionsError,
        InvalidReplicaAssignmentError: as their names say.
    """
    topic = image.topic(wanted.topic)
    if topic is None:
        raise UnknownTopicOrPartitionError()
    if topic.is_internal:
        # Groups are assigned to its partitions by hash, over their number.
        raise InvalidTopicError(f"{topic.name!r} is the broker's own: it can't grow")
    count = len(topic.partitions)
    if wanted.total == count:
        raise InvalidPartitionsError(f"Topic already has {count} partition(s).")
    if wanted.total < count:
        raise InvalidPartitionsError(
            f"The topic {topic.name} currently has {count} partition(s); {wanted.total} would not "
            "be an increase."
        )
    new = wanted.total - count
    check_new_partitions(new)
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        return place(sorted(image.brokers), new, factor, start)
    if len(wanted.assignments) != new:
        raise InvalidReplicaAssignmentError(
            f"Attempted to add {new} additional partition(s), but only {len(wanted.assignments)} "
            "assignment(s) were specified."
        )
    _check_assignments(wanted.assignments, factor, image)
    return [tuple(replicas) for replicas in wanted.assignments]


def _check_collision(name: str, image: ClusterImage) -> None:
    other = image.colliding_topic(name)
    if other is not None:
        raise InvalidTopicError(f"Topic '{name}' collides with existing topic: {other}")


def _placed(
    topic: NewTopic, image: ClusterImage, config: BrokerConfig, start: int
) -> list[tuple[int, ...]]:
    factor = topic.replication_factor
    if factor == _DEFAULT:
        factor = config["default.replication.factor"]
    if factor < 1:
        raise InvalidReplicationFactorError(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    partitions = topic.partitions
    if partitions == _DEFAULT:
        partitions = config["num.partitions"]
    if partitions < 1:
        raise InvalidPartitionsError(
            "Number of partitions was set to an invalid non-positive value."
        )
    check_new_partitions(partitions)
    return place(sorted(image.brokers), partitions, factor, start)


def _assigned(topic: NewTopic, image: ClusterImage) -> list[tuple[int, ...]]:
    given = "A manual partition assignment was specified, but"
    if topic.replication_factor != _DEFAULT:
        raise InvalidRequestError(f"{given} replication factor was not set to -1.")
    if topic.partitions != _DEFAULT:
        raise InvalidRequestError(f"{given} numPartitions was not set to -1.")
    assigned = list(topic.assignments.values())
    _check_assignments(assigned, len(assigned[0]), image)
    if sorted(topic.assignments) != list(range(len(assigned))):
        raise InvalidReplicaAssignmentError(
            "partitions should be a consecutive 0-based integer sequence"
        )
    return [tuple(topic.assignments[index]) for index in range(len(assigned))]


def check_new_partitions(count: int) -> None:
    """Limit the number of new partitions in one request.

    Raises:
        PolicyViolationError: there are too many.
    """
    if count > NEW_PARTITIONS_MAX:
        raise PolicyViolationError("Excessively large number of partitions per request.")


def check_replicas(replicas: Sequence[int], image: ClusterImage) -> None:
    """Refuse an invalid assignment of replicas to a partition.

    Raises:
        InvalidReplicaAssignmentError: it is empty, or names a broker twice or an unknown one.
    """
    given = "The manual partition assignment includes"
    if not replicas:
        raise InvalidReplicaAssignmentError(f"{given} an empty replica list.")
    ordered = sorted(replicas)
    for broker, next_one in zip(ordered, [*ordered[1:], None], strict=True):
        if broker not in image.brokers:
            raise InvalidReplicaAssignmentError(
                f"{given} broker {broker}, but no such broker is registered."
            )
        if broker == next_one:
            raise InvalidReplicaAssignmentError(f"{given} the broker {broker} more than once.")


def _check_assignments(
    assignments: Sequence[Sequence[int]], factor: int, image: ClusterImage
) -> None:
    for replicas in assignments:
        check_replicas(replicas, image)
        if len(replicas) != factor:
            raise InvalidReplicaAssignmentError(
                "The manual partition assignment includes a partition with "
                f"{len(replicas)} replica(s), but this is not consistent with previous "
                f"partitions, which have {factor} replica(s)."
            )
