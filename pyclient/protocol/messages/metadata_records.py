"""Records of `__cluster_metadata`: each is one change to the cluster's image.

A record's value is three unsigned varints (frame version 1, the `record_type`, the record's
version) and the fields.
"""

from pyclient.protocol.primitives import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Uuid,
)
from pyclient.protocol.schema import Message, Struct, array, field


class BrokerEndpoint(Struct):
    """An address that the broker serves on."""

    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)
    security_protocol: int = field(INT16)


class BrokerFeature(Struct):
    """The levels of a feature that the broker could run."""

    name: str = field(STRING)
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


class RegisterBrokerRecord(Message, record_type=0, versions="0-4", flexible="0+"):
    """A broker joined, or came back with a new epoch."""

    broker_id: int = field(INT32)
    is_migrating_zk_broker: bool = field(BOOL, versions="2+")
    incarnation_id: Uuid = field(UUID)
    broker_epoch: int = field(INT64)
    end_points: list[BrokerEndpoint] = field(array(BrokerEndpoint))
    features: list[BrokerFeature] = field(array(BrokerFeature))
    rack: str | None = field(STRING, nullable="0+")
    fenced: bool = field(BOOL, default=True)
    in_controlled_shutdown: bool = field(BOOL, versions="1+")
    log_dirs: list[Uuid] = field(array(UUID), versions="3+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = field(
        array(UUID), versions="4+", nullable="4+", default=None, tag=1
    )


class UnregisterBrokerRecord(Message, record_type=1, versions="0", flexible="0+"):
    """A broker is gone for good."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64)


class TopicRecord(Message, record_type=2, versions="0", flexible="0+"):
    """A topic was made."""

    name: str = field(STRING)
    topic_id: Uuid = field(UUID)


class PartitionRecord(Message, record_type=3, versions="0-2", flexible="0+"):
    """A partition was made."""

    partition_id: int = field(INT32, default=-1)
    topic_id: Uuid = field(UUID)
    replicas: list[int] = field(array(INT32))
    isr: list[int] = field(array(INT32))
    removing_replicas: list[int] = field(array(INT32))
    adding_replicas: list[int] = field(array(INT32))
    leader: int = field(INT32, default=-1)
    leader_recovery_state: int = field(INT8, tag=0)  # 0 recovered, 1 recovering
    leader_epoch: int = field(INT32, default=-1)
    partition_epoch: int = field(INT32, default=-1)
    directories: list[Uuid] = field(array(UUID), versions="1+")
    eligible_leader_replicas: list[int] | None = field(
        array(INT32), versions="2+", nullable="2+", default=None, tag=1
    )
    last_known_elr: list[int] | None = field(
        array(INT32), versions="2+", nullable="2+", default=None, tag=2
    )


class ConfigRecord(Message, record_type=4, versions="0", flexible="0+"):
    """A configuration entry was set; null removes it."""

    resource_type: int = field(INT8)  # 2 topic, 4 broker, 16 client metrics, 32 group
    resource_name: str = field(STRING)
    name: str = field(STRING)
    value: str | None = field(STRING, nullable="0+")


class PartitionChangeRecord(Message, record_type=5, versions="0-2", flexible="0+"):
    """A partition's leader or replicas changed; what is absent did not."""

    partition_id: int = field(INT32, default=-1)
    topic_id: Uuid = field(UUID)
    isr: list[int] | None = field(array(INT32), nullable="0+", default=None, tag=0)
    leader: int = field(INT32, default=-2, tag=1)  # -1 none, -2 no change
    replicas: list[int] | None = field(array(INT32), nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = field(array(INT32), nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = field(array(INT32), nullable="0+", default=None, tag=4)
    leader_recovery_state: int = field(INT8, default=-1, tag=5)  # -1 no change
    directories: list[Uuid] | None = field(
        array(UUID), versions="1+", nullable="1+", default=None, tag=8
    )
    eligible_leader_replicas: list[int] | None = field(
        array(INT32), versions="2+", nullable="2+", default=None, tag=6
    )
    last_known_elr: list[int] | None = field(
        array(INT32), versions="2+", nullable="2+", default=None, tag=7
    )


class FenceBrokerRecord(Message, record_type=7, versions="0", flexible="0+"):
    """A broker was fenced (superseded by BrokerRegistrationChangeRecord)."""

    id: int = field(INT32)
    epoch: int = field(INT64)


class UnfenceBrokerRecord(Message, record_type=8, versions="0", flexible="0+"):
    """A broker was unfenced (superseded by BrokerRegistrationChangeRecord)."""

    id: int = field(INT32)
    epoch: int = field(INT64)


class RemoveTopicRecord(Message, record_type=9, versions="0", flexible="0+"):
    """A topic is gone, and its partitions with it."""

    topic_id: Uuid = field(UUID)


class DelegationTokenRecord(Message, record_type=10, versions="0", flexible="0+"):
    """A delegation token was made or renewed."""

    owner: str = field(STRING)
    requester: str = field(STRING)
    renewers: list[str] = field(array(STRING))
    issue_timestamp: int = field(INT64)
    max_timestamp: int = field(INT64)
    expiration_timestamp: int = field(INT64)
    token_id: str = field(STRING)


class UserScramCredentialRecord(Message, record_type=11, versions="0", flexible="0+"):
    """A SCRAM credential was set."""

    name: str = field(STRING)
    mechanism: int = field(INT8)  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    salt: bytes = field(BYTES)
    stored_key: bytes = field(BYTES)
    server_key: bytes = field(BYTES)
    iterations: int = field(INT32)


class FeatureLevelRecord(Message, record_type=12, versions="0", flexible="0+"):
    """A feature was finalized at a level."""

    name: str = field(STRING)
    feature_level: int = field(INT16)


class EntityData(Struct):
    """One part of whom a quota is for; null for the default."""

    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable="0+")


class ClientQuotaRecord(Message, record_type=14, versions="0", flexible="0+"):
    """A quota was set or removed."""

    entity: list[EntityData] = field(array(EntityData))
    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOL)


class ProducerIdsRecord(Message, record_type=15, versions="0", flexible="0+"):
    """Producer ids were handed out up to here."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    next_producer_id: int = field(INT64)


class BrokerRegistrationChangeRecord(Message, record_type=17, versions="0-3", flexible="0+"):
    """A broker's fencing, shutdown or log folders changed."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64)
    fenced: int = field(INT8, tag=0)  # -1 unfenced, 0 no change, 1 fenced
    in_controlled_shutdown: int = field(INT8, versions="1+", tag=1)  # 0 no change, 1 shutting down
    log_dirs: list[Uuid] = field(array(UUID), versions="2+", tag=2)
    cordoned_log_dirs: list[Uuid] | None = field(
        array(UUID), versions="3+", nullable="3+", default=None, tag=3
    )


class AccessControlEntryRecord(Message, record_type=18, versions="0", flexible="0+"):
    """An access control entry was made."""

    id: Uuid = field(UUID)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


class RemoveAccessControlEntryRecord(Message, record_type=19, versions="0", flexible="0+"):
    """An access control entry was removed."""

    id: Uuid = field(UUID)


class NoOpRecord(Message, record_type=20, versions="0", flexible="0+"):
    """Nothing changed; the log shows that the controller is alive."""


class RemoveUserScramCredentialRecord(Message, record_type=22, versions="0", flexible="0+"):
    """A SCRAM credential was removed."""

    name: str = field(STRING)
    mechanism: int = field(INT8)  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512


class BeginTransactionRecord(Message, record_type=23, versions="0", flexible="0+"):
    """The records from here on count only once they all are there."""

    name: str | None = field(STRING, nullable="0+", default=None, tag=0)


class EndTransactionRecord(Message, record_type=24, versions="0", flexible="0+"):
    """The records since the beginning count now."""


class AbortTransactionRecord(Message, record_type=25, versions="0", flexible="0+"):
    """The records since the beginning never counted."""

    reason: str | None = field(STRING, nullable="0+", default=None, tag=0)


class RemoveDelegationTokenRecord(Message, record_type=26, versions="0", flexible="0+"):
    """A delegation token was removed."""

    token_id: str = field(STRING)


class ControllerEndpoint(Struct):
    """An address that the controller serves on."""

    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)
    security_protocol: int = field(INT16)


class ControllerFeature(Struct):
    """The levels of a feature that the controller could run."""

    name: str = field(STRING)
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


class RegisterControllerRecord(Message, record_type=27, versions="0", flexible="0+"):
    """A controller introduced itself."""

    controller_id: int = field(INT32)
    incarnation_id: Uuid = field(UUID)
    zk_migration_ready: bool = field(BOOL)
    end_points: list[ControllerEndpoint] = field(array(ControllerEndpoint))
    features: list[ControllerFeature] = field(array(ControllerFeature))


class ClearElrRecord(Message, record_type=28, versions="0", flexible="0+"):
    """Eligible leader replicas were cleared, of one topic or (empty name) of all."""

    topic_name: str = field(STRING)
