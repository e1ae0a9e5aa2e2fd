"""Threads with bad timing, which is what a race needs."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

RESTLESS_SECONDS = 1e-6
"""A switch interval with which threads switch as often as the interpreter can."""


@contextmanager
def switching(interval: float = RESTLESS_SECONDS) -> Iterator[None]:
    """Set how long a thread may keep the GIL."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_on_threads(count: int, act: Callable[[int], object], timeout: float = 60) -> None:
    """Call `act` with its thread's number on several threads, and wait for all of them."""
    threads = [threading.Thread(target=act, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
