"""Apache Kafka's log dump: what it prints of files, and what it finds wrong with them.

It exits with 0 whatever it finds. Contradictions across files or records are printed to standard
error at the end; damage within a file to standard output, where it is found.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop.apache_kafka import run_program

TOOL: Final = "org.apache.kafka.tools.DumpLogSegments"

_DAMAGE: Final = re.compile(
    r"isvalid: false|Could not|invalid bytes at the end|[Mm]ismatch|not found in :|out of order"
)

# It believes that every file begins at offset 0, and so tells of each that does not: of Apache
# Kafka's own as well (`test_log_dump.py`). A pair that follows within the file stays.
QUIRK: Final = re.compile(
    r"^Non-consecutive offsets in .*\n  -1 is followed by [1-9]\d*\n(?!  )", re.MULTILINE
)


class Dump(NamedTuple):
    """What came of it."""

    printed: str
    complaints: list[str]
    """Lines; none where all is well."""


def dump(files: Iterable[Path], *options: str) -> Dump:
    """Let the tool read logs, indexes and snapshots."""
    done = run_program(TOOL, [*options, "--files", ",".join(map(str, files))])
    damage = [line for line in done.stdout.splitlines() if _DAMAGE.search(line)]
    return Dump(done.stdout, damage + QUIRK.sub("", done.stderr).splitlines())


def dump_records(files: Iterable[Path]) -> Dump:
    """The same, deep into the batches: every record with its data."""
    return dump(files, "--deep-iteration", "--print-data-log")


def files_of_logs(folder: Path) -> list[Path]:
    """All files below a data folder that the tool can read."""
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    return [path for suffix in suffixes for path in sorted(folder.rglob(f"*{suffix}"))]
