"""What every `send` touches: the slots of open batches, and the future it returns.

The native twin sends ordinary records in C. Here all records take the slow path: it is Python as
well, so a fast path would only duplicate it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyclient._pure.builder import BatchBuilder
from pyclient.clock import Clock

if TYPE_CHECKING:
    from pyclient.serialization import Headers


class AppendSlot:
    """The open batch of a partition, if there is one.

    Changed under the accumulator's lock; read and appended to without it.
    """

    __slots__ = ("builder", "result")

    def __init__(self) -> None:
        self.builder: BatchBuilder | None = None
        self.result: Any = None

    def open(self, builder: BatchBuilder, result: Any) -> None:
        """Append to this batch from now on; `result` is its outcome."""
        self.result = result
        self.builder = builder

    def close(self) -> None:
        """There is no open batch."""
        self.builder = None
        self.result = None


class TopicSlots:
    """The slots of a topic's partitions.

    Attributes:
        partition_count: over how many partitions keys are spread; there may be more slots.
        sticky: the slot for records without a key.
    """

    __slots__ = ("partition_count", "slots", "sticky")

    def __init__(self) -> None:
        self.slots: list[AppendSlot] = []
        self.partition_count = 0
        self.sticky: AppendSlot | None = None

    def add(self, slot: AppendSlot) -> None:
        self.slots.append(slot)


class RecordFuture:
    """A record's place in a batch, and what its `RecordMetadata` needs besides the outcome."""

    __slots__ = (
        "batch_index",
        "batch_result",
        "headers_size",
        "key_size",
        "timestamp_ms",
        "value_size",
    )

    def __init__(
        self,
        batch_result: Any,
        batch_index: int,
        timestamp_ms: int,
        key_size: int = -1,
        value_size: int = -1,
        headers_size: int = -1,
    ) -> None:
        self.batch_result = batch_result
        self.batch_index = batch_index
        self.timestamp_ms = timestamp_ms
        self.key_size = key_size
        self.value_size = value_size
        self.headers_size = headers_size


Future = TypeVar("Future", bound=RecordFuture)


class FastSend(Generic[Future]):
    """Base class of the producer, with its `send`; here all records take the slow path."""

    _slow_send: Callable[..., Future]

    def _set_up_send(
        self,
        topics: dict[str, TopicSlots] | None,  # noqa: ARG002
        clock: Clock,  # noqa: ARG002
        slow_send: Callable[..., Future],
        future_class: type[Future],  # noqa: ARG002
    ) -> None:
        """Configure `send`; if `topics` is None, all records go through `slow_send`."""
        self._slow_send = slow_send

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Future:
        """Publish a record: hand it over to be sent, in the background, with others.

        Blocks only while the topic's metadata is not known or the buffer is full, at most
        `max_block_ms`. In a callback it never blocks; the future fails instead.

        Args:
            topic: where to.
            value: bytes, or what `value_serializer` takes; None marks a key as deleted.
            key: bytes, or what `key_serializer` takes. Records with equal keys go to the same
                partition.
            headers: a list of (str, bytes) tuples.
            partition: by default the partitioner chooses.
            timestamp_ms: milliseconds since 1970; by default now.

        Returns:
            A future of the record's `RecordMetadata`.

        Raises:
            KafkaTimeoutError: no metadata or no memory within `max_block_ms`; says why.
            RecordTooLargeError: the record is larger than `max_request_size` or `buffer_memory`.
            IllegalStateError: the producer is closed, or this is a forked child.
            TypeError: key or value are not bytes after serialization; headers are malformed;
                topic, partition or timestamp are of another type.
            ValueError: neither key nor value; no such partition; not a topic's name; a timestamp
                below 0.
        """
        return self._slow_send(topic, value, key, headers, partition, timestamp_ms)
