"""A bounded cache of open files, so that ten thousand partitions need few descriptors.

`OpenFiles` is an LRU of descriptors and memory maps (Python's maps hold a descriptor of their own).
A file closes when its last reference is dropped: the cache's, or that of a `FileSlice` on its way
to a reader. So eviction and deletion never close a file that is being read. Any thread; one lock
guards the LRU, and nothing is opened or closed under it.
"""

import errno
import fcntl
import mmap
import os
import resource
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final, TypeVar

_CAPACITY_MIN: Final = 16
_CAPACITY_MAX: Final = 8192


class OpenFile:
    """A descriptor that is closed when the object is freed."""

    __slots__ = ("fd",)

    def __init__(self, path: str, flags: int) -> None:
        self.fd = -1  # for __del__, should open fail
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self, _close: Callable[[int], None] = os.close) -> None:
        if self.fd >= 0:
            _close(self.fd)


class MappedFile:
    """A read-only map of the bytes that a file had when it was opened; never of an empty file."""

    __slots__ = ("bytes",)

    def __init__(self, path: str) -> None:
        file = OpenFile(path, os.O_RDONLY)
        self.bytes = mmap.mmap(file.fd, 0, access=mmap.ACCESS_READ)


Opened = TypeVar("Opened", OpenFile, MappedFile)


class SyncFailedError(OSError):
    """An fsync failed: it is unknown which of the written bytes are on disk."""


def fsync(path: str) -> None:
    """Sync a file or a directory to disk; blocks.

    Raises:
        SyncFailedError: the sync failed.
        OSError: the path cannot be opened.
    """
    file = OpenFile(path, os.O_RDONLY)
    try:
        _sync_fully(file.fd)
    except OSError as error:
        if error.errno == errno.EINVAL and os.path.isdir(path):
            return  # some file systems cannot sync directories
        raise SyncFailedError(error.errno, error.strerror, path) from error


def _sync_fully(descriptor: int) -> None:
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        # macOS: fsync leaves the bytes in the drive's cache. Some file systems cannot do more.

        try:
            fcntl.fcntl(descriptor, full_sync)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
        else:
            return
    os.fsync(descriptor)


class OpenFiles:
    """The cache; the least recently used file makes room for a new one."""

    def __init__(self, capacity: int | None = None) -> None:
        """Keep up to `capacity` files open; by default a quarter of the process's limit."""
        self._capacity = _default_capacity() if capacity is None else capacity
        self._lock = Lock()
        self._files: OrderedDict[tuple[str, str], Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._files)

    def writer(self, path: str) -> OpenFile:
        """The file for reading and writing; created if missing."""
        key = (path, "write")
        found: OpenFile | None = self._find(key)
        return found or self._keep(key, OpenFile(path, os.O_RDWR | os.O_CREAT))

    def reader(self, path: str) -> OpenFile:
        """The file for reading; the writer's, if one is open."""
        key = (path, "read")
        found: OpenFile | None = self._find((path, "write")) or self._find(key)
        return found or self._keep(key, OpenFile(path, os.O_RDONLY))

    def map(self, path: str) -> MappedFile:
        """A map of the file. After the file has grown, call `forget` first."""
        key = (path, "map")
        found: MappedFile | None = self._find(key)
        return found or self._keep(key, MappedFile(path))

    def sync(self, path: str) -> None:
        """Sync a file or a directory to disk; blocks, and raises as `fsync` does.

        Every fsync of a node's logs goes through here, so that a simulation can replace it.
        """
        fsync(path)

    def sync_all(self, descriptors: Sequence[int]) -> bool:
        """Sync all files on the file systems of these open files; False if that is not possible."""
        from broker_stub.log.files.file_systems import sync_file_systems  # few stops need it

        return sync_file_systems(descriptors)

    def forget(self, path: str) -> None:
        """Drop a file that was renamed, deleted, sealed or has grown."""
        with self._lock:
            forgotten = [self._files.pop((path, use), None) for use in ("write", "read", "map")]
        del forgotten  # may close the file, so not under the lock

    def clear(self) -> None:
        """Drop all files from the cache."""
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
