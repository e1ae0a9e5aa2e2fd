"""What tests of Kafka programs need beside the broker: faults, a log of requests, fixtures.

`Next`, `Nth`, `Randomly` and `Always` say which requests a fault of `broker.faults` is for; they
are imported on first use. The fixtures are in `pytest_plugin`, which pytest loads by itself.
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
