"""AddPartitionsToTxn (API key 24): name the partitions that a transaction is about to write.

Clients speak versions 0-3, one transaction in the `v3_and_below` fields. From 4 on brokers use
it among themselves, many transactions at once, also only to verify (KIP-890).
"""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class AddPartitionsToTxnTopic(Struct):
    name: str = field(STRING)
    partitions: list[int] = field(array(INT32))


class AddPartitionsToTxnTransaction(Struct):
    """One transaction and its partitions, from version 4 on."""

    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    verify_only: bool = field(BOOL)
    topics: list[AddPartitionsToTxnTopic] = field(array(AddPartitionsToTxnTopic))


class AddPartitionsToTxnRequest(Message, api_key=24, versions="0-5", flexible="3+"):
    """Add partitions to transactions, or verify that they were added."""

    transactions: list[AddPartitionsToTxnTransaction] = field(
        array(AddPartitionsToTxnTransaction), versions="4+"
    )
    v3_and_below_transactional_id: str = field(STRING, versions="0-3")
    v3_and_below_producer_id: int = field(INT64, versions="0-3")
    v3_and_below_producer_epoch: int = field(INT16, versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(
        array(AddPartitionsToTxnTopic), versions="0-3"
    )

    def version_cap(self, transaction_version: int = 0) -> int:
        """3 for a client's request; only brokers fill `transactions`."""
        return super().version_cap(transaction_version) if self.transactions else 3


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = field(INT32)
    partition_error_code: int = field(INT16)


class AddPartitionsToTxnTopicResult(Struct):
    name: str = field(STRING)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(
        array(AddPartitionsToTxnPartitionResult)
    )


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = field(STRING)
    topic_results: list[AddPartitionsToTxnTopicResult] = field(array(AddPartitionsToTxnTopicResult))


class AddPartitionsToTxnResponse(Message, api_key=24, versions="0-5", flexible="3+"):
    """Which partitions were added."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(
        array(AddPartitionsToTxnResult), versions="4+"
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        array(AddPartitionsToTxnTopicResult), versions="0-3"
    )
