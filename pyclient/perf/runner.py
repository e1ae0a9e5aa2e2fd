"""Runs a job in worker processes, and adds up what they report.

All clients are measured like this, ours too: alone in their processes.
"""

import json
import queue
import signal
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError, KafkaError
from pyclient.perf.processes import child
from pyclient.perf.recorder import Window
from pyclient.perf.result import Result, merged_results, merged_windows, window_from_json

PROCESSES_MAX: Final = 64
_INTERRUPT: Final[dict[str, Any]] = {}


def run_job(
    job: Mapping[str, Any],
    processes: int = 1,
    on_window: Callable[[Window], None] | None = None,
) -> Result:
    """Run a job, shared by `processes` workers that begin together; Ctrl-C ends it early.

    `on_window` gets the figures of each second of all of them, on this thread.

    Raises:
        KafkaConfigurationError: a worker refused the job.
        KafkaError: a worker failed.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(child("pyclient.perf.worker")) for _ in range(processes)]
        try:
            for number, worker in enumerate(workers):
                _tell(worker, json.dumps({**job, "number": number, "processes": processes}))
            for worker in workers:
                _heard(worker)
            for worker in workers:
                _tell(worker, "go")
            return merged_results(_collected(workers, on_window))
        except BaseException:
            for worker in workers:
                worker.kill()
            raise


def _collected(
    workers: list[subprocess.Popen[str]], on_window: Callable[[Window], None] | None
) -> list[Result]:
    messages: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()

    def read(number: int, worker: subprocess.Popen[str]) -> None:
        is_open = True
        while is_open:
            message = _message(worker)
            messages.put((number, message))
            is_open = "window" in message

    for number, worker in enumerate(workers):
        threading.Thread(target=read, args=(number, worker), daemon=True).start()
    windows: defaultdict[int, list[Window]] = defaultdict(list)
    seen = [0] * len(workers)
    results: dict[int, Result] = {}
    with _first_interrupt(lambda: messages.put((-1, _INTERRUPT))):
        while len(results) < len(workers):
            number, message = messages.get()
            if message is _INTERRUPT:
                for worker in workers:
                    _interrupt(worker)
                continue
            _check(message)
            if "result" in message:
                results[number] = Result.from_json(message["result"])
                continue
            place, seen[number] = seen[number], seen[number] + 1
            windows[place].append(window_from_json(message["window"]))
            if len(windows[place]) == len(workers):
                whole = (
                    merged_windows(windows.pop(place))
                    if len(workers) > 1
                    else windows.pop(place)[0]
                )
                if on_window is not None:
                    on_window(whole)
    return [results[number] for number in range(len(workers))]


@contextmanager
def _first_interrupt(on_interrupt: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls `on_interrupt`; the second time it is KeyboardInterrupt as usual.

    An exception in the middle of the loop could lose a message that was taken already.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers, and only it is interrupted
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        on_interrupt()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _tell(worker: subprocess.Popen[str], line: str) -> None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):  # its last words say why
        worker.stdin.write(line + "\n")
        worker.stdin.flush()


def _interrupt(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    with suppress(BrokenPipeError):
        worker.stdin.close()


def _heard(worker: subprocess.Popen[str]) -> None:
    _check(_message(worker))


def _message(worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout is not None
    line = worker.stdout.readline()
    if not line:
        return {"error": "a worker process ended early; standard error says why", "is_usage": False}
    message: dict[str, Any] = json.loads(line)
    return message


def _check(message: Mapping[str, Any]) -> None:
    if "error" in message:
        kind = KafkaConfigurationError if message["is_usage"] else KafkaError
        raise kind(message["error"])
