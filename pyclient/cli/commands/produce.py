"""`pyclient produce`: records from lines or JSON, of a file or standard input.

Input is read in blocks and sent in runs of records, without a Python call per record.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

import click

from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.types import KEY_VALUE
from pyclient.cli.output.printing import Output, output_options
from pyclient.errors import KafkaConfigurationError, KafkaError

BLOCK_BYTES: Final = 1 << 20
LINE_BYTES_MAX: Final = 1 << 30
_EPILOG = """\b
Examples:
  echo 'hello' | pyclient produce orders
  pyclient produce orders --file orders.txt --compression zstd
  echo 'k1:v1' | pyclient produce orders --key-separator :
  pyclient produce orders --json-lines < records.jsonl
\b
A JSON line has "value", and may have "key", "headers" (an object),
"partition" and "timestamp" (milliseconds), as `pyclient consume --json` prints.
"""
_ESCAPES: Final = {"\\t": "\t", "\\n": "\n", "\\0": "\0", "\\r": "\r"}


@click.command("produce", epilog=_EPILOG)
@click.argument("topic")
@click.option("-f", "--file", "path", type=click.Path(path_type=Path), help="Instead of stdin.")
@click.option("-K", "--key-separator", metavar="TEXT", help="Splits key and value; \\t is a tab.")
@click.option("-D", "--delimiter", metavar="TEXT", default="\\n", show_default=True,
              help="Ends a record.")  # fmt: skip
@click.option("--null-marker", metavar="TEXT", help="A key or value that stands for null.")
@click.option("-k", "--key", metavar="TEXT", help="The key of every record.")
@click.option("-H", "--header", type=KEY_VALUE, multiple=True, help="A header of every record.")
@click.option("-p", "--partition", type=click.IntRange(0), help="The partition of every record.")
@click.option("-z", "--compression", type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]))
@click.option("-a", "--acks", type=click.Choice(["0", "1", "all"]), help="Default: all.")
@click.option("--json-lines", is_flag=True, help="The input is JSON, a record a line.")
@click.option("--ignore-errors", is_flag=True, help="Send lines without a separator, too.")
@cluster_options
@output_options
def command(
    cluster: Cluster,
    output: Output,
    topic: str,
    path: Path | None,
    key_separator: str | None,
    delimiter: str,
    null_marker: str | None,
    key: str | None,
    header: tuple[tuple[str, str], ...],
    partition: int | None,
    compression: str | None,
    acks: str | None,
    json_lines: bool,
    ignore_errors: bool,
) -> None:
    """Send records: each line of standard input, or of a file, is one."""
    defaults: dict[str, Any] = {"linger_ms": 20, "batch_size": 1 << 18}
    if compression is not None:
        defaults["compression_type"] = None if compression == "none" else compression
    if acks is not None:
        defaults["acks"] = acks if acks == "all" else int(acks)
    null = None if null_marker is None else null_marker.encode()
    separator = _bytes(key_separator)
    headers = [(name, value.encode()) for name, value in header]
    fixed_key = None if key is None else key.encode()
    sent = 0
    with ExitStack() as stack:
        source: IO[bytes] = (
            sys.stdin.buffer if path is None else stack.enter_context(path.open("rb"))
        )
        producer = stack.enter_context(cluster.producer(**defaults))
        delivery = _Delivery()
        for lines in blocks(source, _bytes(delimiter) or b"\n"):
            if json_lines:
                for line in lines:
                    delivery.add(producer.send(topic, **_from_json(line, sent + 1)))
                    sent += 1
                continue
            keys, values = _split(lines, separator, fixed_key, sent, ignore_errors=ignore_errors)
            if null is not None:
                values = [None if one == null else one for one in values]
                keys = None if keys is None else [None if one == null else one for one in keys]
            sent += len(values)
            if headers:
                for index, value in enumerate(values):
                    one_key = None if keys is None else keys[index]
                    delivery.add(producer.send(topic, value, one_key, headers, partition=partition))
            else:
                delivery.add(producer.send_many(topic, values, keys, partition=partition))
        producer.flush()
        delivery.check()
    output.note("" if output.as_json else f"{sent:,} records sent to {topic}.")
    if output.as_json:
        output.json({"topic": topic, "records": sent})


def _bytes(text: str | None) -> bytes | None:
    if text is None:
        return None
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text.encode()


def blocks(source: IO[bytes], delimiter: bytes) -> Iterator[list[bytes]]:
    """The records of a stream, as many at a time as have arrived.

    Raises:
        KafkaError: a record is larger than any broker takes.
    """
    read = getattr(source, "read1", source.read)
    rest = b""
    while block := read(BLOCK_BYTES):
        if delimiter not in block and delimiter not in rest[-len(delimiter) :] + block:
            rest += block
            if len(rest) > LINE_BYTES_MAX:
                raise KafkaError(f"no delimiter in {len(rest):,} bytes of input")
            continue
        lines = (rest + block).split(delimiter)
        rest = lines.pop()
        yield lines
    if rest:
        yield [rest]


def _split(
    lines: list[bytes],
    separator: bytes | None,
    key: bytes | None,
    before: int,
    *,
    ignore_errors: bool,
) -> tuple[list[bytes | None] | None, list[bytes | None]]:
    """The keys, if there are any, and the values."""
    if separator is None:
        return None if key is None else [key] * len(lines), list(lines)
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    for number, line in enumerate(lines, before + 1):
        first, found, second = line.partition(separator)
        if not found:
            if not ignore_errors:
                raise KafkaConfigurationError(
                    f"record {number} has no key separator {separator.decode()!r}:"
                    f" {line[:40].decode(errors='replace')!r}"
                )
            keys.append(key)
            values.append(line)
        else:
            keys.append(first)
            values.append(second)
    return keys, values


def _from_json(line: bytes, number: int) -> dict[str, Any]:
    try:
        fields = json.loads(line)
        headers = fields.get("headers") or {}
        pairs = headers.items() if isinstance(headers, dict) else [tuple(one) for one in headers]
        timestamp = fields.get("timestamp")
        return {
            "value": _encoded(fields.get("value")),
            "key": _encoded(fields.get("key")),
            "headers": [(name, _encoded(value)) for name, value in pairs],
            "partition": fields.get("partition"),
            "timestamp_ms": None if timestamp is None else int(timestamp),
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise KafkaConfigurationError(f"record {number} is not a JSON record: {error}") from error


def _encoded(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


class _Delivery:
    """Futures of what was sent, in a bounded number: the oldest are waited for."""

    RUNS_MAX: Final = 1000

    def __init__(self) -> None:
        self._pending: list[Any] = []

    def add(self, future: Any) -> None:
        self._pending.append(future)
        if len(self._pending) >= self.RUNS_MAX:
            self._settle(self.RUNS_MAX // 2)

    def check(self) -> None:
        """Wait for all.

        Raises:
            KafkaError: a record was not delivered.
        """
        self._settle(len(self._pending))

    def _settle(self, count: int) -> None:
        for future in self._pending[:count]:
            future.get()
        del self._pending[:count]
