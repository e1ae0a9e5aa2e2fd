"""Commits from the caller's thread: wait for the result, or take it in a callback.

The caller's thread only. `CommitManager` sends them from the I/O thread.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from pyclient.consumer.caller_requests import CallerRequests
from pyclient.consumer.caller_wait import CallerWait
from pyclient.consumer.offsets.commit import CommitRetries, Offsets
from pyclient.consumer.pending import Pending
from pyclient.errors import KafkaError

CommitCallback: TypeAlias = Callable[[Offsets, KafkaError | None], object]


class CommitCalls:
    """The commits of one consumer.

    Attributes:
        default_callback: `default.offset.commit.callback`.
    """

    def __init__(
        self,
        requests: CallerRequests,
        wait: CallerWait,
        api_timeout_ms: float,
        default_callback: CommitCallback | None,
        on_committed: Callable[[Offsets], None],
    ) -> None:
        """`on_committed` tells the interceptors of a commit that was made; it does not raise."""
        self.default_callback = default_callback
        self._on_committed = on_committed
        self._requests = requests
        self._wait = wait
        self._api_timeout_ms = api_timeout_ms
        self._in_flight: list[Pending[None]] = []  # asynchronous, and not called back yet

    def commit(
        self,
        offsets: Offsets,
        timeout_ms: float | None = None,
        call: str = "commit()",
        interruptible: bool = True,
    ) -> None:
        """Commit, and wait for the result; retried until `timeout_ms`.

        The callbacks of earlier commits are called before it returns.

        Raises:
            KafkaError: the offsets were not committed.
        """
        timeout_ms = self._wait.limited(self._api_timeout_ms if timeout_ms is None else timeout_ms)
        pending = self._requests.new_pending()
        try:
            self._requests.commit(offsets, timeout_ms, CommitRetries.WAITED_FOR, pending=pending)
            self._wait.result(pending, timeout_ms, call, interruptible)
        except BaseException as error:  # an interrupt may come anywhere
            pending.abandon()
            if isinstance(error, KafkaError):
                self._call_back()
            raise
        self._on_committed(offsets)
        self._call_back()

    def _call_back(self) -> None:
        """Run the callbacks of the commits that are done."""
        done = [one for one in self._in_flight if one.is_done]
        self._wait.run_callbacks_until(
            lambda: not any(one in self._in_flight for one in done), self._api_timeout_ms
        )

    def commit_before_revocation(self, offsets: Offsets, timeout_ms: float) -> Pending[None]:
        """Commit what is about to be given up, with retries, without waiting for it."""
        then = partial(self._then, offsets, None)
        return self._requests.commit(offsets, timeout_ms, CommitRetries.REVOCATION, then)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> Pending[None]:
        """Commit, without retries; the callback runs on the caller's thread, in a later poll."""
        pending = self._requests.new_pending()

        def then(error: KafkaError | None) -> None:
            self._forget(pending)  # first: the callback may commit, and wait for these
            self._then(offsets, callback or self.default_callback, error)

        self._in_flight.append(pending)
        try:
            self._requests.commit(
                offsets, self._api_timeout_ms, CommitRetries.NONE, then, pending=pending
            )
        except BaseException:  # there is no group, or an interrupt
            self._forget(pending)
            raise
        return pending

    def _forget(self, pending: Pending[None]) -> None:
        if pending in self._in_flight:
            self._in_flight.remove(pending)

    def are_done(self) -> bool:
        """Whether every commit of `commit_async` has its result."""
        return all(one.is_done for one in self._in_flight)

    def _then(
        self, offsets: Offsets, callback: CommitCallback | None, error: KafkaError | None
    ) -> None:
        """A commit that nobody waited for is over. Inside a later poll."""
        if error is None:
            self._on_committed(offsets)
        if callback is not None:
            callback(offsets, error)
