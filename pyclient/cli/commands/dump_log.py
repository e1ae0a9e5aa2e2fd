"""`pyclient dump-log`: what is in the files of a broker, and what is wrong with them.

The lines and the options are those of Kafka's `kafka-dump-log`.
"""

import json
from pathlib import Path

import click

from pyclient.cli import exit_codes

_EPILOG = """\b
Examples:
  pyclient dump-log /var/kafka/orders-0
  pyclient dump-log /var/kafka/orders-0/00000000000000000000.log --print-data-log
  pyclient dump-log /var/kafka/__consumer_offsets-3 --decode offsets
  pyclient dump-log --verify-index-only /var/kafka/orders-0/*.index
\b
Faults are told on standard error; then the exit code is 1.
"""


@click.command("dump-log", epilog=_EPILOG)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--files", metavar="FILE,...", help="The same, as Kafka's tool has it.")
@click.option("--deep-iteration", is_flag=True, help="Each record of each batch.")
@click.option("--print-data-log", is_flag=True, help="Keys and values, too.")
@click.option("--decode", type=click.Choice(["offsets", "transactions", "metadata"]),
              help="The records are those of this internal topic.")  # fmt: skip
@click.option("--offsets-decoder", "decode", flag_value="offsets", hidden=True)
@click.option("--transaction-log-decoder", "decode", flag_value="transactions", hidden=True)
@click.option("--cluster-metadata-decoder", "decode", flag_value="metadata", hidden=True)
@click.option("--skip-record-metadata", is_flag=True, help="Only keys and values of records.")
@click.option("--max-bytes", type=click.IntRange(1), help="Read no more of a segment.")
@click.option("--verify-index-only", is_flag=True, help="Compare indexes, print no entry.")
@click.option("--index-sanity-check", is_flag=True, help="Check indexes as a broker's start does.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object per line.")
def command(
    paths: tuple[Path, ...],
    files: str | None,
    deep_iteration: bool,
    print_data_log: bool,
    decode: str | None,
    skip_record_metadata: bool,
    max_bytes: int | None,
    verify_index_only: bool,
    index_sanity_check: bool,
    as_json: bool,
) -> int:
    """Print segments, indexes and snapshots; find what is wrong with them."""
    from broker_stub.dump.files import DumpOptions, dump_file, files_below
    from broker_stub.dump.lines import Faults
    from broker_stub.dump.segment_dump import BYTES_MAX, SegmentOptions

    named = [*paths, *map(Path, files.split(",") if files else ())]
    if not named:
        raise click.UsageError("Name a file or a folder.")
    print_data = print_data_log or decode is not None
    options = DumpOptions(
        SegmentOptions(
            deep_iteration or print_data,
            print_data,
            decode,
            skip_record_metadata,
            BYTES_MAX if max_bytes is None else max_bytes,
        ),
        verify_index_only,
        index_sanity_check,
    )
    faults = Faults()
    for path in files_below(named):
        for line in dump_file(path, options, faults):
            print(json.dumps(line.facts, ensure_ascii=False) if as_json else line.text)
    for fault in faults.lines():
        click.echo(fault, err=True)
    return exit_codes.FAILED if faults else exit_codes.OK
