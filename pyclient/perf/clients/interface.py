"""What a load needs of a client. All of it is called on one thread, except `OnDone`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from pyclient.perf.pacing import Pacer

OnDone: TypeAlias = Callable[[float, int, BaseException | None], None]
"""Called with a record's due time, its size, and its error or None."""


class Outgoing(NamedTuple):
    """A record to send; `on_done` is called for those that are measured."""

    value: bytes
    key: bytes | None
    is_measured: bool


class Polled(NamedTuple):
    """How many records came, and their bytes."""

    records: int
    size: int


class LoadProducer(Protocol):
    """Sends records when they are due."""

    def send_all(self, topic: str, records: Iterable[Outgoing], pacer: Pacer) -> None:
        """Send each when `pacer` releases it."""

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all are delivered or have failed, at most `timeout` seconds."""

    def failures(self) -> int | None:
        """Records that failed so far, measured or not; None if the client does not count them."""

    def close(self) -> None: ...


class LoadConsumer(Protocol):
    """Reads records."""

    def subscribe(self, topic: str, on_assigned: Callable[[], None]) -> None:
        """Join the group; `on_assigned` is called when partitions are assigned."""

    def assign_at_end(self, topic: str, partitions: Sequence[int]) -> None:
        """Read these partitions from their present ends, without a group."""

    def poll(self, timeout_ms: int) -> Polled:
        """Count what comes within `timeout_ms`."""

    def poll_values(self, timeout_ms: int) -> list[bytes]:
        """The values of what comes within `timeout_ms`."""

    def close(self) -> None: ...


def counted(batches: Iterable[Sequence[Any]]) -> Polled:
    """Sum up batches of kafka-python's records, which aiokafka and pyclient have too."""
    count = size = 0
    for batch in batches:
        count += len(batch)
        for record in batch:
            size += max(record.serialized_key_size, 0) + max(record.serialized_value_size, 0)
    return Polled(count, size)


def plain_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by names with underscores, and numbers and booleans as such."""
    return {name.replace(".", "_"): _plain(value) for name, value in options.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for number in (int, float):
        try:
            return number(value)
        except ValueError:
            continue
    return value
