"""What `send` returns: per record a future, which is its batch's result and an index.

Any thread may use one. A callback runs on the I/O thread, or on the adding thread if the outcome
was already known; its exception is logged and goes nowhere.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Generator
from copy import copy
from typing import Any, Self

from pyclient import _twin
from pyclient.errors import KafkaError, KafkaTimeoutError
from pyclient.producer.batch_result import NO_OFFSET, NO_TIMESTAMP, BatchResult
from pyclient.timers import Deadline
from pyclient.types import RecordMetadata, TopicPartition

log = logging.getLogger(__name__)


class FutureRecordMetadata(_twin.RecordFuture):
    """What `send` returns: the promise of a `RecordMetadata`, or of an error.

    `await` works too, in a coroutine of any event loop.
    """

    __slots__ = ()

    batch_result: BatchResult

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the record; -1 if it was never assigned."""
        return self.batch_result.topic_partition

    @property
    def _produce_future(self) -> Self:
        """kafka-python's future of the batch: OpenTelemetry reads its `topic_partition`."""
        return self

    @property
    def is_done(self) -> bool:
        """Whether the outcome is known."""
        return self.batch_result.is_done or self.batch_result.locate(self.batch_index)[0].is_done

    @property
    def exception(self) -> KafkaError | None:
        """The error that the record failed with; None if it did not, or not yet."""
        error = self._error
        if error is None:
            return None
        # A copy per raise: an error refers to the frames that it passes, and one of
        # those has this future, which the garbage collector does not see. That ring would stay.
        own = copy(error)
        own.__cause__ = error.__cause__
        return own

    @property
    def _error(self) -> KafkaError | None:
        """The error of the record, which other records may share: to look at only."""
        result, index = self.batch_result.locate(self.batch_index)
        if result.error is None or result.record_errors is None:
            return result.error
        return result.record_errors.get(index, result.error)

    @property
    def value(self) -> RecordMetadata | None:
        """Where the record went; None if it failed, or is not there yet."""
        result, index = self.batch_result.locate(self.batch_index)
        if not result.is_done or result.error is not None:
            return None
        base_offset = result.base_offset
        appended_ms = result.log_append_time_ms
        topic_partition = result.topic_partition
        return RecordMetadata(
            topic_partition.topic,
            topic_partition.partition,
            topic_partition,
            base_offset + index if base_offset != NO_OFFSET else NO_OFFSET,
            appended_ms if appended_ms != NO_TIMESTAMP else self.timestamp_ms,
            None,
            self.key_size,
            self.value_size,
            self.headers_size,
        )

    def succeeded(self) -> bool:
        """Whether the record was written."""
        return self.is_done and self._error is None

    def failed(self) -> bool:
        """Whether the record failed."""
        return self.is_done and self._error is not None

    def retriable(self) -> bool:
        """Whether the record failed with an error that may pass."""
        error = self._error
        return error is not None and error.retriable

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the outcome, at most `timeout` seconds.

        Raises:
            KafkaTimeoutError: the outcome was not known by then; the record may still arrive.
            KafkaError: the record failed.
            IllegalStateError: called in a callback for a record whose outcome is not known.
        """
        if not self.is_done:
            self._wait(timeout)
        return self._outcome()

    def _wait(self, timeout: float | None) -> None:
        engine = self.batch_result.engine
        engine.check_may_wait("get()")
        engine.check_usable("get()")
        deadline = Deadline(engine.clock, None if timeout is None else timeout * 1000)
        while not self.is_done:
            result, _ = self.batch_result.locate(self.batch_index)
            if not (result.wait(deadline) or self.is_done):
                raise KafkaTimeoutError(
                    f"no acknowledgement of the record for {self.topic_partition.topic}-"
                    f"{self.topic_partition.partition} within {timeout} s; it is still on its way"
                )

    def _outcome(self) -> RecordMetadata:
        error = self.exception
        if error is not None:
            raise error
        value = self.value
        assert value is not None, "an outcome is an error or a value"
        return value

    def add_callback(
        self, f: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> FutureRecordMetadata:
        """Call `f(*args, record_metadata, **kwargs)` once the record is written."""
        return self._register(f, args, kwargs, on_success=True)

    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call `f(*args, error, **kwargs)` once the record has failed."""
        return self._register(f, args, kwargs, on_error=True)

    def add_both(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call `f` as a callback or as an errback, whichever it will be."""
        return self._register(f, args, kwargs, on_success=True, on_error=True)

    def _register(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        on_success: bool = False,
        on_error: bool = False,
    ) -> FutureRecordMetadata:
        if args or kwargs:
            function = functools.partial(function, *args, **kwargs)
        result, index = self.batch_result.locate(self.batch_index)
        result.register(index, functools.partial(self._call, function, on_success, on_error))
        return self

    def _call(self, function: Callable[..., Any], on_success: bool, on_error: bool) -> None:
        error = self.exception
        try:
            if error is None:
                if on_success:
                    function(self.value)
            elif on_error:
                function(error)
        except BaseException as failure:
            # A program's mistake, or sys.exit(), must not end the I/O thread.
            if not (isinstance(failure, Exception) or self.batch_result.engine.on_io_thread()):
                raise
            log.exception("A callback of a record for %s failed", self.topic_partition)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        while not self.is_done:
            import asyncio  # a program that awaits has loaded it already

            self.batch_result.engine.check_usable("await")  # a forked child would wait for ever
            result, _ = self.batch_result.locate(self.batch_index)
            yield from result.loop_event(asyncio.get_running_loop()).wait().__await__()
        return self._outcome()

    def __repr__(self) -> str:
        error = self._error
        state = "pending" if not self.is_done else f"{self.value if error is None else error!r}"
        return f"<FutureRecordMetadata for {self.topic_partition}: {state}>"
