"""Committed offsets of groups: list, alter, reset, delete; and how far groups are behind."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from pyclient.admin.records import look_up_each, look_up_offsets
from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.sending.partition_keys import (
    by_topic,
    partition_name,
    results_by_partition,
    topics_of,
)
from pyclient.admin.sending.requests import AdminRequests
from pyclient.admin.sending.results import Outcome
from pyclient.admin.sending.routes import CoordinatorRoute, to_coordinator
from pyclient.admin.sending.topic_metadata import metadata_request, topics_in
from pyclient.admin.sending.work import Work, raise_first_error
from pyclient.admin.types.enums import member_of
from pyclient.admin.types.groups import OffsetReset, PartitionLag
from pyclient.admin.types.offsets import (
    IsolationLevel,
    OffsetShift,
    OffsetSpec,
    OffsetTimestamp,
    ResetTarget,
)
from pyclient.admin.unread import first_timestamps
from pyclient.errors import (
    BrokerResponseError,
    NoError,
    UnstableOffsetCommitError,
    UnsupportedVersionError,
    for_code,
)
from pyclient.protocol.messages.metadata import MetadataResponse
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pyclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from pyclient.timers import Deadline
from pyclient.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

GroupSpecs: TypeAlias = Mapping[str, Iterable[TopicPartition] | None] | Iterable[str] | str
_Partitions: TypeAlias = Sequence[TopicPartition] | None
_Committed: TypeAlias = dict[TopicPartition, OffsetAndMetadata]
_COMMITTABLE = (OffsetSpec, OffsetTimestamp, OffsetShift, datetime, timedelta, int)


class GroupOffsetCalls(AdminCalls):
    """The calls about committed offsets."""

    def list_group_offsets(
        self, group_specs: GroupSpecs, require_stable: bool = False
    ) -> dict[str, _Committed]:
        """The committed offsets of groups, by group and partition.

        A partition that was asked for and has none has the offset -1.

        Args:
            group_specs: one group, several, or partitions by group; None for all it has.
            require_stable: wait until no open transaction is about to commit an offset of the
                group; by default such offsets are as they were before it (Kafka 2.5 and later).

        Raises:
            KafkaTimeoutError: a transaction was still open after `default_api_timeout_ms`.
            KafkaError: the offsets of a group could not be read.
        """
        if isinstance(group_specs, str):
            group_specs = [group_specs]
        if not isinstance(group_specs, Mapping):
            group_specs = dict.fromkeys(group_specs)
        if not group_specs:
            raise ValueError("there is no group to list the offsets of")
        specs = {key: None if of is None else list(of) for key, of in group_specs.items()}
        deadline = self._requests.deadline()
        return committed_offsets(self._requests, specs, deadline, require_stable=require_stable)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        group_coordinator_id: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of one group: kafka-python 2's `list_group_offsets`.

        Args:
            group_id: the group.
            group_coordinator_id: the group's coordinator, if it is known already.
            partitions: which partitions; by default all that it has committed.
        """
        wanted = None if partitions is None else list(partitions)
        deadline = self._requests.deadline()
        outcome = _committed_of_one(
            self._requests, group_id, wanted, deadline, coordinator=group_coordinator_id
        )
        return _offsets_of(group_id, outcome)

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_coordinator_id: int | None = None,
    ) -> dict[TopicPartition, type[BrokerResponseError]]:
        """Commit offsets for a group without members; `NoError` or the error by partition.

        While the group has members, the error is `UnknownMemberIdError`.

        Args:
            group_id: the group; it is created if it does not exist.
            offsets: what to commit.
            group_coordinator_id: the group's coordinator, if it is known already.
        """
        deadline = self._requests.deadline()
        return self._commit(group_id, offsets, group_coordinator_id, deadline)

    def _commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        coordinator: int | None,
        deadline: Deadline,
    ) -> dict[TopicPartition, type[BrokerResponseError]]:
        work = Work(
            {key: (key, _to_commit(key, one)) for key, one in offsets.items()},
            lambda pending: OffsetCommitRequest(
                group_id=group_id,
                topics=topics_of(OffsetCommitRequestTopic, pending),
            ),
            results_by_partition,
            partition_name,
            to_coordinator(self._requests, group_id, coordinator),
            deadline,
            repeatable=True,
        )
        return _error_classes(self._requests.settle(work))

    def delete_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        group_coordinator_id: int | None = None,
    ) -> dict[TopicPartition, type[BrokerResponseError]]:
        """Delete committed offsets; `NoError` or the error by partition.

        While members subscribe to a topic, its offsets stay: `GroupSubscribedToTopicError`.

        Args:
            group_id: the group.
            partitions: whose offsets to delete.
            group_coordinator_id: the group's coordinator, if it is known already.

        Raises:
            KafkaError: none was deleted, as in `GroupIdNotFoundError`.
        """

        def results_of(response: OffsetDeleteResponse) -> Iterable[tuple[TopicPartition, Any]]:
            if response.error_code:
                raise for_code(response.error_code)(f"group {group_id!r}")
            return results_by_partition(response)

        outcomes = self._requests.settle(
            Work(
                {
                    key: (key, OffsetDeleteRequestPartition(partition_index=key.partition))
                    for key in partitions
                },
                lambda pending: OffsetDeleteRequest(
                    group_id=group_id, topics=topics_of(OffsetDeleteRequestTopic, pending)
                ),
                results_of,
                partition_name,
                to_coordinator(self._requests, group_id, group_coordinator_id),
                self._requests.deadline(),
                repeatable=True,
            )
        )
        return _error_classes(outcomes)

    def reset_group_offsets(
        self,
        group_id: str,
        offset_specs: Mapping[TopicPartition | str, ResetTarget] | ResetTarget,
        group_coordinator_id: int | None = None,
        dry_run: bool = False,
    ) -> dict[TopicPartition, OffsetReset]:
        """Move the committed offsets of a group without members; by partition where to.

        A target outside of a partition is moved to its nearest end. If there is no record at or
        after a time, that is the end.

        Args:
            group_id: the group.
            offset_specs: targets by partition, or by topic for all its partitions, or one for
                everything that the group has committed. A target is `OffsetSpec.EARLIEST` or
                `LATEST`, a time (`datetime` or `OffsetTimestamp`), how long ago (`timedelta`),
                how far from the committed offset (`OffsetShift`), or an offset.
            group_coordinator_id: the group's coordinator, if it is known already.
            dry_run: only return where the offsets would be moved to.

        Raises:
            ValueError: a target is not possible, as a shift without a committed offset.
            KafkaError: an offset could not be looked up.
        """
        deadline = self._requests.deadline()
        targets = self._reset_targets(group_id, offset_specs, deadline)
        if not targets:
            return {}
        committed = committed_offsets(self._requests, {group_id: list(targets)}, deadline)[group_id]
        found = self._resolve(targets, committed, deadline)
        errors: dict[TopicPartition, type[BrokerResponseError]] = dict.fromkeys(found, NoError)
        if not dry_run:
            errors = self._commit(group_id, found, group_coordinator_id, deadline)
        return {
            key: OffsetReset(error=errors[key], offset=one.offset) for key, one in found.items()
        }

    def _reset_targets(
        self,
        group_id: str,
        specs: Mapping[TopicPartition | str, ResetTarget] | ResetTarget,
        deadline: Deadline,
    ) -> dict[TopicPartition, ResetTarget]:
        if not isinstance(specs, Mapping):
            _check_target(group_id, specs)
            committed = committed_offsets(self._requests, {group_id: None}, deadline)[group_id]
            return dict.fromkeys(committed, specs)
        for key, target in specs.items():
            _check_target(key, target)
        topics = [key for key in specs if isinstance(key, str)]
        targets: dict[TopicPartition, ResetTarget] = {}
        if topics:
            response = self._requests.ask(metadata_request(topics), MetadataResponse, deadline)
            targets |= {
                TopicPartition(topic.name or "", one.partition_index): specs[topic.name or ""]
                for topic in topics_in(response)
                for one in topic.partitions
            }
        partitions = {key: one for key, one in specs.items() if not isinstance(key, str)}
        return targets | partitions

    def _resolve(
        self,
        targets: Mapping[TopicPartition, ResetTarget],
        committed: _Committed,
        deadline: Deadline,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets that targets stand for, within each partition's range."""
        level = IsolationLevel.READ_UNCOMMITTED
        now_ms = self._requests.now_ms()
        asked = {
            key: spec for key, one in targets.items() if (spec := _spec(one, now_ms)) is not None
        }
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        if asked:
            found = look_up_offsets(self._requests, asked, level, deadline)
        first, last = (
            look_up_offsets(self._requests, dict.fromkeys(targets, spec), level, deadline)
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        )
        resolved = {}
        for key, target in targets.items():
            if key in found:
                offset = found[key].offset if found[key].offset >= 0 else last[key].offset
            elif isinstance(target, OffsetShift):
                if committed[key].offset < 0:
                    raise ValueError(f"{partition_name(key)} has no committed offset to shift")
                offset = committed[key].offset + target
            else:
                assert isinstance(target, int)
                offset = target
            offset = min(max(offset, first[key].offset), last[key].offset)
            resolved[key] = OffsetAndMetadata(offset, committed[key].metadata)
        return resolved

    def lag(
        self,
        group_id: str,
        isolation_level: IsolationLevel | str | int = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, PartitionLag]:
        """How far a group is behind, in records and in time, by partition that it committed.

        For the time, the first unread batch of each partition is fetched.

        Args:
            group_id: the group; without committed offsets, the result is empty.
            isolation_level: `read_committed` for ends before the first open transaction, where
                such consumers stop.
            timeout_ms: how long the call may take; by default `default_api_timeout_ms`.

        Raises:
            KafkaError: the committed offsets could not be read.
        """
        level = member_of(IsolationLevel, isolation_level)
        deadline = self._requests.deadline(timeout_ms)
        committed = {
            key: one.offset
            for key, one in committed_offsets(self._requests, {group_id: None}, deadline)[
                group_id
            ].items()
            if one.offset >= 0
        }
        if not committed:
            return {}
        first, last = (
            look_up_each(self._requests, dict.fromkeys(committed, spec), level, deadline)
            for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        )
        errors = {key: first[key].error or last[key].error for key in committed}
        unread = {}
        for key, offset in committed.items():
            start = max(offset, first[key].result.offset)
            if errors[key] is None and start < last[key].result.offset:
                unread[key] = start
        written_ms = first_timestamps(self._requests, unread, level, deadline)
        now_ms = self._requests.now_ms()
        lags = {}
        for key, offset in committed.items():
            lag = PartitionLag(committed=offset, end=None, lag=None, time_lag_ms=None, error=None)
            if (error := errors[key]) is not None:
                lag["error"] = str(error)
            else:
                end = last[key].result.offset
                age = _time_lag_ms(written_ms[key], now_ms) if key in unread else 0
                lag.update(end=end, lag=end - offset, time_lag_ms=age)
            lags[key] = lag
        return lags


def committed_offsets(
    requests: AdminRequests,
    specs: Mapping[str, _Partitions],
    deadline: Deadline,
    *,
    require_stable: bool = False,
) -> dict[str, _Committed]:
    """The committed offsets of groups; see `GroupOffsetCalls.list_group_offsets`."""
    if len(specs) > 1:
        try:
            outcomes = requests.settle(
                Work(
                    {group: (group, of) for group, of in specs.items()},
                    lambda pending: OffsetFetchRequest(
                        groups=[_fetch_group(group, of) for group, of in pending],
                        require_stable=require_stable,
                    ),
                    lambda response: ((one.group_id, _settled(one)) for one in response.groups),
                    lambda group: f"group {group!r}",
                    CoordinatorRoute(requests),
                    deadline,
                    repeatable=True,
                )
            )
            return {group: _offsets_of(group, one) for group, one in outcomes.items()}
        except UnsupportedVersionError:  # before Kafka 3.0
            pass
    return {
        group: _offsets_of(
            group,
            _committed_of_one(requests, group, of, deadline, require_stable=require_stable),
        )
        for group, of in specs.items()
    }


def _committed_of_one(
    requests: AdminRequests,
    group: str,
    partitions: _Partitions,
    deadline: Deadline,
    coordinator: int | None = None,
    *,
    require_stable: bool = False,
) -> Outcome[Any]:
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopic(name=name, partition_indexes=of)
            for name, of in _numbers_by_topic(partitions).items()
        ]
    request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=require_stable)
    work: Work[str, None, Any] = Work(
        {group: None},
        lambda _pending: request,
        lambda response: [(group, _settled(response))],
        lambda group: f"group {group!r}",
        to_coordinator(requests, group, coordinator),
        deadline,
        repeatable=True,
    )
    return requests.settle(work)[group]


def _settled(answer: Any) -> Any:
    """A group's answer; while an offset is about to change, that is the answer for the group."""
    unstable = UnstableOffsetCommitError.code
    if any(one.error_code == unstable for _, one in results_by_partition(answer)):
        answer.error_code = unstable
    return answer


def _fetch_group(group: str, partitions: _Partitions) -> OffsetFetchRequestGroup:
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=of)
            for name, of in _numbers_by_topic(partitions).items()
        ]
    return OffsetFetchRequestGroup(group_id=group, topics=topics)


def _numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    return by_topic((key, key.partition) for key in map(TopicPartition._make, partitions))


def _offsets_of(group: str, outcome: Outcome[Any]) -> _Committed:
    raise_first_error({group: outcome})
    found: _Committed = {}
    for key, one in results_by_partition(outcome.result):
        if one.error_code:
            raise for_code(one.error_code)(f"group {group!r}, {partition_name(key)}")
        found[key] = OffsetAndMetadata(
            one.committed_offset, one.metadata, one.committed_leader_epoch
        )
    return found


def _to_commit(key: TopicPartition, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    epoch = offset.leader_epoch
    return OffsetCommitRequestPartition(
        partition_index=key.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if epoch is None else epoch,
        committed_metadata=offset.metadata,
    )


def _error_classes(
    outcomes: Mapping[TopicPartition, Outcome[Any]],
) -> dict[TopicPartition, type[BrokerResponseError]]:
    return {key: for_code(one.result.error_code) for key, one in outcomes.items()}


def _check_target(key: object, target: object) -> None:
    if not isinstance(target, _COMMITTABLE) or isinstance(target, bool):
        raise TypeError(
            f"{key}: {target!r} is no target of a reset; there are OffsetSpec, OffsetTimestamp,"
            " datetime, timedelta, OffsetShift and plain offsets"
        )
    if isinstance(target, datetime) and target.tzinfo is None:
        raise ValueError(f"{key}: {target} has no time zone; give it one, as in tzinfo=UTC")
    if type(target) is int and target < 0:
        raise ValueError(f"{key}: an offset cannot be negative: {target}")


def _spec(target: ResetTarget, now_ms: int) -> OffsetSpec | int | None:
    """What ListOffsets has to be asked for; None if the target needs no lookup."""
    if isinstance(target, OffsetSpec):
        return target
    if isinstance(target, datetime):
        at_ms = int(target.timestamp() * 1000)
    elif isinstance(target, timedelta):
        at_ms = now_ms - int(target.total_seconds() * 1000)
    elif isinstance(target, OffsetTimestamp):
        at_ms = int(target)
    else:
        return None
    return max(0, at_ms)  # negative numbers have other meanings there


def _time_lag_ms(written_ms: int | None, now_ms: int) -> int | None:
    return None if written_ms is None else max(0, now_ms - written_ms)
