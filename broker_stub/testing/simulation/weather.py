"""The conditions that hold at this moment; everything that can go wrong looks here first."""

from broker_stub.testing.simulation.conditions import CALM, Conditions


class Weather:
    """One for all parts of a world. The world sets it.

    Attributes:
        now: what can go wrong from now on.
    """

    def __init__(self) -> None:
        self.now: Conditions = CALM
