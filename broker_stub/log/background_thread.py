"""The background thread: the one thread of a broker that may block.

It runs the log manager's housekeeping when it is due, and submitted tasks in order. The broker
owns it; `submit` and `wake` may be called from any thread. The lock inside `_changed` guards the
queue and the flags; no task runs under it.
"""

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.log_manager import LogManager

Task = Callable[[], None]

_PAUSE_AFTER_FAILURE_MS: Final = 1000.0


class BackgroundThread:
    """Runs tasks and housekeeping until it is stopped."""

    def __init__(self, manager: LogManager, name: str = "broker-log") -> None:
        self._manager = manager
        self._changed = Condition()
        self._tasks: deque[Task] = deque()
        self._woken = False
        self._stopping = False
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread; from now on new work of the log manager wakes it."""
        self._manager.on_work = self.wake
        self._thread.start()

    def submit(self, task: Task) -> None:
        """Queue a task; tasks run in order of submission."""
        with self._changed:
            self._tasks.append(task)
            self._changed.notify()

    def wake(self) -> None:
        """Check again what is due, because there is new work or the clock was moved."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def stop(self) -> None:
        """Run the submitted tasks and the due work, then end the thread if it was started."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        wait_ms = self._keep_house()
        while True:
            with self._changed:
                if not (self._tasks or self._woken or self._stopping):
                    self._changed.wait(wait_ms / 1000)
                tasks, self._tasks = self._tasks, deque()
                woken, self._woken = self._woken, False
                if self._stopping and not (tasks or woken):
                    return
            for task in tasks:
                _attempt(task)
            wait_ms = self._keep_house()

    def _keep_house(self) -> float:
        try:
            return self._manager.run_due()
        except Exception:  # noqa: BLE001  acks may wait for this thread: it must not die
            diagnostics.exception("log housekeeping failed")
            return _PAUSE_AFTER_FAILURE_MS


def _attempt(task: Task) -> None:
    try:
        task()
    except Exception:  # noqa: BLE001  the thread must outlive a task that fails
        diagnostics.exception("a background task failed")
