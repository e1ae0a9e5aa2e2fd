"""Fetch sessions (KIP-227): a client names its partitions once, then only what changes.

A session remembers the client's partitions, their fetch offsets, and what the client was told
last; an incremental response has only partitions that changed. Without a free slot the session id
is 0, and the client keeps sending full requests. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from pyclient.entropy import Entropy
from pyclient.error_codes import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpochError,
)
from pyclient.protocol.primitives import Uuid

if TYPE_CHECKING:
    from broker_stub.replica.read_partitions import FetchParams, FetchPartitionData

NO_SESSION: Final = 0
_INITIAL_EPOCH: Final = 0
_FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 2**31 - 1
# A session that was used within this time is not evicted.
_EVICTABLE_AFTER_MS: Final = 120_000

FetchKey = tuple[Uuid, str, int]
"""Topic id, topic name (one of the two is empty, by version), partition."""

FetchedTopics: TypeAlias = "dict[tuple[Uuid, str], list[FetchPartitionData]]"
"""What was read of each topic, by its id and name (one of the two is empty, by version)."""


class FetchTarget:
    """A partition to fetch, and what the client was last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "key",
        "partition_max_bytes",
        "told_high_watermark",
        "told_log_start_offset",
    )

    def __init__(
        self, key: FetchKey, fetch_offset: int, partition_max_bytes: int, leader_epoch: int
    ) -> None:
        self.key = key
        self.fetch_offset = fetch_offset
        self.partition_max_bytes = partition_max_bytes
        self.current_leader_epoch = leader_epoch
        self.told_high_watermark = -1
        self.told_log_start_offset = -1

    def is_news(self, data: FetchPartitionData) -> bool:
        """Whether an incremental response needs this partition."""
        return (
            data.records is not None
            or data.error_code != 0
            or data.high_watermark != self.told_high_watermark
            or data.log_start_offset != self.told_log_start_offset
        )

    def told(self, data: FetchPartitionData) -> None:
        """Remember what the client knows now. An error is repeated until it is gone."""
        failed = data.error_code != 0
        self.told_high_watermark = -1 if failed else data.high_watermark
        self.told_log_start_offset = -1 if failed else data.log_start_offset


class FetchSession:
    """The partitions of one client's fetches, in the order they are served."""

    __slots__ = ("by_id", "epoch", "last_used_ms", "session_id", "targets")

    def __init__(self, session_id: int, *, by_id: bool, targets: Iterable[FetchTarget]) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.targets = {target.key: target for target in targets}
        self.epoch = 1
        self.last_used_ms = 0.0

    def served(self, key: FetchKey) -> None:
        """Move a partition that gave records to the end, so that all get their turn."""
        target = self.targets.pop(key, None)
        if target is not None:
            self.targets[key] = target


class FetchContext:
    """The partitions that one request fetches, and the session they belong to."""

    __slots__ = ("incremental", "session", "targets")

    def __init__(
        self, targets: list[FetchTarget], session: FetchSession | None, *, incremental: bool
    ) -> None:
        self.targets = targets
        self.session = session
        self.incremental = incremental

    @property
    def session_id(self) -> int:
        """The session id of the response; 0 without a session."""
        return NO_SESSION if self.session is None else self.session.session_id

    def update_session(
        self, data: Iterable[tuple[FetchTarget, FetchPartitionData]]
    ) -> FetchedTopics:
        """Note what the client will know; return what its response has to hold.

        In an incremental fetch that is only what has changed.
        """
        session = self.session
        topics: FetchedTopics = {}
        for target, read in data:
            if self.incremental and not target.is_news(read):
                continue
            if session is not None:
                target.told(read)
                if read.records is not None:
                    session.served(target.key)
            topic_id, name, _ = target.key
            topics.setdefault((topic_id, name), []).append(read)
        return topics


class FetchSessionCache:
    """The sessions of all clients, least recently used first."""

    def __init__(self, slots: int, entropy: Entropy) -> None:
        self._slots = slots
        self._entropy = entropy
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self, session_id: int) -> list[FetchKey]:
        """The partitions of a session; none if it is unknown."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.targets)

    def new_context(self, params: FetchParams, now_ms: float) -> FetchContext:
        """The partitions that a request fetches; updates its session.

        Raises:
            FetchSessionIdNotFoundError: there is no such session, or it was evicted.
            InvalidFetchSessionEpochError: a request was lost, repeated or reordered.
            FetchSessionTopicIdError: the session names topics by id, the request by name, or the
                reverse.
        """
        if params.session_epoch in (_INITIAL_EPOCH, _FINAL_EPOCH):
            self._sessions.pop(params.session_id, None)
            session = None
            if params.session_epoch == _INITIAL_EPOCH and params.targets:
                session = self._open(params.targets, by_id=params.by_id, now_ms=now_ms)
            return FetchContext(params.targets, session, incremental=False)
        return self._continue(params, now_ms)

    def _continue(self, params: FetchParams, now_ms: float) -> FetchContext:
        session = self._sessions.get(params.session_id)
        if session is None:
            raise FetchSessionIdNotFoundError(f"there is no fetch session {params.session_id}")
        if session.by_id != params.by_id:
            raise FetchSessionTopicIdError("a fetch session can't mix topic ids and names")
        if params.session_epoch != session.epoch:
            raise InvalidFetchSessionEpochError(
                f"fetch session epoch {params.session_epoch}, expected {session.epoch}"
            )
        for key in params.forgotten:
            session.targets.pop(key, None)
        for target in params.targets:
            known = session.targets.get(target.key)
            if known is None:
                session.targets[target.key] = target
            else:
                known.fetch_offset = target.fetch_offset
                known.partition_max_bytes = target.partition_max_bytes
                known.current_leader_epoch = target.current_leader_epoch
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        del self._sessions[session.session_id]
        if session.targets:
            self._keep(session, now_ms)
            return FetchContext(list(session.targets.values()), session, incremental=True)
        return FetchContext([], None, incremental=True)

    def _open(
        self, targets: list[FetchTarget], *, by_id: bool, now_ms: float
    ) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._evict(now_ms):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._entropy.below(2**31)
        session = FetchSession(session_id, by_id=by_id, targets=targets)
        self._keep(session, now_ms)
        return session

    def _keep(self, session: FetchSession, now_ms: float) -> None:
        session.last_used_ms = now_ms
        self._sessions[session.session_id] = session  # at the end: the most recently used

    def _evict(self, now_ms: float) -> bool:
        """Evict the least recently used session, if it is old enough; whether it was."""
        for session in self._sessions.values():
            if now_ms - session.last_used_ms > _EVICTABLE_AFTER_MS:
                del self._sessions[session.session_id]
                return True
            break
        return False
