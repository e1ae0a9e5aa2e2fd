"""Interceptors: a program's own code that sees every record on its way. Java's interfaces.

The base classes say what may be implemented; deriving from them is not needed, and a method that
is missing is not called. What an interceptor raises is logged and goes nowhere. A leaf.
"""

from collections.abc import Mapping
from typing import Any

from pyclient.types import ProducerRecord, RecordMetadata


class ProducerInterceptor:
    """Sees, and may change, what a producer sends; is told what became of it."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Called once before all else, with the client's options by Kafka's dotted names."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to send instead; on the thread that sends, before anything is serialized.

        Several interceptors are asked in turn, each with what the one before it returned.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, exception: BaseException | None) -> None:
        """A record was written, or has failed.

        Called before the record's callbacks, in general on the I/O thread: be quick, or records
        of other threads wait. Of a record that never got as far as being sent, too.

        Args:
            metadata: where it went. Of a failed one topic and partition are known, at most.
            exception: why it failed; None if it did not.
        """

    def close(self) -> None:
        """The client is closed."""
