"""The log dump's complaints are seen: those about damaged files, and no other."""

from pathlib import Path

import pytest

from tests.golden.apache_folders import unpack
from tests.interop.apache_kafka import run_tool
from tests.interop.log_dump import dump, dump_records, files_of_logs

pytestmark = pytest.mark.usefixtures("kafka_jars")

LAST_OF_AN_OFFSET, LAST_OF_A_TIMESTAMP, LAST_OF_A_CHECKSUM = 3, 7, 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as Apache Kafka left it, with logs that do not begin at offset 0."""
    return unpack("clean", tmp_path).path


def change_byte(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_the_tool_tells_of_the_first_offset_in_files_that_apache_kafka_wrote(folder):
    segment = next((folder / "segmented-0").glob("*1201.log"))
    arguments = ["--deep-iteration", "--files", str(segment)]
    printed = run_tool("org.apache.kafka.tools.DumpLogSegments", arguments)
    assert f"Non-consecutive offsets in {segment}\n  -1 is followed by 1201\n" in printed


def test_a_folder_of_apache_kafka_has_no_complaint_else(folder):
    assert dump_records(files_of_logs(folder)).complaints == []


@pytest.mark.parametrize(
    ("suffix", "position", "complaint"),
    [
        (".index", LAST_OF_AN_OFFSET, "Mismatches in :"),
        (".timeindex", LAST_OF_A_TIMESTAMP, "Found timestamp mismatch in :"),
    ],
)
def test_a_damaged_index_is_complained_about(folder, suffix, position, complaint):
    damaged = folder / "segmented-0" / f"{0:020}{suffix}"
    change_byte(damaged, position)
    complaints = dump([damaged]).complaints
    assert any(complaint in line for line in complaints), complaints


def test_a_hole_in_the_offsets_is_complained_about_after_the_first_offset_too(folder):
    segment = next((folder / "segmented-0").glob("*1201.log"))
    first_batch_bytes = 12 + int.from_bytes(segment.read_bytes()[8:12])
    change_byte(segment, first_batch_bytes + 6)  # 256 off, in the second batch's base offset
    complaints = dump_records([segment]).complaints
    assert f"Non-consecutive offsets in {segment}" in complaints
    assert len([line for line in complaints if " is followed by " in line]) > 1


def test_a_damaged_batch_is_complained_about(folder):
    segment = folder / "plain-0" / f"{0:020}.log"
    change_byte(segment, LAST_OF_A_CHECKSUM)
    complaints = dump_records([segment]).complaints
    assert any("isvalid: false" in line for line in complaints), complaints
