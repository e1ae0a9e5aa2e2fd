"""Where a member's session expires: after its session timeout without a sign of life.

A member whose JoinGroup or SyncGroup is parked cannot send heartbeats, so its session is extended
while it waits; a new member's only for `NEW_MEMBER_JOIN_TIMEOUT_MS`. Serving thread only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_stub.purgatory import Timer, Timers

if TYPE_CHECKING:
    from broker_stub.coordinator.groups.member import Member

# A client that gives up on a long rebalance and joins again as a new member would otherwise leave
# one member behind per attempt.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000


class Session:
    """A deadline that `extend` moves.

    A heartbeat comes several times per session. It only moves the deadline; the timer notices when
    it fires, and starts again for the remaining time.
    """

    __slots__ = ("_deadline_ms", "_on_expired", "_timer", "_timers", "started_ms")

    def __init__(self, timers: Timers, timeout_ms: float, on_expired: Callable[[], None]) -> None:
        self._timers = timers
        self._on_expired = on_expired
        self.started_ms = timers.now_ms()
        self._deadline_ms = self.started_ms + timeout_ms
        self._timer: Timer | None = timers.after(timeout_ms, self._check)

    @property
    def pending(self) -> bool:
        """Whether it can still expire."""
        return self._timer is not None

    def extend(self, timeout_ms: float) -> None:
        """Expire `timeout_ms` from now."""
        self._deadline_ms = self._timers.now_ms() + timeout_ms
        if self._timer is None or self._timer.deadline_ms > self._deadline_ms:
            self.end()
            self._timer = self._timers.after(timeout_ms, self._check)

    def end(self) -> None:
        """Cancel the timer, so that the session never expires."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        left_ms = self._deadline_ms - self._timers.now_ms()
        self._timer = self._timers.after(left_ms, self._check) if left_ms > 0 else None
        if self._timer is None:
            self._on_expired()


class SessionExpiration:
    """The sessions of one group's members. `expel` removes a member whose session expired."""

    def __init__(self, timers: Timers, expel: Callable[[Member], None]) -> None:
        self._timers = timers
        self._expel = expel

    def renew(self, member: Member) -> None:
        """The member gave a sign of life: start its session over."""
        if member.session is None:
            expire = partial(self._expire, member)
            member.session = Session(self._timers, member.session_timeout_ms, expire)
        else:
            member.session.extend(member.session_timeout_ms)

    def end(self, member: Member) -> None:
        """The member is gone."""
        if member.session is not None:
            member.session.end()
            member.session = None

    def _expire(self, member: Member) -> None:
        assert member.session is not None
        if not member.awaits_join and not member.awaits_sync:
            self._expel(member)
            return
        left_ms = float(member.session_timeout_ms)
        if member.is_new:
            given_up_ms = member.session.started_ms + NEW_MEMBER_JOIN_TIMEOUT_MS
            left_ms = min(left_ms, given_up_ms - self._timers.now_ms())
        if left_ms > 0:
            member.session.extend(left_ms)
        else:
            self._expel(member)
