"""Open files, at most so many at a time: ten thousand partitions must fit a few descriptors.

`OpenFiles` is an LRU of descriptors and memory maps (a map of Python's holds a descriptor of its
own). An open file closes when the last reference to it goes: the LRU's, or that of a `FileSlice`
on its way to a reader. So eviction and deletion never pull a file from under a reader.
Any thread; one lock guards the LRU, and nothing is opened or closed under it.
"""

import errno
import fcntl
import mmap
import os
import resource
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, TypeVar

_CAPACITY_MIN: Final = 16
_CAPACITY_MAX: Final = 8192


class OpenFile:
    """A descriptor that lives as long as someone refers to it."""

    __slots__ = ("fd",)

    def __init__(self, path: str, flags: int) -> None:
        self.fd = -1  # for __del__, should open fail
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self, _close: Callable[[int], None] = os.close) -> None:
        if self.fd >= 0:
            _close(self.fd)


class MappedFile:
    """The bytes that a file had when it was mapped, read-only. An empty file has no map."""

    __slots__ = ("bytes",)

    def __init__(self, path: str) -> None:
        file = OpenFile(path, os.O_RDONLY)
        self.bytes = mmap.mmap(file.fd, 0, access=mmap.ACCESS_READ)


Opened = TypeVar("Opened", OpenFile, MappedFile)


class SyncFailedError(OSError):
    """An fsync failed: which of the written bytes are on disk can't be known any more."""


def fsync(path: str) -> None:
    """Have a file or a folder survive a power loss; blocks.

    Raises:
        SyncFailedError: it may not.
        OSError: it can't be opened.
    """
    file = OpenFile(path, os.O_RDONLY)
    try:
        _sync_fully(file.fd)
    except OSError as error:
        if error.errno == errno.EINVAL and os.path.isdir(path):
            return  # some file systems do not sync folders: names are as safe there as they get
        raise SyncFailedError(error.errno, error.strerror, path) from error


def _sync_fully(descriptor: int) -> None:
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        # macOS: fsync leaves the bytes in the disk's own cache. Some file systems cannot do more.
        try:
            fcntl.fcntl(descriptor, full_sync)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
        else:
            return
    os.fsync(descriptor)


class OpenFiles:
    """The least recently used open file makes room for a new one."""

    def __init__(self, capacity: int | None = None) -> None:
        """Keep up to `capacity` files open; by default a quarter of what the process may."""
        self._capacity = _default_capacity() if capacity is None else capacity
        self._lock = Lock()
        self._files: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def writer(self, path: str) -> OpenFile:
        """The file for reading and writing; made when it is not there."""
        key = (path, "write")
        found: OpenFile | None = self._find(key)
        return found or self._keep(key, OpenFile(path, os.O_RDWR | os.O_CREAT))

    def reader(self, path: str) -> OpenFile:
        """The file for reading, which is the writer where one is open."""
        key = (path, "read")
        found: OpenFile | None = self._find((path, "write")) or self._find(key)
        return found or self._keep(key, OpenFile(path, os.O_RDONLY))

    def map(self, path: str) -> MappedFile:
        """The file's bytes. When the file has grown, forget it and ask again."""
        key = (path, "map")
        found: MappedFile | None = self._find(key)
        return found or self._keep(key, MappedFile(path))

    def sync(self, path: str) -> None:
        """Have a file or a folder survive a power loss; blocks, and raises as `fsync` does.

        Every fsync of a node's logs goes through here: in simulation there is no disk to wait
        for, but a list of what is safe.
        """
        fsync(path)

    def forget(self, path: str) -> None:
        """Keep the file no longer: it was renamed, deleted, sealed or has grown."""
        with self._lock:
            forgotten = [self._files.pop((path, use), None) for use in ("write", "read", "map")]
        del forgotten  # may close the file, so not under the lock

    def clear(self) -> None:
        """Close all cached files."""
        with self._lock:
            forgotten, self._files = self._files, OrderedDict()
        forgotten.clear()

    def _find(self, key: tuple[str, str]) -> Any:
        with self._lock:
            found = self._files.get(key)
            if found is not None:
                self._files.move_to_end(key)
            return found

    def _keep(self, key: tuple[str, str], opened: Opened) -> Opened:
        evicted = []
        with self._lock:
            self._files[key] = opened
            while len(self._files) > self._capacity:
                evicted.append(self._files.popitem(last=False))
        del evicted  # may close files, so not under the lock
        return opened


def _default_capacity() -> int:
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return _CAPACITY_MAX
    return max(_CAPACITY_MIN, min(allowed // 4, _CAPACITY_MAX))
