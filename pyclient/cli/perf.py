"""`pyclient perf produce|consume`: load tests with the options and output of Kafka's own."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyclient.clock import SystemClock

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[argparse.ArgumentParser]

_EMBEDDED = "without it, an embedded broker is started for the run"


def add_command(commands: Subcommands) -> None:
    """Declare the command and its options."""
    perf = commands.add_parser("perf", help="measure how fast records can be sent or read")
    kinds = perf.add_subparsers(title="kinds", metavar="KIND", required=True)

    produce = kinds.add_parser("produce", help="send records and report rate and latency")
    _add_common(produce)
    produce.add_argument("--num-records", type=_positive, required=True, help="how many to send")
    produce.add_argument("--record-size", type=_positive, default=100, help="bytes (100)")
    produce.add_argument(
        "--throughput", type=int, default=-1, help="records per second at most; -1 is no limit"
    )
    produce.set_defaults(run=_run_produce)

    consume = kinds.add_parser("consume", help="read records and report the rate")
    _add_common(consume)
    consume.add_argument("--messages", type=_positive, required=True, help="how many to read")
    consume.add_argument(
        "--timeout", type=_positive, default=10_000, metavar="MS",
        help="give up when nothing came for so long (10000)",
    )  # fmt: skip
    consume.set_defaults(run=_run_consume)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bootstrap-server", metavar="HOST:PORT", help=_EMBEDDED)
    parser.add_argument("--topic", default="perf-test", help="(perf-test)")
    parser.add_argument(
        "--property", action="append", default=[], type=_property, metavar="KEY=VALUE",
        help="a client configuration, by Kafka's name; may be repeated",
    )  # fmt: skip


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a positive number, not {text}")
    return int(text)


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"KEY=VALUE, not {text}")
    return key, value


def _run_produce(options: argparse.Namespace) -> int:
    from pyclient.perf.produce import measure_produce

    with _servers(options) as servers:
        client = {"bootstrap_servers": servers, **dict(options.property)}
        for line in measure_produce(
            client,
            options.topic,
            options.num_records,
            options.record_size,
            options.throughput,
            SystemClock(),
        ):
            print(line, flush=True)
    return 0


def _run_consume(options: argparse.Namespace) -> int:
    from pyclient.perf.consume import measure_consume

    with _servers(options) as servers:
        client: dict[str, Any] = {"bootstrap_servers": servers, **dict(options.property)}
        if options.bootstrap_server is None:
            _fill(client, options.topic, options.messages)
        for line in measure_consume(
            client, options.topic, options.messages, options.timeout, SystemClock()
        ):
            print(line, flush=True)
    return 0


@contextmanager
def _servers(options: argparse.Namespace) -> Iterator[str]:
    if options.bootstrap_server is not None:
        yield options.bootstrap_server
        return
    from broker_stub import Broker

    with Broker() as broker:
        yield broker.bootstrap_servers


def _fill(client: dict[str, Any], topic: str, count: int) -> None:
    """An embedded broker is empty: give it something to read."""
    from pyclient import KafkaProducer

    with KafkaProducer(bootstrap_servers=client["bootstrap_servers"]) as producer:
        payload = bytes(100)
        for _ in range(count):
            producer.send(topic, payload)
