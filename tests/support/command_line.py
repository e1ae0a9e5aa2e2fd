"""Runs `pyclient` in this process, as a user types it."""

import io
import json
import sys
from typing import Any, NamedTuple, Protocol

import pytest

from pyclient.cli.main import main


class Done(NamedTuple):
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Servers(Protocol):
    """A broker of ours, or Apache Kafka."""

    @property
    def bootstrap_servers(self) -> str: ...


class Shell:
    """Types commands at a broker."""

    def __init__(
        self, broker: Servers, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self._capture = capture
        self._patch = patch
        patch.setenv("PYCLIENT_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        patch.setenv("PYCLIENT_CONFIG", "/nonexistent/pyclient.toml")

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Done:
        self._capture.readouterr()
        with self._patch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            code = main(list(arguments))
        return Done(code, *self._capture.readouterr())
