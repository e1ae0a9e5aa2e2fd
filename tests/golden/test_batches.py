"""Our batches against those that Apache Kafka's own classes wrote, on both twins."""

import base64
from types import ModuleType
from typing import Any

import pytest

from pyclient.records.batch import AnyBatch, RecordBatch, iter_batches
from pyclient.records.compression import Codec
from pyclient.records.control import (
    EndTransactionMarker,
    build_end_transaction_marker,
    end_transaction_marker,
)
from tests.golden.loader import golden_lines

HEADER_FACTS = (
    *("magic", "base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence"),
    *("leader_epoch", "max_timestamp", "timestamp_type"),
)

BATCHES = golden_lines("batch.jsonl.gz")
CONTROL_BATCHES = golden_lines("control.jsonl.gz")


def title(line: dict[str, Any]) -> str:
    return f"{line['magic']}-{line['codec']}-{line['base_offset']}"


def from_base64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def golden_records(line: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        (
            record["offset"],
            record["timestamp"],
            from_base64(record["key"]),
            from_base64(record["value"]),
            [(name, from_base64(value)) for name, value in record["headers"]],
        )
        for record in line["records"]
    ]


def our_records(batches: list[AnyBatch]) -> list[tuple[Any, ...]]:
    return [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for batch in batches
        for record in batch.decode()
    ]


@pytest.mark.parametrize("line", BATCHES, ids=title)
def test_a_batch_reads_as_apache_kafka_wrote_it(line: dict[str, Any], twin: ModuleType) -> None:
    batches = list(iter_batches(bytes.fromhex(line["hex"])))
    assert sum(batch.size_in_bytes for batch in batches) == len(line["hex"]) // 2
    assert all(batch.crc_is_valid() for batch in batches)
    # Uncompressed legacy messages are a batch each; the facts are those of the first.
    assert {name: getattr(batches[0], name) for name in HEADER_FACTS} == {
        name: line[name] for name in HEADER_FACTS
    }
    assert batches[0].is_transactional == line["transactional"]
    assert batches[0].codec == Codec[line["codec"].upper()]
    assert our_records(batches) == golden_records(line)


@pytest.mark.parametrize("line", [line for line in BATCHES if line["magic"] == 2], ids=title)
def test_a_rebuilt_batch_has_apache_kafkas_bytes(line: dict[str, Any], twin: ModuleType) -> None:
    golden = bytes.fromhex(line["hex"])
    header = RecordBatch(golden)
    codec = Codec[line["codec"].upper()]
    builder = twin.BatchBuilder(
        bytearray(61 + len(header.records())),
        codec=codec,
        log_append_time_ms=line["max_timestamp"] if line["timestamp_type"] == 1 else None,
        transactional=line["transactional"],
        producer_id=line["producer_id"],
        producer_epoch=line["producer_epoch"],
        base_sequence=line["base_sequence"],
        base_offset=line["base_offset"],
        leader_epoch=line["leader_epoch"],
    )
    # Under LogAppendTime a reader sees the append time alone; the records keep their own below.
    created = twin.RecordDecoder(
        header.records(), header.record_count, header.base_offset, header.base_timestamp
    )
    for record in created.read():
        assert builder.try_append(record.timestamp, record.key, record.value, record.headers) >= 0
    ours = b"".join(builder.close())
    if codec == Codec.NONE:
        assert ours == golden
    else:  # other libraries, other bytes: but the same header and records
        rebuilt = RecordBatch(ours)
        assert rebuilt.crc_is_valid()
        assert ours[21:61] == golden[21:61]
        assert bytes(rebuilt.records()) == bytes(header.records())


@pytest.mark.parametrize("line", CONTROL_BATCHES, ids=lambda line: line["control"])
def test_a_control_batch_is_apache_kafkas(line: dict[str, Any], twin: ModuleType) -> None:
    golden = bytes.fromhex(line["hex"])
    batch = RecordBatch(golden)
    marker = EndTransactionMarker(line["control"] == "COMMIT", line["coordinator_epoch"])
    assert batch.crc_is_valid()
    assert (batch.is_control, batch.is_transactional) == (True, True)
    assert end_transaction_marker(batch) == marker
    assert golden == build_end_transaction_marker(
        marker,
        producer_id=line["producer_id"],
        producer_epoch=line["producer_epoch"],
        timestamp_ms=batch.max_timestamp,
        base_offset=line["base_offset"],
        leader_epoch=line["leader_epoch"],
    )
