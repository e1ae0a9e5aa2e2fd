"""A fetch: reads its partitions, waits if there is too little, and answers when there is enough.

Knows nothing of the wire: the handler of Fetch decodes terms and encodes what was read, and so
does the data path, by hand. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

from broker_stub.purgatory import DelayedOperation
from broker_stub.replica.fetch_sessions import FetchKey, FetchPlan, FetchTarget
from broker_stub.request import Parked
from pyclient.error_codes import (
    BrokerResponseError,
    FencedLeaderEpochError,
    NotLeaderOrFollowerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.primitives import Uuid, part_length

if TYPE_CHECKING:
    from broker_stub.log.files.file_slice import FileSlice
    from broker_stub.node import Node
    from broker_stub.replica.partition import Partition

Answer = TypeVar("Answer")

READ_COMMITTED: Final = 1  # the isolation level
_WRONG_ABOUT_LEADER: Final = (NotLeaderOrFollowerError.code, FencedLeaderEpochError.code)

# A file range keeps its file open until it is sent, and costs a system call of its own then:
# small ones are read at once instead. Either way an answer holds so much at most, and what does
# not fit comes with the next one. So ten thousand partitions need neither as many files nor
# their bytes in memory.
_COPIED_UP_TO: Final = 64 << 10
_COPIED_IN_ALL: Final = 4 << 20
_FILE_RANGES_MAX: Final = 64


class FetchTerms(NamedTuple):
    """What a client asks for."""

    session_id: int
    session_epoch: int
    by_id: bool
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    committed_only: bool
    targets: list[FetchTarget]
    forgotten: list[FetchKey]


class PartitionRead:
    """What one partition gave: records or an error, and where it stands."""

    __slots__ = (
        "aborted",
        "error_code",
        "high_watermark",
        "index",
        "last_stable_offset",
        "leader",
        "log_start_offset",
        "records",
    )

    def __init__(self, index: int, error_code: int = 0) -> None:
        self.index = index
        self.error_code = error_code
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.aborted: list[tuple[int, int]] | None = None
        """Producer id and first offset of transactions to skip; None if nobody asked."""
        self.records: FileSlice | bytes | None = None
        self.leader: tuple[int, int] | None = None
        """Who leads, in which epoch, where the client was wrong about that."""

    @property
    def nbytes(self) -> int:
        """How many bytes of records there are."""
        return 0 if self.records is None else part_length(self.records)


ReadTopics: TypeAlias = "dict[tuple[Uuid, str], list[PartitionRead]]"
"""What was read of each topic, by its id and name: one of the two is empty, by version."""


def fetch(
    node: Node, terms: FetchTerms, encode: Callable[[int, ReadTopics], Answer]
) -> Answer | Parked[Answer]:
    """Read, or wait until there is something to read.

    Args:
        node: where.
        terms: what is asked for.
        encode: makes the answer of a session id and of what was read.

    Raises:
        BrokerResponseError: the session is not as the client thinks; nothing has been done.
    """
    plan = node.fetch_sessions.plan(terms, node.clock.monotonic_ms())
    pending = _Fetch(node, terms, plan, encode)
    read = pending.read()
    if pending.is_enough(read) or terms.max_wait_ms <= 0 or not plan.targets:
        return pending.answer(read)
    delayed = _DelayedFetch(pending, read)
    node.purgatory.watch(delayed, delayed.targets, terms.max_wait_ms)
    delayed.parked.on_abandoned = lambda: node.purgatory.forget(delayed)
    return delayed.parked


class _Read:
    """What one pass over the partitions gave."""

    __slots__ = ("copied", "data", "file_ranges", "final", "nbytes", "partitions")

    def __init__(self) -> None:
        self.data: list[tuple[FetchTarget, PartitionRead]] = []
        self.partitions: list[Partition] = []
        self.nbytes = 0
        self.copied = 0
        self.file_ranges = 0
        self.final = False
        """Waiting could not make it better: an error, or more than fits."""

    @property
    def is_full(self) -> bool:
        """Whether it holds as much as an answer may, however few bytes that are."""
        return self.file_ranges >= _FILE_RANGES_MAX or self.copied >= _COPIED_IN_ALL

    def take(self, records: FileSlice) -> FileSlice | bytes:
        """What to answer for a range of a file: the range, or its bytes."""
        if records.nbytes > _COPIED_UP_TO:
            self.file_ranges += 1
            return records
        self.copied += records.nbytes
        return records.read()


class _Fetch(Generic[Answer]):
    """One request: reads its partitions, at once and again when it is woken."""

    __slots__ = (
        "_by_id",
        "_committed_only",
        "_encode",
        "_max_bytes",
        "_node",
        "_plan",
        "min_bytes",
    )

    def __init__(
        self,
        node: Node,
        terms: FetchTerms,
        plan: FetchPlan,
        encode: Callable[[int, ReadTopics], Answer],
    ) -> None:
        self._node = node
        self._plan = plan
        self._encode = encode
        self._by_id = terms.by_id
        self._committed_only = terms.committed_only
        self.min_bytes = terms.min_bytes
        self._max_bytes = min(terms.max_bytes, node.config["fetch.max.bytes"])

    def read(self, targets: Sequence[FetchTarget] | None = None) -> _Read:
        """Read every partition, or only some, within the limits."""
        read = _Read()
        for target in self._plan.targets if targets is None else targets:
            partition: Partition | None = None
            try:
                partition = self._partition(target)
                partition.check_leader(target.current_leader_epoch)
                read.partitions.append(partition)
                data = self._read_partition(partition, target, read)
            except BrokerResponseError as error:
                data = PartitionRead(target.key[2], error.code)
                if partition is not None and error.code in _WRONG_ABOUT_LEADER:
                    data.leader = partition.leader, partition.leader_epoch
                read.final = True
            read.data.append((target, data))
            read.nbytes += data.nbytes
        return read

    def _partition(self, target: FetchTarget) -> Partition:
        topic_id, name, index = target.key
        if self._by_id:
            topic = self._node.image.topic_by_id(topic_id)
            if topic is None:
                raise UnknownTopicIdError()
        else:
            topic = self._node.image.topic(name)
            if topic is None:
                raise UnknownTopicOrPartitionError()
        return self._node.replicas.partition_of(topic, index)

    def _read_partition(
        self, partition: Partition, target: FetchTarget, before: _Read
    ) -> PartitionRead:
        end = partition.readable_end(committed_only=self._committed_only)
        room = 0 if before.is_full else self._max_bytes - before.nbytes
        read = partition.read(
            target.fetch_offset,
            min(target.partition_max_bytes, room),
            limit_offset=end,
            # The first records of a response go out whatever their size, or a batch above
            # the client's limit would stop it for ever.
            min_one_batch=before.nbytes == 0,
        )
        if read.next_offset < end:
            before.final = True  # a limit, or the end of a segment, cut it off
        data = PartitionRead(partition.index)
        data.high_watermark = partition.high_watermark
        data.last_stable_offset = partition.last_stable_offset
        data.log_start_offset = partition.log_start_offset
        data.records = None if read.records is None else before.take(read.records)
        if self._committed_only:
            data.aborted = []
            if read.records is not None:
                aborted = partition.aborted_transactions(target.fetch_offset, read.next_offset)
                data.aborted = [(one.producer_id, one.first_offset) for one in aborted]
        return data

    def is_enough(self, read: _Read) -> bool:
        """Whether the client would not want to wait for more."""
        return read.final or read.nbytes >= self.min_bytes

    def answer(self, read: _Read) -> Answer:
        """The answer; in a session only what is news, and the session remembers it."""
        plan = self._plan
        session = plan.session
        topics: ReadTopics = {}
        for target, data in read.data:
            if plan.incremental and not target.is_news(data):
                continue
            if session is not None:
                target.told(data)
                if data.records is not None:
                    session.served(target.key)
            topic_id, name, _ = target.key
            topics.setdefault((topic_id, name), []).append(data)
        return self._encode(plan.session_id, topics)


class _DelayedFetch(DelayedOperation, Generic[Answer]):
    """A fetch that waits for records: an append costs it one partition, not all of them."""

    def __init__(self, pending: _Fetch[Answer], read: _Read) -> None:
        self._pending = pending
        self.parked: Parked[Answer] = Parked()
        # Nothing has failed yet, so there is a partition for every target.
        found = list(zip(read.partitions, read.data, strict=True))
        self.targets: dict[Hashable, FetchTarget] = {
            partition.key: target for partition, (target, _) in found
        }
        self._nbytes: dict[Hashable, int] = {
            partition.key: data.nbytes for partition, (_, data) in found
        }
        self._nbytes_in_all = sum(self._nbytes.values())

    def try_complete(self, key: Hashable) -> bool:
        """Answer if there is enough by now."""
        read = self._pending.read([self.targets[key]])
        self._nbytes_in_all += read.nbytes - self._nbytes[key]
        self._nbytes[key] = read.nbytes
        if not read.final and self._nbytes_in_all < self._pending.min_bytes:
            return False
        self.parked.answer(self._pending.answer(self._pending.read()))
        return True

    def expire(self) -> None:
        """Answer with what there is."""
        self.parked.answer(self._pending.answer(self._pending.read()))
