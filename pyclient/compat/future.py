"""kafka-python's `Future`, for programs and tests that make one by hand.

The clients do not use it; what `send` returns counts as one by `isinstance`.
"""

import functools
import logging
import threading
from abc import ABCMeta
from collections.abc import Callable, Generator
from typing import Any, Self

from pyclient.consumer.pending import Pending
from pyclient.errors import RetriableError
from pyclient.producer.delivery import FutureRecordMetadata

log = logging.getLogger(__name__)


class Future(metaclass=ABCMeta):  # noqa: B024  for `register`
    """A result that `success` or `failure` sets once. Any thread may use it.

    A callback runs on the thread that sets the result, or at once if it is set already. An
    exception that a callback raises is logged, or raised if `error_on_callbacks` is true.

    Attributes:
        is_done: whether the result is set.
        value: what `success` was given.
        exception: what `failure` was given.
    """

    error_on_callbacks = False

    def __init__(self) -> None:
        self.is_done = False
        self.value: Any = None
        self.exception: BaseException | None = None
        self._lock = threading.Lock()  # guards the three above and the list
        self._waiting: list[tuple[bool, Callable[[Any], Any]]] = []

    def succeeded(self) -> bool:
        """Whether it is done, without an error."""
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        """Whether it is done, with an error."""
        return self.is_done and self.exception is not None

    def retriable(self) -> bool:
        """Whether it failed with an error that may pass."""
        return self.is_done and isinstance(self.exception, RetriableError)

    def success(self, value: Any) -> Self:
        """Set the result, and run the callbacks."""
        return self._finish(value, None)

    def failure(self, e: BaseException | type[BaseException]) -> Self:
        """Set the error, an exception or a class of one, and run the errbacks."""
        exception = e() if isinstance(e, type) else e
        if not isinstance(exception, BaseException):
            raise TypeError(f"a future fails with an exception, not {exception!r}")
        return self._finish(None, exception)

    def _finish(self, value: Any, exception: BaseException | None) -> Self:
        with self._lock:
            self.value, self.exception, self.is_done = value, exception, True
            waiting, self._waiting = self._waiting, []
        for on_success, function in waiting:
            self._call(on_success, function)
        return self

    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call `f(*args, value, **kwargs)` on success."""
        return self._add(True, functools.partial(f, *args, **kwargs))

    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call `f(*args, exception, **kwargs)` on failure."""
        return self._add(False, functools.partial(f, *args, **kwargs))

    def add_both(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call `f` as a callback or as an errback."""
        self.add_callback(f, *args, **kwargs)
        return self.add_errback(f, *args, **kwargs)

    def chain(self, future: "Future") -> Self:
        """Hand the outcome on to another future."""
        self.add_callback(future.success)
        return self.add_errback(future.failure)

    def _add(self, on_success: bool, function: Callable[[Any], Any]) -> Self:
        with self._lock:
            if not self.is_done:
                self._waiting.append((on_success, function))
                return self
        self._call(on_success, function)
        return self

    def _call(self, on_success: bool, function: Callable[[Any], Any]) -> None:
        if on_success != (self.exception is None):
            return
        try:
            function(self.value if on_success else self.exception)
        except Exception:
            if self.error_on_callbacks:
                raise
            log.exception("A callback of a future failed")

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.is_done:
            yield self
        if self.exception is not None:
            raise self.exception
        return self.value


Future.register(FutureRecordMetadata)
Future.register(Pending)
