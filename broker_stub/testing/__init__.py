"""What tests of Kafka programs need beside the broker: faults, a log of requests, fixtures.

`Next`, `Nth`, `Randomly` and `Always` say which requests a fault of `broker.faults` is for.
Imported by test programs only; the fixtures are in `pytest_plugin`, which pytest loads itself.
"""

from broker_stub.testing.when import Always, Next, Nth, Randomly, When

__all__ = ["Always", "Next", "Nth", "Randomly", "When"]
