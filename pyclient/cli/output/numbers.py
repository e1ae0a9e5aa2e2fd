"""Counts, sizes, times and durations as people read them."""

from datetime import UTC, datetime
from typing import Final

_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float) -> str:
    """`1.5 MiB`."""
    unit = 0
    while abs(count) >= 1024 and unit < len(_SIZES) - 1:
        count /= 1024
        unit += 1
    return f"{count:.0f} B" if unit == 0 else f"{count:.1f} {_SIZES[unit]}"


def number(count: float) -> str:
    """`1,234,567`."""
    return f"{count:,}" if isinstance(count, int) else f"{count:,.1f}"


def duration(milliseconds: float) -> str:
    """`350 ms`, `12.5 s`, `4 m 10 s`, `2 h 5 m`, `3 d 4 h`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for large, small, unit in ((86_400, 3_600, "d h"), (3_600, 60, "h m"), (60, 1, "m s")):
        if whole >= large:
            first, second = unit.split()
            rest = whole % large // small
            return f"{whole // large} {first}" + (f" {rest} {second}" if rest else "")
    return f"{seconds:.1f} s"


def time(milliseconds: float) -> str:
    """`2026-01-31 18:00:00.000`, in UTC."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
