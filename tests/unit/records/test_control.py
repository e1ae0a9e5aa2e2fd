"""Control batches: the ends of transactions."""

from types import ModuleType

import pytest

from pyclient.errors import CorruptRecordError
from pyclient.records.batch import RecordBatch
from pyclient.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_marker,
    control_record_type,
    end_transaction_marker,
)
from tests.support.batches import build_batch


def control_batch(key: bytes | None, value: bytes | None = b"") -> RecordBatch:
    return RecordBatch(build_batch([(5, key, value, [])], control=True, base_offset=40))


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_is_read_as_it_was_built(committed: bool, twin: ModuleType) -> None:
    marker = EndTransactionMarker(committed, coordinator_epoch=12)
    data = build_end_transaction_marker(
        marker, producer_id=7, producer_epoch=3, timestamp_ms=99, base_offset=5, leader_epoch=2
    )
    batch = RecordBatch(data)
    assert batch.crc_is_valid()
    assert (batch.is_control, batch.is_transactional) == (True, True)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, -1)
    assert (batch.base_offset, batch.leader_epoch, batch.max_timestamp) == (5, 2, 99)
    assert end_transaction_marker(batch) == marker
    assert control_record_type(batch).name == ("COMMIT" if committed else "ABORT")


def test_a_later_kafkas_kind_is_unknown(twin: ModuleType) -> None:
    assert control_record_type(control_batch(b"\0\0\0\x63")) is ControlRecordType.UNKNOWN


def test_the_controllers_own_kinds_are_known(twin: ModuleType) -> None:
    assert control_record_type(control_batch(b"\0\0\0\2")) is ControlRecordType.LEADER_CHANGE


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"\0\0\0", b"\0\0\0\0\0\0"),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\0"),
        (b"\0\0\0\1", None),
        (b"\0\0\0\1", b"\0\0\0\0\0"),
        (b"\0\0\0\2", b"\0\0\0\0\0\0"),
    ],
)
def test_what_is_no_marker_is_corrupt(
    key: bytes | None, value: bytes | None, twin: ModuleType
) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        end_transaction_marker(control_batch(key, value))
    assert (caught.value.base_offset, caught.value.position) == (40, 0)


def test_a_batch_of_ordinary_records_is_no_control_batch(twin: ModuleType) -> None:
    with pytest.raises(CorruptRecordError, match="not a control batch"):
        control_record_type(RecordBatch(build_batch()))
