"""Committed offsets as records."""

import pytest

from broker_stub.coordinator.groups.group_log import committed_offset, offset_record, read_entry
from broker_stub.coordinator.groups.offsets import CommittedOffset
from pyclient.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue
from pyclient.types import TopicPartition

PARTITION = TopicPartition("orders", 3)


@pytest.mark.parametrize("metadata", ["", "about it", "ünï"])
@pytest.mark.parametrize(("leader_epoch", "expires_ms"), [(-1, -1), (4, -1), (-1, 99)])
def test_an_offset_is_written_as_the_codec_writes_it(metadata, leader_epoch, expires_ms):
    offset = CommittedOffset(2**40, leader_epoch, metadata, 1_700_000_000_000, expires_ms)
    key, value = offset_record("group", PARTITION, offset)
    version = 3 if expires_ms < 0 else 1
    by_codec = OffsetCommitValue(
        offset=2**40,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=1_700_000_000_000,
        expire_timestamp=expires_ms,
    ).encode_bytes(version)
    assert value == version.to_bytes(2, "big") + by_codec
    read_key, read_value = read_entry(key, value)
    assert isinstance(read_key, OffsetCommitKey)
    assert (read_key.group, read_key.topic, read_key.partition) == ("group", *PARTITION)
    assert isinstance(read_value, OffsetCommitValue)
    assert committed_offset(read_value) == offset
