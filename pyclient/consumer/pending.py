"""Results that the I/O thread sets and the caller's thread waits for."""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from pyclient.consumer.offsets.list_offsets import FoundOffset
from pyclient.errors import KafkaError
from pyclient.types import OffsetAndTimestamp, TopicPartition

Value = TypeVar("Value")


class Pending(Generic[Value]):
    """One result, with the part of kafka-python's future interface that applies here.

    The I/O thread completes it once; the order of its stores makes it safe to read without a
    lock: `is_done` comes last.

    Attributes:
        is_done: whether it is over.
        on_abandon: called by `abandon`.
        value: the result, None while there is none.
        exception: why there is none.
    """

    def __init__(self, on_done: Callable[[], None]) -> None:
        """`on_done` wakes the caller's thread."""
        self._on_done = on_done
        self.on_abandon: Callable[[], None] | None = None
        self.value: Value | None = None
        self.exception: KafkaError | None = None
        self.is_done = False

    def complete(self, outcome: Value | KafkaError) -> None:
        """Set the result. The I/O thread, or the thread that finds that there will be none."""
        if isinstance(outcome, KafkaError):
            self.exception = outcome
        else:
            self.value = outcome
        self.is_done = True
        self._on_done()

    def abandon(self) -> None:
        """The caller stops waiting: what has not been sent is not sent any more."""
        if self.on_abandon is not None:
            self.on_abandon()

    def succeeded(self) -> bool:
        """Whether it is done, without an error."""
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        """Whether it is done, with an error."""
        return self.is_done and self.exception is not None

    def result(self) -> Value:
        """The value of what is done.

        Raises:
            KafkaError: it failed.
        """
        if self.exception is not None:
            raise self.exception
        return self.value  # type: ignore[return-value]  # a result of None is one, too


class PendingOffsets(Pending[dict[TopicPartition, OffsetAndTimestamp | None]]):
    """The lookups of many partitions as one result; the first error is the result's."""

    def __init__(self, partitions: Collection[TopicPartition], on_done: Callable[[], None]) -> None:
        super().__init__(on_done)
        self._missing = set(partitions)
        self._found: dict[TopicPartition, OffsetAndTimestamp | None] = {}

    def add(self, partition: TopicPartition, found: FoundOffset) -> None:
        """One partition's result. The I/O thread."""
        if self.is_done:
            return
        if isinstance(found, KafkaError):
            self.complete(found)
            return
        self._found[partition] = found
        self._missing.discard(partition)
        if not self._missing:
            self.complete(self._found)
