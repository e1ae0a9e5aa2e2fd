"""The disk of a simulated broker: real files, of which a power loss takes what was not synced.

The broker works on a folder in memory with the calls of the system, as always; only its fsyncs
come here, through `OpenFiles.sync`. Each one notes what is safe from then on: the bytes of a
file, or the names in a folder. A power loss rebuilds the folder from what was safe and, at random,
from parts of what was not:

- Of a file's new bytes any number from the front is there, and zeros may follow, as file systems
  leave them that had noted the length before the data; and zeros may stand in the middle, where
  a later block was written before an earlier one.
- Of a folder's changes since its last sync each is there or not, independently: files that were
  made, renamed, removed. A renamed one has its old name or its new one.

That is what POSIX allows; most file systems do less harm. docs/simulation.md says why it is done
like this. The scheduler's thread.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from broker_stub.log.files.open_files import OpenFiles
from broker_stub.testing.simulation.chance import Chance
from broker_stub.testing.simulation.trace import Trace

_IN_MEMORY: Final = "/dev/shm"
_ZEROS: Final = 0.2  # how often zeros stand where data should
_HOLES: Final = 0.2  # how often they stand before data that is there

Names: TypeAlias = Mapping[str, int]
"""What a folder holds: inodes by name."""


class _SimulatedFiles(OpenFiles):
    """The open files of a broker; a sync tells the simulated disk and costs nothing."""

    def __init__(self, disk: SimulatedDisk) -> None:
        super().__init__()
        self._disk = disk

    def sync(self, path: str) -> None:
        """Have a file or a folder survive a power loss."""
        self._disk.synced(path)

    def sync_all(self, descriptors: Sequence[int]) -> bool:  # noqa: ARG002
        """Every file is synced by itself: the disk learns of each."""
        return False


class _Entry:
    """A file or a folder: what of it is safe, and what a power loss finds.

    It holds the file open: as long as it does, the system gives the inode to no other file.
    """

    __slots__ = ("_descriptor", "is_folder", "safe_content", "safe_names")

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.is_folder = stat.S_ISDIR(os.fstat(self._descriptor).st_mode)
        self.safe_content = b""
        self.safe_names: Names = {}

    def let_go(self) -> None:
        os.close(self._descriptor)

    def content(self) -> bytes:
        """The bytes that a file has now, also if it has no name any more."""
        return os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)

    def names(self) -> Names:
        """What a folder holds now."""
        with os.scandir(self._descriptor) as found:
            return {one.name: one.inode() for one in found}


class SimulatedDisk:
    """One broker's disk.

    Attributes:
        path: the broker's folder on it; another one after every power loss.
    """

    def __init__(self, chance: Chance, trace: Trace) -> None:
        self._chance = chance
        self._trace = trace
        in_memory = _IN_MEMORY if os.path.isdir(_IN_MEMORY) else None
        self._home = tempfile.mkdtemp(prefix="simulated-disk-", dir=in_memory)
        self._entries: dict[int, _Entry] = {}
        self._losses = 0
        self.path = self._new_folder()

    def files(self) -> OpenFiles:
        """The open files of a broker that works on this disk."""
        return _SimulatedFiles(self)

    def remove(self) -> None:
        """Delete the disk and all its files."""
        self._forget_all()
        shutil.rmtree(self._home)

    def synced(self, path: str) -> None:
        """A file or a folder was synced: note what is safe now."""
        entry = self._entry(path, os.stat(path).st_ino)
        if not entry.is_folder:
            entry.safe_content = entry.content()
            return
        entry.safe_names = entry.names()
        for name, inode in entry.safe_names.items():
            self._entry(os.path.join(path, name), inode)

    def lose_power(self) -> None:
        """Leave what was safe, and parts of what was not."""
        self._learn(self.path)
        keeps = self._chance.choice((0.0, 0.5, 1.0))
        self._trace.note("disk", "keeps what was not synced with probability %.1f", keeps)
        self._losses += 1
        old, self.path = self.path, self._new_folder()
        self._restore(self._entries[os.stat(old).st_ino], self.path, keeps)
        self._forget_all()
        shutil.rmtree(old)
        self._all_synced(self.path)

    def _new_folder(self) -> str:
        path = os.path.join(self._home, f"data-{self._losses}")
        os.mkdir(path)
        return path

    def _entry(self, path: str, inode: int) -> _Entry:
        entry = self._entries.get(inode)
        if entry is None:
            entry = self._entries[inode] = _Entry(path)
        return entry

    def _forget_all(self) -> None:
        for entry in self._entries.values():
            entry.let_go()
        self._entries.clear()

    def _learn(self, path: str) -> None:
        """Have an entry for everything that is there."""
        entry = self._entry(path, os.stat(path).st_ino)
        if entry.is_folder:
            for name in sorted(entry.names()):
                self._learn(os.path.join(path, name))

    def _all_synced(self, path: str) -> None:
        self.synced(path)
        if os.path.isdir(path):
            for name in sorted(os.listdir(path)):
                self._all_synced(os.path.join(path, name))

    # --- what is there when the power comes back ---------------------------------------------

    def _restore(self, folder: _Entry, path: str, keeps: float) -> None:
        for name, inode in sorted(self._names_after(folder, keeps).items()):
            entry, target = self._entries[inode], os.path.join(path, name)
            if entry.is_folder:
                os.mkdir(target)
                self._restore(entry, target, keeps)
            else:
                with open(target, "wb") as file:
                    file.write(self._content_after(name, entry, keeps))

    def _names_after(self, folder: _Entry, keeps: float) -> Names:
        safe, last = folder.safe_names, folder.names()
        new_names = {inode: name for name, inode in last.items()}
        after: dict[str, int | None] = {}
        for old_name, inode in sorted(safe.items()):
            new_name = new_names.get(inode, old_name)
            if new_name != old_name:  # renamed: one of both, whatever becomes of the others
                now = last if self._chance.happens(keeps) else safe
                after[old_name], after[new_name] = now.get(old_name), now.get(new_name)
        for name in sorted({**safe, **last}):
            if name not in after:
                changed = safe.get(name) != last.get(name)
                now = last if not changed or self._chance.happens(keeps) else safe
                after[name] = now.get(name)
        return {name: inode for name, inode in after.items() if inode is not None}

    def _content_after(self, name: str, entry: _Entry, keeps: float) -> bytes:
        safe, last = entry.safe_content, entry.content()
        if safe == last or self._chance.happens(keeps):
            return last
        after = safe
        if last.startswith(safe):
            end = len(safe) + self._chance.below(len(last) - len(safe) + 1)
            after = last[:end]
            if self._chance.happens(_HOLES):
                lost = self._chance.below(len(last) - end + 1)
                after += bytes(lost) + last[end + lost :]
            elif self._chance.happens(_ZEROS):
                after += bytes(self._chance.below(len(last) - end + 1))
        self._trace.note("disk", "%s has %d of %d bytes", name, len(after), len(last))
        return after
