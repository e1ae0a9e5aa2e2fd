"""`pyclient dump-log` says what Kafka's own tool says, on Apache Kafka's files and damaged ones."""

import json
import re
from pathlib import Path

import pytest

from pyclient.cli.main import main
from tests.golden.apache_folders import KINDS, unpack
from tests.interop.apache_kafka import run_program
from tests.interop.log_dump import QUIRK, TOOL, files_of_logs

pytestmark = pytest.mark.usefixtures("kafka_jars")

_JSON = re.compile(r"(?:key|payload): (\{.*?\})(?= payload: |$)")


def readable(folder: Path) -> list[Path]:
    """All files, without indexes of empty logs: on those, Kafka's tool ends with an exception."""
    files = [*files_of_logs(folder), *sorted(folder.rglob("*.checkpoint"))]
    return [
        path
        for path in files
        if "index" not in path.suffix
        or path.suffix == ".txnindex"
        or path.with_suffix(".log").stat().st_size
    ]


def both(
    files: list[Path], options: list[str], capfd: pytest.CaptureFixture[str]
) -> tuple[tuple[str, list[str]], tuple[str, list[str]], int]:
    """What Kafka's tool and ours printed and complained about, and our exit code."""
    arguments = [*options, "--files", ",".join(map(str, files))]
    theirs = run_program(TOOL, arguments)
    capfd.readouterr()
    code = main(["dump-log", *arguments])
    ours = capfd.readouterr()
    complaints = QUIRK.sub("", theirs.stderr)
    return (
        (theirs.stdout, sorted(complaints.splitlines())),
        (ours.out, sorted(ours.err.splitlines())),
        code,
    )


def lines(text: str) -> list[str]:
    """Java and Python put different numbers of U+FFFD where binary data is not UTF-8."""
    return re.sub("\ufffd+", "\ufffd", text.replace("\r", "\n")).split("\n")


@pytest.mark.parametrize("kind", KINDS)
def test_all_files_of_a_folder(kind, tmp_path, capfd):
    files = readable(unpack(kind, tmp_path).path)
    theirs, ours, code = both(files, ["--print-data-log"], capfd)
    assert "endTxnMarker: ABORT" in ours[0]
    assert "SnapshotHeader" in ours[0]
    assert lines(ours[0]) == lines(theirs[0])
    assert ours[1] == theirs[1]
    assert code == bool(theirs[1])


@pytest.mark.parametrize(
    ("folder", "option", "text"),
    [
        ("__consumer_offsets-*", "--offsets-decoder", '"group":"golden-group"'),
        ("__transaction_state-*", "--transaction-log-decoder", '"transactionalId":"golden-tx"'),
        ("__cluster_metadata-*", "--cluster-metadata-decoder", "PARTITION_RECORD"),
    ],
)
def test_records_of_internal_topics(folder, option, text, tmp_path, capfd):
    files = sorted(unpack("killed", tmp_path).path.glob(f"{folder}/*.log"))
    (theirs, _), (ours, _), _ = both(files, [option], capfd)
    assert text in ours
    assert _JSON.sub("", ours) == _JSON.sub("", theirs)
    assert [json.loads(one) for one in _JSON.findall(ours)] == [
        json.loads(one) for one in _JSON.findall(theirs)
    ]


def test_the_same_faults_are_found(tmp_path, capfd):
    folder = unpack("clean", tmp_path).path
    first = folder / "segmented-0" / f"{0:020}.log"
    second = next((folder / "segmented-0").glob("*1201.log"))
    size_of_first_batch = 12 + int.from_bytes(second.read_bytes()[8:12])
    plain = folder / "plain-0" / f"{0:020}.log"
    for path, position in (
        (first.with_suffix(".index"), 3),  # the last byte of an offset
        (first.with_suffix(".timeindex"), 7),  # of a timestamp
        (second.with_suffix(".timeindex"), 11),  # of an offset
        (second, size_of_first_batch + 6),  # 256 off, in a base offset
        (plain, 20),  # of a checksum
    ):
        content = bytearray(path.read_bytes())
        content[position] ^= 1
        path.write_bytes(content)
    with plain.open("ab") as file:
        file.write(b"\1" * 10)
    files = [
        each.with_suffix(suffix)
        for each in (first, second)
        for suffix in (".index", ".timeindex", ".log")
    ]
    theirs, ours, code = both([*files, plain], ["--deep-iteration"], capfd)
    assert ours[0].splitlines() == theirs[0].splitlines()
    assert "Found 10 invalid bytes at the end of" in ours[0]
    assert code == 1
    own = [line for line in ours[1] if line.startswith(f"{plain}: ")]
    assert len(own) == 2  # a checksum and bytes behind the end, which Kafka's prints in passing
    first_offset = {"  -1 is followed by 1201"}  # as in QUIRK, but another pair follows it
    assert sorted(set(ours[1]) - set(own)) == sorted(set(theirs[1]) - first_offset)
