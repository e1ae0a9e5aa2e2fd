"""What to send, in plain values: worker processes and workload files have it as JSON."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pyclient.errors import KafkaConfigurationError
from pyclient.perf.pacing import FixedRate, Poisson, Schedule
from pyclient.perf.payloads import generated_values, uniform_keys, values_from_file, zipf_keys
from pyclient.perf.produce import ProduceLoad


@dataclass(frozen=True)
class ProduceSpec:
    """A load of `records` records; `rate` is in records a second, None for no limit."""

    topic: str
    records: int
    record_size: int = 100
    payload_file: str | None = None
    payload_delimiter: str = "\n"
    compressibility: float | None = None
    key_distribution: str = "none"
    keys: int = 10_000
    rate: float | None = None
    arrival: str = "fixed"
    warm_up: int = 0

    def share(self, number: int, processes: int) -> "ProduceSpec":
        """The load of process `number` alone, for tools that take no schedule."""
        return replace(
            self,
            records=_share(self.records, number, processes),
            warm_up=_share(self.warm_up, number, processes),
            rate=None if self.rate is None else self.rate / processes,
        )

    def load(self, number: int = 0, processes: int = 1) -> ProduceLoad:
        """The share of process `number`: together they send it all, at the whole rate.

        Raises:
            KafkaConfigurationError: the payload file cannot be read.
        """
        return ProduceLoad(
            self.topic,
            _share(self.records, number, processes),
            self._values(),
            self._keys(),
            self.schedule(number, processes),
            _share(self.warm_up, number, processes),
        )

    def schedule(self, number: int = 0, processes: int = 1) -> Schedule | None:
        """When the records of process `number` are due; None if at once."""
        if self.rate is None:
            return None
        if not self.rate > 0:
            raise KafkaConfigurationError(f"a rate is a positive number, not {self.rate}")
        if self.arrival == "poisson":
            return Poisson(self.rate / processes, seed=number)
        # One after the other: processes that send at the same moments would make bursts.
        return FixedRate(self.rate / processes, first_ms=number * 1000 / self.rate)

    def _values(self) -> list[bytes]:
        if self.payload_file is None:
            return generated_values(self.record_size, self.compressibility)
        return values_from_file(Path(self.payload_file), self.payload_delimiter.encode())

    def _keys(self) -> Iterator[bytes] | None:
        if self.key_distribution == "none":
            return None
        return (uniform_keys if self.key_distribution == "uniform" else zipf_keys)(self.keys)


def _share(count: int, number: int, processes: int) -> int:
    return count // processes + (number < count % processes)
