"""What was fetched and not yet returned.

Shared by the I/O thread, which fills it, and the caller's thread, which reads it. One lock guards
the queue and its byte count.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable

from pyclient.consumer.fetch.completed_fetch import CompletedFetch
from pyclient.types import TopicPartition


class FetchBuffer:
    """Completed fetches in the order of their arrival, bounded in bytes.

    `FetchRequestManager` keeps to the bound (`has_room`) before it sends a request; a response is
    always taken. A fetch keeps the whole response in memory that it came in, so a response counts
    until the last of its fetches is removed: stale and paused ones count too.
    """

    def __init__(self, limit_bytes: int, on_data: Callable[[], None]) -> None:
        """`on_data` wakes the caller's thread; it is called without the lock."""
        self._limit_bytes = limit_bytes
        self._on_data = on_data
        self._lock = threading.Lock()  # guards the two below
        self._fetches: deque[CompletedFetch] = deque()
        self._size: int | None = 0  # None: to be counted again

    def put(self, fetches: Iterable[CompletedFetch]) -> None:
        """Add the fetches of one response and wake the caller. The I/O thread."""
        with self._lock:
            self._size = None
            self._fetches.extend(fetches)
        self._on_data()

    @property
    def size(self) -> int:
        """The bytes that the fetches keep in memory."""
        with self._lock:
            if self._size is None:
                # Counted, not kept up to date: an interrupt between two steps of `remove` would
                # leave the sum wrong for good.
                responses = {id(fetch.response): fetch.response for fetch in self._fetches}
                self._size = sum(response.size for response in responses.values())
            return self._size

    def has_room(self) -> bool:
        """Whether more may be fetched."""
        return self.size < self._limit_bytes

    def first(self, resting: Collection[TopicPartition] = ()) -> CompletedFetch | None:
        """The oldest fetch, but for those of `resting` partitions; it stays here."""
        with self._lock:
            for fetch in self._fetches:
                if fetch.at.partition not in resting:
                    return fetch
            return None

    def of(self, partitions: Collection[TopicPartition]) -> list[CompletedFetch]:
        """All fetches of these partitions; they stay here."""
        with self._lock:
            return [fetch for fetch in self._fetches if fetch.at.partition in partitions]

    def remove(self, fetch: CompletedFetch) -> None:
        """Drop a fetch that was read or is stale."""
        with self._lock:
            self._size = None
            self._fetches.remove(fetch)

    def clear(self) -> None:
        """Drop all completed fetches."""
        with self._lock:
            self._size = None
            self._fetches.clear()

    def __len__(self) -> int:
        return len(self._fetches)
