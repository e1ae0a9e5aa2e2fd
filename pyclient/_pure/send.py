"""What `send` touches of every record: the slots of open batches, and the future it returns.

The native twin does an ordinary record's `send` in C. Here everything takes the slow path, which
is Python as well: a second copy of it would only be another place for mistakes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyclient._pure.builder import BatchBuilder
from pyclient.clock import Clock


class AppendSlot:
    """Where the next record of a partition goes: its open batch, if there is one.

    Changed under the accumulator's lock; read, and appended to, without.
    """

    __slots__ = ("builder", "result")

    def __init__(self) -> None:
        self.builder: BatchBuilder | None = None
        self.result: Any = None

    def open(self, builder: BatchBuilder, result: Any) -> None:
        """Append to this batch from now on; its records' outcome is `result`."""
        self.result = result
        self.builder = builder

    def close(self) -> None:
        """There is no open batch."""
        self.builder = None
        self.result = None


class TopicSlots:
    """The slots of a topic's partitions.

    Attributes:
        partition_count: keys are spread over so many; there may be more slots.
        sticky: the slot for records without a key.
    """

    __slots__ = ("partition_count", "slots", "sticky")

    def __init__(self) -> None:
        self.slots: list[AppendSlot] = []
        self.partition_count = 0
        self.sticky: AppendSlot | None = None

    def add(self, slot: AppendSlot) -> None:
        """One more partition."""
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


class FastSend:
    """`send` for ordinary records; `slow_send` has the same arguments and does the rest."""

    __slots__ = ("send",)

    def __init__(
        self,
        topics: dict[str, TopicSlots],  # noqa: ARG002
        clock: Clock,  # noqa: ARG002
        slow_send: Callable[..., Any],
        future_class: type[RecordFuture],  # noqa: ARG002
    ) -> None:
        self.send = slow_send
