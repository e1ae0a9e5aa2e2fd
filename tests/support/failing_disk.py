"""A failing disk: system calls fail as configured, also in the middle of a write.

Patches `os` and `open`, so the code's own calls fail, and what they wrote before is really there.
"""

import builtins
import os
from collections.abc import Callable
from typing import Any

import pytest

CALLS = ("open", "pwrite", "ftruncate", "truncate", "rename", "replace", "fsync", "mkdir", "unlink")
WRITES = frozenset({"open", "pwrite", "ftruncate", "truncate", "rename", "replace", "mkdir"})


class FailingDisk:
    """Works until `refuse` is called; `refused` lists the failed calls by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refused: list[str] = []
        self._error: int | None = None
        self._calls: frozenset[str] = frozenset()
        self._suffix = ""
        self._bytes_before = 0
        for name in CALLS:
            monkeypatch.setattr(os, name, self._guarded(name, getattr(os, name)))
        self._open = builtins.open
        monkeypatch.setattr(builtins, "open", self._open_text)

    def refuse(self, error: int, *calls: str, suffix: str = "", bytes_before: int = 0) -> None:
        """Fail these calls (all that write, if none is named) on files that end so.

        A `pwrite` writes `bytes_before` bytes first, as a disk does that is full then.
        """
        self._error = error
        self._calls = frozenset(calls) or WRITES
        self._suffix = suffix
        self._bytes_before = bytes_before

    def mend(self) -> None:
        self._error = None

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(target: Any, *arguments: Any, **options: Any) -> Any:
            if not self._refuses(name, target, arguments):
                return call(target, *arguments, **options)
            if name == "pwrite" and self._bytes_before:
                data, position = arguments
                count, self._bytes_before = min(len(data), self._bytes_before), 0
                return call(target, memoryview(data)[:count], position)
            raise self._failure(name, target)

        return guarded

    def _open_text(self, path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        writes = "w" in mode and not isinstance(path, int)
        if writes and self._refuses("open", path, (os.O_WRONLY,)):
            raise self._failure("open", path)
        return self._open(path, mode, *arguments, **options)

    def _refuses(self, name: str, target: Any, arguments: tuple[Any, ...]) -> bool:
        if self._error is None or name not in self._calls:
            return False
        if name == "open" and not arguments[0] & (os.O_WRONLY | os.O_RDWR):
            return False
        path = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else str(target)
        return path.endswith(self._suffix)

    def _failure(self, name: str, target: Any) -> OSError:
        self.refused.append(name)
        assert self._error is not None
        return OSError(self._error, os.strerror(self._error), str(target))
