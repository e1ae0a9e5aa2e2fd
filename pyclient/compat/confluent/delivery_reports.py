"""Delivery reports, by batch: the I/O thread passes on whole batches, `poll` makes the reports.

A batch costs one registration, a message one append. Reports are served in the order in which
their batches were done.
"""

from collections import deque
from functools import partial

from pyclient.clock import Clock
from pyclient.compat.confluent.events import Events
from pyclient.compat.confluent.message import (
    DeliveredMessage,
    Message,
    OnDelivery,
    Report,
)
from pyclient.producer.batch_result import BatchResult


class DeliveryReports:
    """The messages whose outcome the program has not heard of.

    Attributes:
        outstanding: as many elements as there are messages to report. A deque, because its length
            is exact with any number of threads, without a lock.
    """

    def __init__(self, events: Events, clock: Clock, only_errors: bool) -> None:
        self._events = events
        self._clock = clock
        self._only_errors = only_errors
        self._by_batch: dict[BatchResult, deque[Report]] = {}
        self.outstanding: deque[None] = deque()

    def __len__(self) -> int:
        return len(self.outstanding)

    def expect(self) -> None:
        """A message was handed over; its report comes later."""
        self.outstanding.append(None)

    def unexpect(self) -> None:
        """The message of an `expect` is handed over again."""
        self.outstanding.pop()

    def add(self, report: Report) -> None:
        """Report the outcome of this message. Any thread."""
        self.outstanding.append(None)
        future = report[0]
        result = future.batch_result
        reports = self._by_batch.get(result)
        if reports is None:
            reports = self._by_batch.setdefault(result, deque())
            result.register(future.batch_index, partial(self._done, result, reports))
        reports.append(report)
        if result.is_done:  # perhaps before this message was noted
            self._done(result, reports)

    def fail(self, message: Message, on_delivery: OnDelivery | None) -> None:
        """Report a message that could not be handed over. Any thread."""
        self._events.add(partial(self._serve_failure, message, on_delivery))

    def _done(self, result: BatchResult, reports: deque[Report]) -> None:
        self._by_batch.pop(result, None)
        self._events.add(partial(self._serve, result, reports, self._clock.now_ms()))

    def _serve(self, result: BatchResult, reports: deque[Report], done_ms: float) -> int:
        is_written = result.is_done and result.error is None
        pop = self.outstanding.pop
        served = 0
        try:
            while reports:
                report = reports.popleft()
                if not (is_written or report[0].is_done):  # its batch was split
                    self._follow(report)
                    continue
                served += 1
                pop()
                on_delivery = report[1]
                if on_delivery is None:
                    continue
                message = DeliveredMessage(report, done_ms)
                error = None if is_written else message.error()
                if error is not None or not self._only_errors:
                    on_delivery(error, message)
        finally:
            if reports:  # a callback raised: the rest comes with the next poll
                self._events.add(partial(self._serve, result, reports, done_ms))
        return served

    def _follow(self, report: Report) -> None:
        """Report when the part of the split batch that has this message is done."""
        result, index = report[0].batch_result.locate(report[0].batch_index)
        result.register(index, partial(self._done, result, deque([report])))

    def _serve_failure(self, message: Message, on_delivery: OnDelivery | None) -> int:
        self.outstanding.pop()
        if on_delivery is not None:
            on_delivery(message.error(), message)
        return 1
