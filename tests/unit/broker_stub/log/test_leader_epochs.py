"""The start offset of each leader epoch, as OffsetForLeaderEpoch asks for it."""

import pytest

from broker_stub.log.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs(tmp_path) -> LeaderEpochs:
    epochs = LeaderEpochs(str(tmp_path / "leader-epoch-checkpoint"))
    for epoch, start_offset in [(2, 0), (4, 10), (7, 25)]:
        assert epochs.assign(epoch, start_offset)
    return epochs


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 0)),  # older than all: it ends where the first one starts
        (2, (2, 10)),
        (3, (2, 10)),
        (4, (4, 25)),
        (6, (4, 25)),
        (7, (7, 40)),  # the latest one ends where the log does
        (8, (-1, -1)),  # newer than all: unknown
    ],
)
def test_an_epoch_ends_where_the_next_one_starts(epochs, epoch, answer):
    assert epochs.end_offset_for(epoch, log_end_offset=40) == answer


def test_an_empty_log_knows_no_epoch(tmp_path):
    assert LeaderEpochs(str(tmp_path / "x")).end_offset_for(0, 0) == (-1, -1)


def test_a_record_belongs_to_the_epoch_that_started_last(epochs):
    assert [epochs.epoch_for(offset) for offset in (0, 9, 10, 24, 99)] == [2, 2, 4, 4, 7]


def test_an_epoch_that_is_known_or_older_is_no_news(epochs):
    assert not epochs.assign(7, 30)
    assert not epochs.assign(5, 30)
    assert epochs.latest_epoch == 7


def test_a_leader_that_wrote_nothing_is_replaced_by_the_next(epochs):
    assert epochs.assign(9, 25)
    assert epochs.entries == ((2, 0), (4, 10), (9, 25))


def test_truncation_from_the_end_forgets_epochs_that_start_there(epochs):
    assert epochs.truncate_from_end(10)
    assert epochs.entries == ((2, 0),)
    assert not epochs.truncate_from_end(10)


def test_truncation_from_the_start_keeps_the_epoch_of_the_new_start(epochs):
    assert epochs.truncate_from_start(12)
    assert epochs.entries == ((4, 12), (7, 25))
    assert not epochs.truncate_from_start(12)
    assert not epochs.truncate_from_start(3)


def test_entries_are_written_and_read_in_kafkas_format(epochs):
    epochs.write()
    with open(epochs.path) as file:
        assert file.read() == "0\n3\n2 0\n4 10\n7 25\n"
    reread = LeaderEpochs(epochs.path)
    reread.load()
    assert reread.entries == epochs.entries
