"""AlterPartition (API key 56): a leader changes the in-sync replicas of its partitions.

Version 3 gives every replica with its broker epoch, so that a restarted broker is not taken for
the one that was in sync.
"""

from pyclient.protocol.primitives import INT8, INT16, INT32, INT64, UUID, Uuid
from pyclient.protocol.schema import Message, Struct, array, field


class BrokerState(Struct):
    """A replica and its broker's epoch."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


class PartitionData(Struct):
    """The in-sync replicas that the leader proposes."""

    partition_index: int = field(INT32)
    leader_epoch: int = field(INT32)
    new_isr: list[int] = field(array(INT32), versions="0-2")
    new_isr_with_epochs: list[BrokerState] = field(array(BrokerState), versions="3+")
    leader_recovery_state: int = field(INT8)  # 0 recovered, 1 recovering
    partition_epoch: int = field(INT32)


class TopicData(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


class AlterPartitionRequest(Message, api_key=56, versions="2-3", flexible="0+"):
    """Propose new in-sync replicas."""

    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    topics: list[TopicData] = field(array(TopicData))


class PartitionResult(Struct):
    """The partition as the controller holds it now."""

    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    isr: list[int] = field(array(INT32))
    leader_recovery_state: int = field(INT8)  # 0 recovered, 1 recovering
    partition_epoch: int = field(INT32)


class TopicResult(Struct):
    topic_id: Uuid = field(UUID)
    partitions: list[PartitionResult] = field(array(PartitionResult))


class AlterPartitionResponse(Message, api_key=56, versions="2-3", flexible="0+"):
    """What the controller made of the proposals."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    topics: list[TopicResult] = field(array(TopicResult))
