"""`broker-stub`, or `python -m broker_stub`: the broker as a server process.

One line on standard output once it serves; SIGTERM, SIGINT or SIGHUP stop it cleanly.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from broker_stub.config.listeners import PORT_MAX
from pyclient.config.properties import parse_property, read_properties
from pyclient.errors import BrokerResponseError, KafkaError
from pyclient.version import __version__

if TYPE_CHECKING:
    from broker_stub.broker import Broker

_DEFAULT_PORT = 9092
_FILES_WANTED = 1 << 16  # where the system sets no limit
_CHECK_SECONDS = 10

_DESCRIPTION = """\
A one-node Kafka broker, for any Kafka client, with storage in Kafka's own format.

It prints one line when it is ready, and stops cleanly on SIGTERM or Ctrl-C. After a
crash, the next start recovers the data; no acknowledged record is lost.
"""

_EPILOG = """\
examples (`broker-stub` and `python -m broker_stub` are the same):
  broker-stub                          on port 9092, with temporary data
  broker-stub --port 0                 on a free port, which it prints
  broker-stub --data-dir ./data        keeps its data in ./data
  broker-stub --properties server.properties --config num.partitions=3
  broker-stub --config listeners=PLAINTEXT://:9092 \\
      --config advertised.listeners=PLAINTEXT://kafka.test:9092
                                       for clients on other machines, too

Options have Kafka's names and meanings; --list-options shows those with an effect.
Apache Kafka's other options are accepted with a warning; unknown ones are errors.
SKIPPED.md, in the package's folder, lists what this broker does not implement.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a broker until a signal stops it; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    if parsed.list_options:
        with suppress(BrokenPipeError):  # the reader, such as head, has closed its end
            _print(_listed_options())
        return 0
    if parsed.log_level is not None:
        import logging  # a broker that logs nothing starts faster

        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("broker_stub").setLevel(parsed.log_level.upper())
    try:
        from broker_stub import Broker  # noqa: F401
    except ImportError as error:  # on Windows, say
        print(f"broker_stub: {error}", file=sys.stderr)
        return 1
    stop_signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        stop_signals.remove(signal.SIGHUP)  # nohup: keep running when the terminal closes
    # Blocked before any thread starts, so that only this thread gets them, and only where it
    # waits for them.
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    _allow_open_files()
    try:
        broker = _broker(parsed)
        broker.start()
    except (KafkaError, OSError) as error:
        print(f"broker_stub: {_reason(error)}", file=sys.stderr)
        return 1
    try:
        _print(f"broker_stub listening on {', '.join(broker.listeners.values())}")
    except OSError as error:
        # A process that waits for the line would wait forever.
        print(f"broker_stub: cannot say that it serves: {_reason(error)}", file=sys.stderr)
        exit_code = 1
    else:
        exit_code = _wait(broker, stop_signals)
    # A second signal while the broker stops ends the process at once.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals)
    try:
        broker.stop()
    except KafkaError as error:
        print(f"broker_stub: {_reason(error)}; the next start recovers", file=sys.stderr)
        exit_code = 1
    return exit_code


def _wait(broker: Broker, stop_signals: set[signal.Signals]) -> int:
    """Wait for a signal. If the broker ends by itself, that is a failure."""
    is_told_to_stop = _stop_request(stop_signals)
    while not is_told_to_stop(_CHECK_SECONDS):
        if not broker.running:
            print("broker_stub: the serving thread has died; the log says why", file=sys.stderr)
            return 1
    return 0


def _stop_request(stop_signals: set[signal.Signals]) -> Callable[[float], bool]:
    """A function that waits for one of the blocked signals, with a timeout in seconds."""
    if hasattr(signal, "sigtimedwait"):
        return lambda seconds: signal.sigtimedwait(stop_signals, seconds) is not None
    # macOS has no sigtimedwait. The handler removes itself on the first signal, so that a second
    # one ends the process at once here too.
    told = threading.Event()

    def tell(*_: object) -> None:
        for each in stop_signals:
            signal.signal(each, signal.SIG_DFL)
        told.set()

    for each in stop_signals:
        signal.signal(each, tell)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stop_signals)
    return told.wait


def _print(text: str) -> None:
    if sys.stdout is not None:  # None if the process was started without one
        os.write(sys.stdout.fileno(), f"{text}\n".encode())  # unbuffered, to fail here if at all


def _allow_open_files() -> None:
    """Raise the limit of open files to the maximum, as Java does: each connection needs one."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_WANTED if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # keep the current limit
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _broker(parsed: argparse.Namespace) -> Broker:
    from broker_stub.broker import Broker

    options: dict[str, object] = {}
    if parsed.properties is not None:
        options.update(read_properties(parsed.properties))
    options.update(parsed.config)
    port = parsed.port
    if port is None:
        port = 0 if "listeners" in options else _DEFAULT_PORT
    return Broker(parsed.data_dir, port, options, host=parsed.host, keep_requests=False)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, BrokerResponseError) and error.args:
        return str(error.args[0])  # without its error code: it is not sent to a client
    return str(error)


def _listed_options() -> str:
    from broker_stub.config.entries import as_text
    from broker_stub.config.keys import BROKER_DEFINITION

    lines = []
    for name, row in sorted(BROKER_DEFINITION.keys.items()):
        lines += [f"{name} ({row.allowed()})", f"    {row.doc}"]
        if row.default not in (None, []):
            lines[-1] += f" Default: {as_text(row.default)}"
    return "\n".join(lines)


def _option(text: str) -> tuple[str, str]:
    try:
        return parse_property(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise argparse.ArgumentTypeError(f"the port must be 0 to {PORT_MAX}, not {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    prog = "broker-stub" if Path(sys.argv[0]).name == "broker-stub" else "python -m broker_stub"
    parser = argparse.ArgumentParser(
        prog=prog,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--port",
        type=_port,
        help=f"port to serve on; 0 takes a free one (default: {_DEFAULT_PORT})",
    )
    parser.add_argument("--host", help="address to listen on and to advertise (default: 127.0.0.1)")
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder to keep topics and records in (default: a temporary one, removed at exit)",
    )
    parser.add_argument(
        "--config",
        type=_option,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a Kafka broker option, as in server.properties; may be repeated",
    )
    parser.add_argument(
        "--properties",
        type=Path,
        metavar="FILE",
        help="a file of such options; --config overrides it",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "warning", "error"),
        help="what to log to standard error; debug logs every request (default: warning)",
    )
    parser.add_argument(
        "--list-options",
        action="store_true",
        help="list every option with its values, meaning and default, and exit",
    )
    parser.add_argument("--version", action="version", version=f"broker_stub {__version__}")
    return parser


if __name__ == "__main__":
    sys.exit(main())
