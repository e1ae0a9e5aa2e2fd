"""Checkpoint files: Kafka's text, and damage that is named."""

import os

import pytest

from broker_stub.log.files.checkpoint_file import (
    CorruptCheckpointError,
    read_offsets,
    write_offsets,
)
from pyclient.types import TopicPartition


def test_offsets_are_written_as_kafka_writes_them(tmp_path):
    path = str(tmp_path / "recovery-point-offset-checkpoint")
    offsets = {TopicPartition("orders", 0): 12, TopicPartition("__consumer_offsets", 49): 0}
    write_offsets(path, offsets)
    with open(path) as file:
        assert file.read() == "0\n2\norders 0 12\n__consumer_offsets 49 0\n"
    assert read_offsets(path) == offsets
    assert os.listdir(tmp_path) == ["recovery-point-offset-checkpoint"]


def test_a_missing_or_empty_file_has_no_entries(tmp_path):
    assert read_offsets(str(tmp_path / "missing")) == {}
    (tmp_path / "empty").write_text("")
    assert read_offsets(str(tmp_path / "empty")) == {}


@pytest.mark.parametrize(
    "text",
    ["1\n0\n", "0\n", "0\n2\norders 0 12\n", "0\n1\norders 0\n", "0\n1\norders zero 1\n", "x"],
)
def test_a_damaged_file_is_named_in_the_error(tmp_path, text):
    (tmp_path / "checkpoint").write_text(text)
    with pytest.raises(CorruptCheckpointError, match="checkpoint"):
        read_offsets(str(tmp_path / "checkpoint"))


def test_a_file_that_is_no_text_is_damaged(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b"0\n1\n\xff\xfe 0 1\n")
    with pytest.raises(CorruptCheckpointError, match="not text"):
        read_offsets(str(tmp_path / "checkpoint"))
