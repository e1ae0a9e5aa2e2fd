"""Programs, clients and a broker in a simulated world, for tests of everything that goes wrong.

See docs/simulation.md.
"""

from broker_stub.testing.simulation.conditions import CALM, Conditions
from broker_stub.testing.simulation.histories import explore
from broker_stub.testing.simulation.programs import Program
from broker_stub.testing.simulation.scheduler import WorldStuckError
from broker_stub.testing.simulation.world import Simulation

__all__ = ["CALM", "Conditions", "Program", "Simulation", "WorldStuckError", "explore"]
