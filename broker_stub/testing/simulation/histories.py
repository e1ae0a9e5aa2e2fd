"""Many histories, one after another: each of another seed, as many as there is time for."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pyclient.clock import SystemClock


class Explored(NamedTuple):
    """The result of `explore`: how many histories ran, and for how long."""

    histories: int
    last_seed: int | None
    seconds: float

    def __str__(self) -> str:
        return f"{self.histories} histories up to seed {self.last_seed} in {self.seconds:.0f} s"


def explore(
    history: Callable[[int], Any], seeds: Iterable[int], seconds: float | None = None
) -> Explored:
    """Run the history of each seed, until there are no more or the time is up.

    Args:
        history: makes a `Simulation` of the seed it is given, lets it run, and checks it.
        seeds: `range(200)`, say.
        seconds: how long to go on, in real time; by default to the end of the seeds.

    Raises:
        BaseException: what a history raised; its notes tell the seed.
    """
    clock = SystemClock()
    began_ms = clock.monotonic_ms()
    count, last_seed = 0, None
    for seed in seeds:
        try:
            history(seed)
        except BaseException as error:
            error.add_note(f"History {count} of those explored, of seed {seed}.")
            raise
        count, last_seed = count + 1, seed
        if seconds is not None and clock.monotonic_ms() - began_ms > seconds * 1000:
            break
    return Explored(count, last_seed, (clock.monotonic_ms() - began_ms) / 1000)
