"""Offsets as arguments: those that brokers look up, and targets of a reset."""

from datetime import datetime, timedelta
from enum import IntEnum
from typing import TypeAlias


class OffsetSpec(IntEnum):
    """Offsets that can be asked for without a time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class IsolationLevel(IntEnum):
    """Which records count: all, or only those of no open transaction."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class OffsetTimestamp(int):
    """A time in milliseconds, where a plain number would be an offset."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"OffsetTimestamp({int(self)})"


class OffsetShift(int):
    """A number of records to skip, or to read again if it is negative."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"OffsetShift({int(self)})"


ResetTarget: TypeAlias = OffsetSpec | OffsetTimestamp | OffsetShift | datetime | timedelta | int
"""Where to reset an offset to: the first or last offset, a time, a time ago, a shift, an offset."""
