"""A consumer's interceptors, in the order in which they were configured.

The caller's thread only. What they raise is logged and goes nowhere, as in Java.
"""

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyclient.records.record import ConsumerRecord
from pyclient.types import OffsetAndMetadata, TopicPartition

log = logging.getLogger(__name__)


class ConsumerInterceptors:
    """Passes records and commits to interceptors; without any, it does nothing."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._interceptors = interceptors

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_consume(
        self, records: Mapping[TopicPartition, list[ConsumerRecord]]
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """What to return instead of these records."""
        for interceptor in self._interceptors:
            try:
                change = getattr(interceptor, "on_consume", None)
                if change is not None:
                    changed = change(records)
                    if not isinstance(changed, Mapping):
                        raise TypeError(f"on_consume() must return a mapping, not {changed!r}")
                    records = changed
            except Exception:
                # The next one gets what the last one that worked returned, as in Java.
                log.warning("%r failed in on_consume()", interceptor, exc_info=True)
        return dict(records)

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Tell them of a commit that was made."""
        for interceptor in self._interceptors:
            try:
                tell = getattr(interceptor, "on_commit", None)
                if tell is not None:
                    tell(offsets)
            except Exception:
                log.warning("%r failed in on_commit()", interceptor, exc_info=True)

    def close(self) -> None:
        """Close them."""
        interceptors, self._interceptors = self._interceptors, ()
        for interceptor in interceptors:
            try:
                close = getattr(interceptor, "close", None)
                if close is not None:
                    close()
            except Exception:
                log.warning("%r failed in close()", interceptor, exc_info=True)


class InterceptedRecords(Iterator[ConsumerRecord]):
    """An iteration whose records pass the interceptors one by one."""

    def __init__(
        self, records: Iterator[ConsumerRecord], interceptors: ConsumerInterceptors
    ) -> None:
        self._records = records
        self._interceptors = interceptors
        self._ready: deque[ConsumerRecord] = deque()

    def __next__(self) -> ConsumerRecord:
        while not self._ready:
            record = next(self._records)
            at = TopicPartition(record.topic, record.partition)
            for returned in self._interceptors.on_consume({at: [record]}).values():
                self._ready.extend(returned)
        return self._ready.popleft()
