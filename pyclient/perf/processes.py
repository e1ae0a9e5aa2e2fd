"""Child processes of a load test: Python modules, on this process's import path."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pyclient.errors import KafkaError

STOP_SECONDS: Final = 30


@contextmanager
def child(module: str) -> Iterator[subprocess.Popen[str]]:
    """`python -m module`, with pipes. It must end when its standard input does.

    So it ends with this process in any case. It is in a session of its own: Ctrl-C reaches only
    this process, which decides what becomes of the run.
    """
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended already
            process.stdin.close()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            process.stdout.close()


@contextmanager
def broker_process() -> Iterator[str]:
    """The embedded broker in a process of its own, empty; its address.

    Raises:
        KafkaError: it did not start.
    """
    with child("pyclient.perf.embedded_broker") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise KafkaError("the embedded broker did not start; standard error says why")
        yield address
