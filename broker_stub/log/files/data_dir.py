"""The root of a data directory: its owner, its lock, and whether it was shut down cleanly.

`meta.properties` has the ids of cluster, node and directory; `.lock` keeps a second broker out;
`.kafka_cleanshutdown` exists from a clean shutdown to the next start. Used at start and stop, off
the serving thread.
"""

import contextlib
import fcntl
import os
import weakref
from typing import Final

from broker_stub.log.files.checkpoint_file import Sync, write_atomically
from broker_stub.log.files.open_files import OpenFile, fsync
from pyclient.entropy import Entropy
from pyclient.errors import InconsistentClusterIdError, KafkaStorageError
from pyclient.types import TopicPartition, format_uuid, parse_uuid

META_PROPERTIES: Final = "meta.properties"
LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"

_VERSION: Final = "1"

# The owners of directories, by process (a forked child owns none) and real path. Threads need no
# lock: `setdefault` is atomic.
_in_use: dict[tuple[int, str], "weakref.ref[DataDir]"] = {}


class DataDir:
    """A directory in which a broker stores partitions; locked until released."""

    def __init__(self, path: str, sync: Sync = fsync) -> None:
        """Lock the directory, which is created if missing.

        Raises:
            KafkaStorageError: another broker uses it, or it cannot be used at all.
        """
        self.path = path
        self._sync = sync
        self.cluster_id = ""
        self.directory_id = bytes(16)
        self._owner: int | None = None  # the node, until that is written
        self._clean_epoch: int | None = None  # as the clean stop before us noted it
        self._place = (os.getpid(), os.path.realpath(path))
        try:
            os.makedirs(path, exist_ok=True)
            self._keep_others_out()
            self._lock: OpenFile | None = OpenFile(self.file(LOCK), os.O_RDWR | os.O_CREAT)
            _lock(self._lock.fd)
        except BlockingIOError as error:
            self._let_others_in()
            raise KafkaStorageError(f"{path} is in use: another broker has locked it") from error
        except OSError as error:
            self._let_others_in()
            raise KafkaStorageError(f"cannot use {path}: {error.strerror}") from error

    def _keep_others_out(self) -> None:
        """Refuse the directory if another broker of this process has it.

        That one must not even open the lock file: closing it again would release Java's lock.

        Raises:
            BlockingIOError: another broker has it.
        """
        ours = weakref.ref(self)
        found = _in_use.setdefault(self._place, ours)
        if found is not ours and found() is not None:
            raise BlockingIOError(self.path)
        _in_use[self._place] = ours

    def _let_others_in(self) -> None:
        if _in_use.get(self._place) is weakref.ref(self):
            del _in_use[self._place]

    def file(self, name: str) -> str:
        """The path of a file in the root."""
        return os.path.join(self.path, name)

    @property
    def is_new(self) -> bool:
        """Whether the directory has no owner yet."""
        return _read_properties(self.file(META_PROPERTIES)) is None

    @property
    def descriptor(self) -> int:
        """A file in the root that is open for as long as the directory is locked."""
        assert self._lock is not None
        return self._lock.fd

    def release(self) -> None:
        if self._lock is not None:
            # A forked child may have the file open as well: closing ours would not unlock it.
            fcntl.flock(self._lock.fd, fcntl.LOCK_UN)
            self._lock = None
            self._let_others_in()

    def identify(self, node_id: int, cluster_id: str | None, entropy: Entropy) -> None:
        """Read the owner; for a new directory, choose the ids. `claim` writes them.

        Raises:
            InconsistentClusterIdError: it belongs to another cluster.
            KafkaStorageError: it belongs to another node, has another format, is damaged, or
                holds partitions without an owner.
        """
        path = self.file(META_PROPERTIES)
        found = _read_properties(path)
        if found is None:
            self._refuse_partitions(path)
            self.cluster_id = cluster_id or format_uuid(entropy.uuid())
            self.directory_id = entropy.uuid()
            self._owner = node_id
            return
        if found.get("version") != _VERSION:
            raise KafkaStorageError(
                f"{path} has version {found.get('version')}; this broker reads {_VERSION}"
            )
        if found.get("node.id") != str(node_id):
            raise KafkaStorageError(
                f"{path} belongs to node {found.get('node.id')}, not to node {node_id}"
            )
        self.cluster_id = found.get("cluster.id", "")
        if not self.cluster_id:
            raise KafkaStorageError(f"{path} has no cluster.id")
        if cluster_id not in (None, self.cluster_id):
            raise InconsistentClusterIdError(
                f"{path} belongs to cluster {self.cluster_id}, not to {cluster_id}"
            )
        if "directory.id" in found:
            self.directory_id = _to_uuid(path, found["directory.id"])
        else:  # brokers before Kafka 3.7 wrote none
            self.directory_id = entropy.uuid()
            self._owner = node_id

    def _refuse_partitions(self, path: str) -> None:
        for name in sorted(os.listdir(self.path)):
            if partition_of(name) is not None and os.path.isdir(self.file(name)):
                raise KafkaStorageError(
                    f"{path} is missing or empty, but there is {name}: restore that file from a"
                    " copy, or move the partition directories away to start empty"
                )

    def claim(self) -> None:
        """Write the owner of a new directory, once it is certain to be used.

        Raises:
            OSError: the disk refused.
        """
        if self._owner is None:
            return
        text = (
            f"version={_VERSION}\nnode.id={self._owner}\ncluster.id={self.cluster_id}\n"
            f"directory.id={format_uuid(self.directory_id)}\n"
        )
        write_atomically(self.file(META_PROPERTIES), text, sync=self._sync)
        self._sync(self.path)
        self._owner = None

    def take_clean_shutdown(self) -> int | None:
        """The broker epoch of a clean shutdown, -1 if not recorded; None after a crash.

        Removes the marker: until the next clean shutdown, the directory counts as crashed.
        """
        path = self.file(CLEAN_SHUTDOWN)
        try:
            with open(path, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return None
        os.unlink(path)
        self._sync(self.path)
        self._clean_epoch = -1
        import json  # slow to import, and a first start does not need it

        with contextlib.suppress(ValueError, KeyError, TypeError):
            self._clean_epoch = int(json.loads(text)["brokerEpoch"])
        return self._clean_epoch

    def put_back_clean_shutdown(self) -> None:
        """Restore the marker of a clean shutdown, because nothing was changed since."""
        if self._clean_epoch is not None:
            self.mark_clean_shutdown(self._clean_epoch)

    def mark_clean_shutdown(self, broker_epoch: int) -> None:
        """Write the marker: everything is on disk."""
        text = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
        write_atomically(self.file(CLEAN_SHUTDOWN), text, sync=self._sync)
        self._sync(self.path)


def _lock(descriptor: int) -> None:
    """Take Java's lock (lockf), and a flock, which a forked child does not release.

    Raises:
        BlockingIOError: another process holds one of them.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # On macOS the two conflict, because both are of one kind there: Java's must do.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def partition_of(name: str) -> TopicPartition | None:
    """The partition whose directory has this name, or None."""
    topic, _, index = name.rpartition("-")
    if not topic or not (index.isascii() and index.isdigit()):
        return None
    return TopicPartition(topic, int(index))


def _read_properties(path: str) -> dict[str, str] | None:
    """The keys and values of a properties file; None if it is missing or empty.

    Raises:
        KafkaStorageError: it is not text.
    """
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise KafkaStorageError(f"{path} is damaged: {error}") from error
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#!"]
    return {key.strip(): value.strip() for key, _, value in pairs} or None


def _to_uuid(path: str, text: str) -> bytes:
    try:
        return parse_uuid(text)
    except ValueError:
        raise KafkaStorageError(f"{path}: directory.id {text!r} is not a UUID") from None
