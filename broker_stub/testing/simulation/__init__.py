"""Runs programs, clients and a broker on a simulated clock, network and disk.

See docs/simulation.md.

- `world`: `Simulation`, which wires the parts; `histories`: `explore`, which runs many
- `scheduler`: events in the order of time; `programs`: the user's programs, one at a time
- `conditions`, `weather`: which faults happen; `mishaps`: errors that the broker responds with
- `broker`: the broker across crashes; `broker_life`: one run; `broker_connection`: its sockets
- `network`, `wire`: addresses and connections; `transport`, `environment`: a client's end
- `disk`: what a power loss leaves
- `clock`, `chance`: time and randomness
- `trace`: what happened; `logged_errors`: exceptions that were logged
"""

from broker_stub.testing.simulation.conditions import CALM, Conditions
from broker_stub.testing.simulation.histories import explore
from broker_stub.testing.simulation.programs import Program
from broker_stub.testing.simulation.scheduler import WorldStuckError
from broker_stub.testing.simulation.world import Simulation

__all__ = ["CALM", "Conditions", "Program", "Simulation", "WorldStuckError", "explore"]
