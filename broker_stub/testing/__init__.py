"""Test support beside the broker: faults, a log of requests, fixtures, simulation.

`Next`, `Nth`, `Randomly` and `Always` select the requests that a fault of `broker.faults` hits;
they are imported on first use. pytest loads the fixtures by itself.

- `pytest_plugin`: the fixtures
- `faults`: `broker.faults`, the faults that a test injects; `when`: which requests they hit
- `fault_injector`: applies the faults inside the broker
- `topic_parts`, `topic_layouts`: the part of a request or response about one topic
- `group_parts`: the part about one consumer group or member
- `request_log`: `broker.requests`, the requests that came in
- `delivery_checker`: checks that records were delivered as Kafka guarantees
- `tls`: certificates for tests
- `arguments`: checks the arguments of all these
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
