"""TxnOffsetCommit (API key 28): a group's offsets, committed with a transaction.

Version 5 asks for transaction.version 2: the coordinator adds the group by itself.
"""

from pyclient.protocol.primitives import INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class TxnOffsetCommitRequestPartition(Struct):
    """The offset to commit for one partition."""

    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, versions="2+", default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, nullable="0+")


class TxnOffsetCommitRequestTopic(Struct):
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitRequestPartition] = field(
        array(TxnOffsetCommitRequestPartition)
    )


class TxnOffsetCommitRequest(Message, api_key=28, versions="0-5", flexible="3+"):
    """Commit a group's offsets if the transaction commits."""

    transactional_id: str = field(STRING)
    group_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    generation_id: int = field(INT32, versions="3+", default=-1)
    member_id: str = field(STRING, versions="3+")
    group_instance_id: str | None = field(STRING, versions="3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field(array(TxnOffsetCommitRequestTopic))

    __slots__ = ("_transaction_version",)

    def use_transaction_version(self, version: int) -> None:
        """Send it in the protocol of its transaction, whatever the broker reports by now."""
        self._transaction_version = version

    def version_cap(self, transaction_version: int = 0) -> int:
        """4 before transaction.version 2."""
        transaction_version = getattr(self, "_transaction_version", transaction_version)
        return 4 if transaction_version < 2 else super().version_cap(transaction_version)


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


class TxnOffsetCommitResponseTopic(Struct):
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitResponsePartition] = field(
        array(TxnOffsetCommitResponsePartition)
    )


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-5", flexible="3+"):
    """Which offsets are pending."""

    throttle_time_ms: int = field(INT32)
    topics: list[TxnOffsetCommitResponseTopic] = field(array(TxnOffsetCommitResponseTopic))
