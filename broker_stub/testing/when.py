"""Selects which matching requests a fault hits.

A fault calls `wants` once for every matching request, and `took` if it was applied: another fault
may have come first. Created by a test's thread, used by the serving thread only.
"""

from abc import ABC, abstractmethod

from broker_stub.testing.arguments import real_number, whole_number
from pyclient.entropy import Entropy


class When(ABC):
    """Selects requests."""

    @abstractmethod
    def wants(self) -> bool:
        """Whether to select this request. Called once for each."""

    def took(self) -> None:  # noqa: B027  most choices do not care
        """The fault was applied to the request that `wants` selected."""

    @property
    def spent(self) -> bool:
        """Whether no later request can be selected."""
        return False


class Always(When):
    """Selects every request."""

    def wants(self) -> bool:
        """Whether the request is selected."""
        return True


class Next(When):
    """Selects the next `count` requests."""

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
    """Selects the `number`-th request from now on, counted from 1."""

    def __init__(self, number: int) -> None:
        self._until = whole_number("the number of a request", number)
        if self._until < 1:
            raise ValueError(f"there is no request number {number}: the next one is number 1")
        self._done = False

    def wants(self) -> bool:
        """Whether to select this request; if another fault takes it, the next one is selected."""
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
    """Selects each request with a probability; the same seed selects the same ones."""

    def __init__(self, probability: float, seed: int) -> None:
        self._probability = real_number("a probability", probability)
        if not 0 <= self._probability <= 1:
            raise ValueError(f"a probability lies between 0 and 1: {probability}")
        self._entropy = Entropy(whole_number("a seed", seed))

    def wants(self) -> bool:
        """Whether the request is selected."""
        return self._entropy.uniform(0, 1) < self._probability
