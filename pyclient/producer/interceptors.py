"""A producer's interceptors, in the order in which they were configured.

`on_send` runs on the thread that sends, `on_acknowledgement` usually on the I/O thread. Not used by
a producer without interceptors.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from pyclient.producer.batch_result import NO_OFFSET, NO_TIMESTAMP
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.types import ProducerRecord, RecordMetadata, TopicPartition

log = logging.getLogger(__name__)


class ProducerInterceptors:
    """Passes records and their outcomes to interceptors, and logs their exceptions."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = interceptors

    def send(self, send: Callable[..., FutureRecordMetadata], *fields: Any) -> FutureRecordMetadata:
        """Pass a record, given as the fields of `ProducerRecord`, through `on_send` to `send`."""
        record = self._on_send(ProducerRecord(*fields))
        try:
            future = send(*record)
        except Exception as error:
            partition = -1 if record.partition is None else record.partition
            self._on_acknowledgement(_unknown(TopicPartition(record.topic, partition)), error)
            raise
        # First, and so before the program's own: callbacks of a record run in their order.
        future.add_callback(self._on_acknowledgement, exception=None)
        future.add_errback(self._on_error, future.topic_partition)
        return future

    def _on_send(self, record: ProducerRecord) -> ProducerRecord:
        for interceptor in self._interceptors:
            try:
                changed = getattr(interceptor, "on_send", _unchanged)(record)
                if not isinstance(changed, ProducerRecord):
                    raise TypeError(f"on_send() must return a ProducerRecord, not {changed!r}")
                record = changed
            except Exception:
                # The next one gets what the last one that worked returned, as in Java.
                log.warning("%r failed in on_send()", interceptor, exc_info=True)
        return record

    def _on_error(self, topic_partition: TopicPartition, error: BaseException) -> None:
        self._on_acknowledgement(_unknown(topic_partition), error)

    def _on_acknowledgement(
        self, metadata: RecordMetadata, exception: BaseException | None
    ) -> None:
        for interceptor in self._interceptors:
            try:
                getattr(interceptor, "on_acknowledgement", _ignore)(metadata, exception)
            except Exception:
                log.warning("%r failed in on_acknowledgement()", interceptor, exc_info=True)

    def close(self) -> None:
        """Close the interceptors; their exceptions are logged."""
        for interceptor in self._interceptors:
            try:
                getattr(interceptor, "close", _ignore)()
            except Exception:
                log.warning("%r failed in close()", interceptor, exc_info=True)
        self._interceptors = ()


def _unchanged(record: ProducerRecord) -> ProducerRecord:
    return record


def _ignore(*_: object) -> None:
    pass


def _unknown(topic_partition: TopicPartition) -> RecordMetadata:
    """The metadata of a record that was not written."""
    return RecordMetadata(
        *topic_partition, topic_partition, NO_OFFSET, NO_TIMESTAMP, None, -1, -1, -1
    )
