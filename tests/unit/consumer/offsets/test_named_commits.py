"""Commits by name: offsets that belong to an earlier topic of that name."""

from pyclient.consumer.offsets import named_commits
from pyclient.consumer.offsets.named_commits import NamedCommits
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.types import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OLD, NEW = b"1" * 16, b"2" * 16


def test_only_the_offset_that_was_committed_under_another_id_is_refused():
    commits = NamedCommits()
    commits.add(P0, OLD, 5)
    assert commits.is_of_another_topic(P0, NEW, 5)
    assert not commits.is_of_another_topic(P0, OLD, 5)
    assert not commits.is_of_another_topic(P0, ZERO_UUID, 5)  # nothing is known
    assert not commits.is_of_another_topic(P0, NEW, 6)  # somebody has committed since
    assert not commits.is_of_another_topic(P1, NEW, 5)
    commits.add(P0, NEW, 5)
    assert not commits.is_of_another_topic(P0, NEW, 5)


def test_the_oldest_partitions_are_forgotten_if_there_are_too_many(monkeypatch):
    monkeypatch.setattr(named_commits, "_PARTITIONS_MAX", 1)
    commits = NamedCommits()
    commits.add(P0, OLD, 5)
    commits.add(P1, OLD, 5)
    assert not commits.is_of_another_topic(P0, NEW, 5)
    assert commits.is_of_another_topic(P1, NEW, 5)
