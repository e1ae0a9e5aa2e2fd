"""Records of partitions: which offsets there are, and deleting the oldest."""

from collections.abc import Mapping
from typing import Final

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.partition_keys import (
    partition_name,
    results_by_partition,
    topics_of,
)
from pyclient.admin.sending.requests import AdminRequests
from pyclient.admin.sending.results import Outcome
from pyclient.admin.sending.routes import LeaderRoute, to_node
from pyclient.admin.sending.work import Route, Work, raise_first_error
from pyclient.admin.types.enums import member_of
from pyclient.admin.types.offsets import IsolationLevel, OffsetSpec
from pyclient.admin.types.topics import DeletedRecords
from pyclient.error_codes import code_of
from pyclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pyclient.timers import Deadline
from pyclient.types import OffsetAndTimestamp, TopicPartition

_NO_REPLICA: Final = -1


class RecordCalls(AdminCalls):
    """The calls that look up offsets and delete records, at each partition's leader."""

    def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, int],
        timeout_ms: float | None = None,
        partition_leader_id: int | None = None,
    ) -> dict[TopicPartition, DeletedRecords]:
        """Delete the records before an offset; by partition where it starts now.

        Args:
            records_to_delete: the first offset to keep by partition; -1 deletes all there is.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.
            partition_leader_id: the leader of all of them, if it is known already.

        Raises:
            KafkaError: records could not be deleted, as in `OffsetOutOfRangeError`.
        """
        deadline = self._requests.deadline(timeout_ms)
        outcomes = self._requests.settle(
            Work(
                {
                    key: (key, DeleteRecordsPartition(partition_index=key.partition, offset=offset))
                    for key, offset in records_to_delete.items()
                },
                lambda pending: DeleteRecordsRequest(
                    topics=topics_of(DeleteRecordsTopic, pending),
                    timeout_ms=int(deadline.remaining_ms()),
                ),
                results_by_partition,
                partition_name,
                self._leaders(partition_leader_id),
                deadline,
                repeatable=True,  # before the same offset there is nothing to delete any more
            )
        )
        raise_first_error(outcomes)
        return {key: DeletedRecords.of(outcome.result) for key, outcome in outcomes.items()}

    def list_partition_offsets(
        self,
        topic_partition_specs: Mapping[TopicPartition, OffsetSpec | int],
        isolation_level: IsolationLevel | str | int = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Look offsets up, by a time in milliseconds or an `OffsetSpec`.

        Args:
            topic_partition_specs: what to look up in each partition.
            isolation_level: `READ_COMMITTED` for ends before the first open transaction.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.

        Raises:
            KafkaError: an offset could not be looked up.
        """
        level = member_of(IsolationLevel, isolation_level)
        deadline = self._requests.deadline(timeout_ms)
        return look_up_offsets(self._requests, topic_partition_specs, level, deadline)

    def _leaders(self, leader: int | None) -> Route[TopicPartition]:
        if leader is None:
            return LeaderRoute(self._requests)
        return to_node(leader)


def look_up_offsets(
    requests: AdminRequests,
    specs: Mapping[TopicPartition, OffsetSpec | int],
    level: IsolationLevel,
    deadline: Deadline,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Look offsets up at the leaders; see `RecordCalls.list_partition_offsets`."""
    outcomes = look_up_each(requests, specs, level, deadline)
    raise_first_error(outcomes)
    return {
        key: OffsetAndTimestamp(
            result.offset,
            result.timestamp,
            result.leader_epoch if result.leader_epoch >= 0 else None,
        )
        for key, (result, _) in outcomes.items()
    }


def look_up_each(
    requests: AdminRequests,
    specs: Mapping[TopicPartition, OffsetSpec | int],
    level: IsolationLevel,
    deadline: Deadline,
) -> dict[TopicPartition, Outcome[ListOffsetsPartitionResponse]]:
    """The same, with an outcome for each partition."""
    return requests.settle(
        Work(
            {
                key: (key, ListOffsetsPartition(partition_index=key.partition, timestamp=spec))
                for key, spec in specs.items()
            },
            lambda pending: ListOffsetsRequest(
                replica_id=_NO_REPLICA,
                isolation_level=level,
                topics=topics_of(ListOffsetsTopic, pending),
                timeout_ms=int(deadline.remaining_ms()),
            ),
            results_by_partition,
            partition_name,
            LeaderRoute(requests),
            deadline,
            repeatable=True,
            refusal=lambda key, error: ListOffsetsPartitionResponse(
                partition_index=key.partition, error_code=code_of(error)
            ),
        )
    )
