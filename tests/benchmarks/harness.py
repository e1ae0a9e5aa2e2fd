"""The yardstick of all benchmarks: ours and a peer's in turn, in one run, medians, a ratio.

Absolute times depend on the machine and on what else runs on it; a ratio of two things that were
measured alternately depends on either far less. `make bench` prints a table per module, and says
where a bar is missed.
"""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 41
ROUND_SECONDS = 0.01


@dataclass(frozen=True)
class Race:
    """Ours against a peer's: each callable does `operations` operations."""

    what: str
    ours: Callable[[], object]
    peer: Callable[[], object]
    operations: int
    bar: float


@dataclass(frozen=True)
class Outcome:
    """What a race showed: medians in nanoseconds an operation; a ratio of 2 is twice as fast."""

    race: Race
    ours_ns: float
    peer_ns: float
    ratio: float

    @property
    def passed(self) -> bool:
        """Whether the ratio reaches the bar."""
        return self.ratio >= self.race.bar


def run(race: Race) -> Outcome:
    """Run both in turn, with the garbage collector off.

    The ratio is the median over rounds: the two halves of a round see the same machine load.
    """
    contenders = (race.ours, race.peer)
    repeats = [_repeats(contender) for contender in contenders]
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for contender, count, taken in zip(contenders, repeats, times, strict=True):
                taken.append(_seconds(contender, count) / count)
    finally:
        gc.enable()
    ours, peer = (statistics.median(taken) * 1e9 / race.operations for taken in times)
    ratio = statistics.median(theirs / mine for mine, theirs in zip(*times, strict=True))
    return Outcome(race, ours, peer, ratio)


def report(title: str, races: list[Race]) -> bool:
    """Run the races, print them as a table; whether every bar was reached."""
    outcomes = [run(race) for race in races]
    width = max(len(outcome.race.what) for outcome in outcomes)
    print(f"\n{title}\n{'':{width}}  {'ours ns':>10}  {'peer ns':>10}  {'ratio':>7}  {'bar':>6}")
    for outcome in outcomes:
        print(
            f"{outcome.race.what:{width}}  {outcome.ours_ns:10.0f}  {outcome.peer_ns:10.0f}  "
            f"{outcome.ratio:6.1f}x  {outcome.race.bar:5.1f}x{'' if outcome.passed else '  MISSED'}"
        )
    return all(outcome.passed for outcome in outcomes)


def _repeats(contender: Callable[[], object]) -> int:
    _seconds(contender, 1)  # imports and caches
    return max(1, int(ROUND_SECONDS / max(_seconds(contender, 1), 1e-9)))


def _seconds(contender: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        contender()
    return time.perf_counter() - start
