"""Which of the requests that a fault is about it is applied to.

A fault asks `wants` once for every such request, and tells by `took` if it was applied: another
fault may have come first. Made by the test's thread, used by the serving one only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from broker_stub.testing.arguments import real_number, whole_number
from pyclient.entropy import Entropy


class When(ABC):
    """A choice of requests."""

    @abstractmethod
    def wants(self) -> bool:
        """Whether this request is one of them. Asked once for each."""

    def took(self) -> None:  # noqa: B027  most choices do not care
        """The fault was applied to the request just asked about."""

    @property
    def spent(self) -> bool:
        """Whether no later request can be one of them."""
        return False


class Always(When):
    """Selects every request."""

    def wants(self) -> bool:
        """Whether the request is selected."""
        return True


class Next(When):
    """The next `count` requests."""

    def __init__(self, count: int = 1) -> None:
        self._left = whole_number("the count of requests", count)
        if self._left < 1:
            raise ValueError(f"the next {count} requests are none: the count is 1 or more")

    def wants(self) -> bool:
        """Whether there are any left."""
        return self._left > 0

    def took(self) -> None:
        """Count the request that was just selected."""
        self._left -= 1

    @property
    def spent(self) -> bool:
        """Whether none is left."""
        return self._left <= 0


class Nth(When):
    """The `number`-th request from now on, counted from 1."""

    def __init__(self, number: int) -> None:
        self._until = whole_number("the number of a request", number)
        if self._until < 1:
            raise ValueError(f"there is no request number {number}: the next one is number 1")
        self._done = False

    def wants(self) -> bool:
        """Whether it is its turn; if another fault takes the request, the one behind it."""
        self._until -= 1
        return self._until <= 0 and not self._done

    def took(self) -> None:
        """Count the request that was just selected."""
        self._done = True

    @property
    def spent(self) -> bool:
        """Whether its turn is over."""
        return self._done


class Randomly(When):
    """Each request with a probability; the same seed chooses the same ones."""

    def __init__(self, probability: float, seed: int) -> None:
        self._probability = real_number("a probability", probability)
        if not 0 <= self._probability <= 1:
            raise ValueError(f"a probability lies between 0 and 1: {probability}")
        self._entropy = Entropy(whole_number("a seed", seed))

    def wants(self) -> bool:
        """Whether the request is selected."""
        return self._entropy.uniform(0, 1) < self._probability
