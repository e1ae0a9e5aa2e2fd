"""`pyclient consume`: prints records, or finds them by key.

Plain values take a fast path: whole polls are joined and written at once.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from pyclient.cli.commands.topics import partitions_of
from pyclient.cli.options.cluster import Cluster, cluster_options
from pyclient.cli.options.types import DURATION, PARTITIONS, TIMESTAMP
from pyclient.cli.output.record_format import compile_format
from pyclient.errors import KafkaConfigurationError, ProtocolError
from pyclient.types import TopicPartition

_EPILOG = """\b
Examples:
  pyclient consume orders --from-beginning
  pyclient consume orders --from-beginning --exit --json
  pyclient consume orders --since -2h --until -1h --exit
  pyclient consume orders -p 0 --offset 100 -n 10
  pyclient consume orders --from-beginning --exit --key k1
  pyclient consume __consumer_offsets --from-beginning --exit --decode offsets
  pyclient consume orders --group billing -f '%p %o %k: %s\\n'
\b
Fields of -f are kcat's: %t topic, %p partition, %o offset, %k key, %s value,
%K and %S their sizes, %T timestamp, %h headers, %R framing.
"""
_POLL_MS = 500


@click.command("consume", epilog=_EPILOG)
@click.argument("topic")
@click.option("-B", "--from-beginning", is_flag=True, help="From the first record.")
@click.option("-g", "--group", metavar="NAME", help="As a member of a group, which commits.")
@click.option("-p", "--partition", type=PARTITIONS, help="Only these, as in 0,3-5.")
@click.option("-o", "--offset", type=int, help="Start here; -5: at the last five of a partition.")
@click.option("--since", type=TIMESTAMP, metavar="TIME", help="From this time on, as -2h.")
@click.option("--until", type=TIMESTAMP, metavar="TIME", help="Records before this time.")
@click.option("-k", "--key", metavar="TEXT", help="Only records with this key.")
@click.option("-n", "--max-messages", type=click.IntRange(1), help="Stop after as many.")
@click.option("-e", "--exit", "at_end", is_flag=True, help="Stop at the end of the topic.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="kcat's format string.")
@click.option("-D", "--delimiter", default="\\n", show_default=True, help="Behind each value.")
@click.option("--decode", type=click.Choice(["offsets", "transactions", "metadata"]),
              help="The records are those of this internal topic; as JSON.")  # fmt: skip
@click.option("--timeout", type=DURATION, help="Stop when nothing came for this long.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object per line.")
@cluster_options
def command(
    cluster: Cluster,
    topic: str,
    from_beginning: bool,
    group: str | None,
    partition: list[int] | None,
    offset: int | None,
    since: int | None,
    until: int | None,
    key: str | None,
    max_messages: int | None,
    at_end: bool,
    template: str | None,
    delimiter: str,
    decode: str | None,
    timeout: int | None,
    as_json: bool,
) -> None:
    """Print the records of a topic, new ones as they come (Ctrl-C stops)."""
    if group is not None and (partition is not None or offset is not None or since is not None):
        raise click.UsageError("--group has its partitions and offsets from the group.")
    if decode is not None and template is not None:
        raise click.UsageError("--decode prints JSON: it has no --format.")
    line = _line(template, delimiter, decode, as_json=as_json)
    wanted = None if key is None else key.encode()
    with cluster.admin() as admin:
        keys = partitions_of(admin, topic)
    if partition is not None:
        absent = [one for one in partition if TopicPartition(topic, one) not in keys]
        if absent:
            raise KafkaConfigurationError(f"topic {topic!r} has no partition {absent[0]}")
        keys = [TopicPartition(topic, one) for one in partition]
    defaults: dict[str, Any] = {
        "max_poll_records": 20_000,
        "auto_offset_reset": "earliest" if from_beginning else "latest",
    }
    if group is not None:
        defaults["group_id"] = group
    printed = silent_ms = 0
    with cluster.consumer(**defaults) as consumer:
        if group is not None:
            consumer.subscribe([topic])
        else:
            consumer.assign(keys)
            _seek(consumer, keys, from_beginning, offset, since)
        ends = consumer.end_offsets(keys) if at_end or until is not None else {}
        if until is not None:
            found = consumer.offsets_for_times(dict.fromkeys(keys, until))
            ends |= {one: at.offset for one, at in found.items() if at is not None}
        while not ends or not _finished(consumer, ends, in_group=group is not None):
            polled = consumer.poll(timeout_ms=_POLL_MS)
            for one, records in polled.items():
                if ends:
                    end = ends.get(one, 0)
                    records = [each for each in records if each.offset < end]
                if wanted is not None:
                    records = [each for each in records if each.key == wanted]
                if max_messages is not None:
                    records = records[: max_messages - printed]
                _write(b"".join([line(each) for each in records]))
                printed += len(records)
            if max_messages is not None and printed >= max_messages:
                break
            silent_ms = 0 if polled else silent_ms + _POLL_MS
            if timeout is not None and silent_ms >= timeout:
                break
    if sys.stderr.isatty():
        click.echo(click.style(f"{printed:,} records from {topic}.", dim=True), err=True)


def _seek(
    consumer: Any,
    keys: list[TopicPartition],
    from_beginning: bool,
    offset: int | None,
    since: int | None,
) -> None:
    if since is not None:
        found = consumer.offsets_for_times(dict.fromkeys(keys, since))
        ends = consumer.end_offsets(keys)
        for one, at in found.items():
            consumer.seek(one, ends[one] if at is None else at.offset)
    elif offset is not None and offset >= 0:
        for one in keys:
            consumer.seek(one, offset)
    elif offset is not None:
        first, last = consumer.beginning_offsets(keys), consumer.end_offsets(keys)
        for one in keys:
            consumer.seek(one, max(last[one] + offset, first[one]))
    elif from_beginning:
        consumer.seek_to_beginning(*keys)
    else:
        consumer.seek_to_end(*keys)


def _finished(consumer: Any, ends: dict[TopicPartition, int], *, in_group: bool) -> bool:
    assigned = consumer.assignment()
    if in_group and not assigned:
        return False
    return all(consumer.position(one) >= ends[one] for one in assigned if one in ends)


def _line(
    template: str | None, delimiter: str, decode: str | None, *, as_json: bool
) -> Callable[[Any], bytes]:
    if decode is not None:
        return _decoded_line(decode, with_position=as_json)
    if as_json:
        return _json_line
    if template is not None:
        return compile_format(template)
    end = compile_format(delimiter.replace("%", "%%"))(None)
    return lambda record: (record.value or b"") + end


def _decoded_line(decode: str, *, with_position: bool) -> Callable[[Any], bytes]:
    """Key and value as Kafka's own formatters print them; a record of an unknown type as an error.

    With `--json`, the record's position and timestamp are in front.
    """
    from pyclient.protocol.internal_topics import DECODERS

    decoder = DECODERS[decode]

    def line(record: Any) -> bytes:
        fields = _position(record) if with_position else {}
        try:
            fields |= decoder(record.key, record.value)._asdict()
        except ProtocolError as error:
            fields |= {"key": None, "value": None, "error": str(error)}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    return line


def _position(record: Any) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }


def _json_line(record: Any) -> bytes:
    fields = {
        **_position(record),
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers],
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _write(data: bytes) -> None:
    """Past Python's buffer: a broken pipe shows at once."""
    sys.stdout.flush()
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):  # captured by a test
        sys.stdout.buffer.write(data)
        return
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
