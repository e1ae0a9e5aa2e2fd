"""Test support beside the broker: faults, a log of requests, fixtures, simulation.

`Next`, `Nth`, `Randomly` and `Always` select the requests that a fault of `broker.faults` hits;
they are imported on first use. pytest loads the fixtures by itself.

- `pytest_plugin.py`: the fixtures
- `faults.py`: `broker.faults`, the faults that a test injects; `when.py`: which requests they hit
- `fault_injector.py`: applies the faults inside the broker
- `topic_parts.py`, `topic_layouts.py`: the part of a request or response about one topic
- `group_parts.py`: the part about one consumer group or member
- `request_log.py`: `broker.requests`, the requests that came in
- `delivery_checker.py`: checks that records were delivered as Kafka guarantees
- `tls.py`: certificates for tests
- `arguments.py`: checks the arguments of all these
- `simulation/`: programs, clients and a broker on a simulated clock, network and disk
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_stub.testing.when import Always, Next, Nth, Randomly, When

__all__ = ["Always", "Next", "Nth", "Randomly", "When"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from broker_stub.testing import when

    return getattr(when, name)
