"""Detects that two threads use a consumer at the same time."""

import threading

from pyclient.errors import IllegalStateError


class UseGuard:
    """Held by the thread that is inside a call, as often as it enters.

    No lock, because no thread waits: `setdefault` is atomic, and a thread that finds another
    thread's id there raises.
    """

    __slots__ = ("_depth", "_holder")

    def __init__(self) -> None:
        self._holder: dict[str, int] = {}
        self._depth = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        holder = self._holder.setdefault("thread", me)
        if holder != me:
            raise IllegalStateError(
                "KafkaConsumer is for one thread at a time, and another thread is inside a call "
                "at this moment; only wakeup() may be called from any thread"
            )
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder.clear()
