"""`python -m pyclient.perf.worker`: runs one job in a process of its own.

The job is a line of JSON on standard input. The worker prints a line of JSON when it is ready,
begins at the next line of input, and prints a line a window and one for the result. The end of
its input interrupts the run as Ctrl-C would.
"""

import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError, KafkaError
from pyclient.perf.clients import JAVA, java
from pyclient.perf.produce import run_produce
from pyclient.perf.recorder import Window
from pyclient.perf.result import Result, window_to_json
from pyclient.perf.spec import ProduceSpec


def main() -> None:
    """Run the job that standard input holds."""
    job = json.loads(sys.stdin.readline())
    try:
        result = _JOBS[job["kind"]](job)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over: an interrupt comes too late
    except KafkaConfigurationError as error:
        _say({"error": str(error), "is_usage": True})
    except KafkaError as error:
        _say({"error": str(error) or type(error).__name__, "is_usage": False})
    except Exception as error:  # noqa: BLE001  a peer raises its own
        _say({"error": f"{job['client']}: {type(error).__name__}: {error}", "is_usage": False})
    except KeyboardInterrupt:
        _say({"error": "interrupted before the run began", "is_usage": False})
    else:
        _say({"result": result.to_json()})


def _produce(job: Mapping[str, Any]) -> Result:
    spec = ProduceSpec(**job["spec"])
    if job["client"] == JAVA:
        java.classpath(job["kafka_home"])
        _begin_when_told()
        spec = spec.share(job["number"], job["processes"])
        return java.produce(job["options"], spec, job["kafka_home"], _say_window)
    return run_produce(
        job["options"],
        spec.load(job["number"], job["processes"]),
        client=job["client"],
        name=job["client"],
        on_window=_say_window,
        on_ready=_begin_when_told,
    )


_JOBS: Final[Mapping[str, Callable[[Mapping[str, Any]], Result]]] = {"produce": _produce}


def _begin_when_told() -> None:
    _say({"ready": True})
    if not sys.stdin.readline():
        raise KeyboardInterrupt
    threading.Thread(target=_interrupt_at_the_end_of_input, daemon=True).start()


def _interrupt_at_the_end_of_input() -> None:
    sys.stdin.read()
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGINT)


def _say_window(window: Window) -> None:
    _say({"window": window_to_json(window)})


def _say(message: Mapping[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
