"""Several log dirs: the metadata knows which partition is in which."""

import pytest

from pyclient.errors import KafkaStorageError
from tests.support.node_harness import NodeHarness, batch, produce_request


@pytest.fixture
def folders(tmp_path):
    """Two folders of a broker that has stopped, with two partitions of a topic in each."""
    folders = [tmp_path / "one", tmp_path / "two"]
    harness = NodeHarness(*folders)
    harness.create_topic("orders", partitions=2)
    harness.create_topic("payments", partitions=2)
    for topic in ("orders", "payments"):
        for index in (0, 1):
            harness.ask(produce_request(topic, batch(b"v"), partition=index), 9)
    harness.node.close()
    return folders


def partitions(folder):
    return sorted(path.name for path in folder.glob("[op]*-[0-9]"))


def test_partitions_are_spread_over_them(folders):
    assert partitions(folders[0]) == ["orders-0", "payments-0"]
    assert partitions(folders[1]) == ["orders-1", "payments-1"]


def test_a_broker_without_one_of_them_does_not_start(folders):
    with pytest.raises(KafkaStorageError, match="orders-1 is in a log dir that is not among those"):
        NodeHarness(folders[0])
    assert partitions(folders[0]) == ["orders-0", "payments-0"]
    harness = NodeHarness(*folders)
    assert harness.node.replicas.partition("orders", 1).log_end_offset == 1
    harness.node.close()


def test_a_partition_may_be_moved_by_hand(folders):
    for name in partitions(folders[1]):
        (folders[1] / name).rename(folders[0] / name)
    harness = NodeHarness(folders[0])
    assert harness.node.replicas.partition("orders", 1).log_end_offset == 1
    harness.node.close()


def test_a_folder_that_is_empty_where_partitions_should_be_is_not_made_ours(folders, tmp_path):
    folders[1].rename(tmp_path / "not mounted")
    with pytest.raises(KafkaStorageError, match="orders-1 is in a log dir that is not among those"):
        NodeHarness(*folders)
    assert [path.name for path in folders[1].iterdir()] == [".lock"]


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_folder_that_has_lost_its_identity_does_not_get_another(folders, is_empty):
    paths = [folder / "meta.properties" for folder in folders]
    for path in paths:
        path.write_text("") if is_empty else path.unlink()
    before = [sorted(folder.iterdir()) for folder in folders]
    with pytest.raises(KafkaStorageError, match="is missing or empty, but there"):
        NodeHarness(*folders)
    assert [sorted(folder.iterdir()) for folder in folders] == before  # the clean marks, too
    assert not any(path.exists() and path.read_text() for path in paths)
