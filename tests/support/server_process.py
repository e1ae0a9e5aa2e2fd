"""`python -m broker_stub` as a process: on one port and one folder, through any number of lives."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

ROOT = Path(__file__).parents[2]


@contextmanager
def serving(
    command: Sequence[str | Path], **options: Any
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A broker that another command starts, and its address; killed in the end if need be."""
    process = subprocess.Popen(
        command, **options, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"broker_stub listening on (127\.0\.0\.1:\d+)\n", line)
        assert found, line or process.communicate(timeout=30)
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


class ServerProcess:
    """A broker that can be killed for real."""

    def __init__(self, *arguments: str | Path, wrapper: Sequence[str] = ()) -> None:
        """`wrapper` is a command that runs another one, such as `prlimit`."""
        self._arguments = [str(argument) for argument in arguments]
        self._wrapper = wrapper
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None
        self.port = 0

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start, on the same port as before, and return once it serves."""
        command = [*self._wrapper, sys.executable, "-m", "broker_stub", "--port", str(self.port)]
        # A file: nobody reads it while the broker runs, and a pipe that is full would stop it.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as this
        self._process = subprocess.Popen(
            [*command, *self._arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.fullmatch(r"broker_stub listening on 127\.0\.0\.1:(\d+)\n", line)
        if found is None:
            self._process.wait(30)
            raise AssertionError(line or self.errors())
        self.port = int(found[1])
        return self

    def errors(self) -> str:
        """What the last life has written to standard error so far."""
        assert self._errors is not None
        self._errors.seek(0)
        return self._errors.read().decode()

    def signal(self, number: int) -> int:
        """Send a signal, and wait for the end; the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(30)

    def kill(self) -> None:
        """`kill -9`."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()  # so that no temporary folder stays
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(30)
        self.kill()
