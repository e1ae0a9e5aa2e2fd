"""Interceptors: a program's code that sees every record, with Java's interfaces.

The base classes show the methods. Interceptors need not derive from them, and missing methods are
not called. Exceptions are logged and ignored.
"""

from collections.abc import Mapping
from typing import Any

from pyclient.types import OffsetAndMetadata, ProducerRecord, RecordMetadata, TopicPartition


class ProducerInterceptor:
    """Sees the records that a producer sends, may change them, and learns their outcome."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Called once, first, with the client's options by Kafka's dotted names."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send instead. Called on the sending thread, before serialization.

        Each of several interceptors gets the record that the previous one returned.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, exception: BaseException | None) -> None:
        """A record was written, or has failed.

        Called before the record's callbacks, usually on the I/O thread: it must be fast, because
        other records wait for it. Also called for records that were never sent.

        Args:
            metadata: where the record was written; at most topic and partition if it failed.
            exception: why it failed; None if it did not.
        """

    def close(self) -> None:
        """Called when the client is closed."""


class ConsumerInterceptor:
    """Sees, and may change, what a consumer returns; is told what it has committed.

    Called on the thread that uses the consumer. `poll_arrow` has no part in this.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Called once before all else, with the client's options by Kafka's dotted names."""

    def on_consume(
        self, records: Mapping[TopicPartition, list[Any]]
    ) -> Mapping[TopicPartition, list[Any]]:
        """The `ConsumerRecord`s to return instead; an iteration asks record by record.

        Several interceptors are asked in turn, each with what the one before it returned. What
        is left out counts as returned: the position is behind it.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The group has these offsets now, by a call of the program or an automatic commit."""

    def close(self) -> None:
        """The client is closed."""
