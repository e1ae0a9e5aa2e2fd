"""`python -m broker_stub`: the broker as a server of its own.

One line on standard output once it serves; SIGTERM or SIGINT stop it cleanly.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from broker_stub.broker import Broker
from broker_stub.properties import parse_property, read_properties
from pyclient.errors import KafkaError

_DEFAULT_PORT = 9092
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a broker until it is told to stop; the exit code."""
    parsed = _parser().parse_args(arguments)
    # Held back before any thread starts, so that no thread but this one gets them, and only
    # where it waits for them.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        broker = Broker(parsed.data_dir, parsed.port, _options(parsed), host=parsed.host)
        broker.start()
    except (KafkaError, OSError) as error:
        print(f"broker_stub: {_reason(error)}", file=sys.stderr)
        return 1
    print(f"broker_stub listening on {broker.bootstrap_servers}", flush=True)
    signal.sigwait(_STOP_SIGNALS)
    # A second one, while the broker stops, ends it the hard way.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    broker.stop()
    return 0


def _options(parsed: argparse.Namespace) -> dict[str, object]:
    options: dict[str, object] = {}
    if parsed.properties is not None:
        options.update(read_properties(parsed.properties))
    options.update(parsed.config)
    return options


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _option(text: str) -> tuple[str, str]:
    try:
        return parse_property(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m broker_stub",
        description="A one-node Kafka broker. It prints one line once it serves, and stops "
        "cleanly on SIGTERM or Ctrl-C.",
        epilog="Example: python -m broker_stub --data-dir ./data --config num.partitions=3",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=_DEFAULT_PORT,
        help="port to serve on; 0 takes a free one (default: %(default)s)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on and to give to clients (default: %(default)s)",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="where topics and records are kept; without it in a temporary folder, which is "
        "removed at the end",
    )
    parser.add_argument(
        "--config",
        type=_option,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option by Kafka's name, as in server.properties; may be repeated",
    )
    parser.add_argument(
        "--properties",
        type=Path,
        metavar="FILE",
        help="a file of such options; those given by --config go before it",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
