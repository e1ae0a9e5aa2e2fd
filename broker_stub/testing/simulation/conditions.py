"""What goes wrong in a world, and how often.

Probabilities are per occasion (a message, a connection attempt, a request), times are typical
or mean ones in milliseconds. `CALM` has delays and nothing else.
"""

import math
from typing import Any, Final, NamedTuple

from broker_stub.testing.simulation.chance import Chance


class Conditions(NamedTuple):
    """The weather of a world."""

    latency_ms: float = 1.0
    """How long a message takes, on average."""
    slow: float = 0.0
    """A message takes up to `slow_ms` instead; those behind it on its connection wait."""
    slow_ms: float = 1_000.0
    split: float = 0.0
    """A message arrives in pieces, cut anywhere."""
    choke: float = 0.0
    """A socket takes only a part of what is written, the rest later."""
    cut: float = 0.0
    """The connection breaks within a message, at any byte."""
    stall: float = 0.0
    """From some byte on a connection delivers nothing more, for a while or for good."""
    refuse: float = 0.0
    """A connection attempt is refused, or gets no answer."""
    error: float = 0.0
    """A request is answered with an error, carried out or not, or not at all."""
    pause: float = 0.0
    """A thread, of a client or of a program, is held up for up to `pause_ms`."""
    pause_ms: float = 100.0
    sync_ms: float = 2.0
    """How long the disk takes for an fsync, on average."""
    crash_every_ms: float = math.inf
    """How long the broker lives, on average."""
    downtime_ms: float = 500.0
    """How long it stays away then, on average."""
    aftermath: float = 0.0
    """The broker also crashes soon after a connection broke: misfortunes seldom come singly."""
    power_loss: float = 0.0
    """A crash takes what was not synced with it, or parts of it."""
    double: float = 0.0
    """A request reaches the broker once more, up to `slow_ms` later; nobody hears the answer."""
    doubled_apis: frozenset[int] = frozenset()
    """The API keys of the requests that are doubled. Others have an effect each time."""
    skew_ms: float = 0.0
    """A machine's time of day is off by up to this, and is set again every few seconds."""


CALM: Final = Conditions()

# The worst that a world draws. Less of each is more likely, and none of it in a third of them:
# faults hide behind each other (if every connection is cut, no batch is ever late).
_WORST: Final = {
    "slow": 0.3,
    "split": 0.5,
    "choke": 0.3,
    "cut": 0.1,
    "stall": 0.03,
    "refuse": 0.3,
    "error": 0.2,
    "pause": 0.05,
}
_OFF: Final = 1 / 3


def drawn(chance: Chance) -> Conditions:
    """Conditions by chance: some faults often, some seldom, some not at all."""
    rates: dict[str, Any] = {
        name: 0.0 if chance.happens(_OFF) else worst * 10 ** -chance.uniform(0, 1.5)
        for name, worst in _WORST.items()
    }
    crashes = not chance.happens(_OFF)
    return Conditions(
        latency_ms=10 ** chance.uniform(-1, 1),
        slow_ms=10 ** chance.uniform(2, 4),
        pause_ms=10 ** chance.uniform(0, 3),
        sync_ms=10 ** chance.uniform(-1, 2.5),
        crash_every_ms=10 ** chance.uniform(3, 4.5) if crashes else math.inf,
        downtime_ms=10 ** chance.uniform(1, 3.5),
        aftermath=chance.choice((0.0, 0.1, 0.5)) if crashes else 0.0,
        power_loss=chance.choice((0.0, 0.5, 1.0)),
        **rates,
    )
