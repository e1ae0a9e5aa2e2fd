"""What was fetched and not yet returned.

Shared by the I/O thread, which fills it, and the caller's thread, which reads it. One lock guards
the queue and its byte counts.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable

from pyclient.consumer.fetch.completed_fetch import CompletedFetch
from pyclient.types import TopicPartition


class FetchBuffer:
    """Completed fetches in the order of their arrival, bounded in bytes.

    `FetchRequestManager` keeps to the bound (`has_room`) before it sends a request; a response is
    always taken.
    """

    def __init__(self, limit_bytes: int, on_data: Callable[[], None]) -> None:
        """`on_data` wakes the caller's thread; it is called without the lock."""
        self._limit_bytes = limit_bytes
        self._on_data = on_data
        self._lock = threading.Lock()  # guards the two below
        self._fetches: deque[CompletedFetch] = deque()
        self._sizes: dict[TopicPartition, int] = {}

    def put(self, fetches: Iterable[CompletedFetch]) -> None:
        """Add fetches and wake the caller. The I/O thread."""
        with self._lock:
            for fetch in fetches:
                self._fetches.append(fetch)
                partition = fetch.at.partition
                self._sizes[partition] = self._sizes.get(partition, 0) + fetch.size
        self._on_data()

    def has_room(self, resting: Collection[TopicPartition] = ()) -> bool:
        """Whether more may be fetched.

        Bytes of `resting` (paused) partitions do not count: they are not read, so they would stop
        fetching for the others.
        """
        with self._lock:
            counted = sum(self._sizes.values()) - sum(self._sizes.get(p, 0) for p in resting)
        return counted < self._limit_bytes

    def first(self, resting: Collection[TopicPartition] = ()) -> CompletedFetch | None:
        """The oldest fetch, but for those of `resting` partitions; it stays here."""
        with self._lock:
            for fetch in self._fetches:
                if fetch.at.partition not in resting:
                    return fetch
            return None

    def remove(self, fetch: CompletedFetch) -> None:
        """Drop a fetch that was read or is stale."""
        with self._lock:
            self._fetches.remove(fetch)
            partition = fetch.at.partition
            self._sizes[partition] -= fetch.size
            if not self._sizes[partition]:
                del self._sizes[partition]

    def clear(self) -> None:
        """Drop all completed fetches."""
        with self._lock:
            self._fetches.clear()
            self._sizes.clear()

    def __len__(self) -> int:
        return len(self._fetches)
