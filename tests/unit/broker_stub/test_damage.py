"""Damaged and unknown files in a data directory: a clear error or a logged repair."""

from pathlib import Path

import pytest

from pyclient.errors import CorruptRecordError, KafkaStorageError
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.logs import read_values
from tests.support.node_harness import NodeHarness, batch, produce_request

METADATA_LOG = Path("__cluster_metadata-0/00000000000000000000.log")


def produce(harness: NodeHarness, topic: str, value: bytes) -> None:
    (outcome,) = (
        harness.ask(produce_request(topic, batch(value)), 9).responses[0].partition_responses
    )
    assert outcome.error_code == 0


def values(harness: NodeHarness, topic: str) -> list[bytes]:
    return list(read_values(harness.node.replicas.partition(topic, 0).log).values())


@pytest.fixture
def two_topics(harness: NodeHarness) -> NodeHarness:
    """A node with records in two topics."""
    for topic in ("orders", "payments"):
        harness.create_topic(topic)
        produce(harness, topic, topic.encode())
    return harness


def stop(harness: NodeHarness, *, clean: bool) -> None:
    harness.node.close() if clean else harness.node.abandon()


def folder_content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- the metadata log ----------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("at", [0, 8, 61, 200])
def test_a_metadata_log_that_is_damaged_in_the_middle_is_refused_and_left_alone(
    two_topics, clean, at
):
    stop(two_topics, clean=clean)
    path = two_topics.folder / METADATA_LOG
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[at] ^= 0x55
    path.write_bytes(damaged)
    before = folder_content(two_topics.folder)
    with pytest.raises((KafkaStorageError, CorruptRecordError)) as refused:
        two_topics._open()
    assert "metadata" in str(refused.value)
    after = folder_content(two_topics.folder)
    assert {path for path in before if path.endswith(".log")} <= set(after)
    assert all(after[path] == before[path] for path in before if path.endswith(".log"))
    path.write_bytes(whole)  # from a copy
    two_topics.node = two_topics._open()
    assert values(two_topics, "orders") == [b"orders"]
    assert values(two_topics, "payments") == [b"payments"]


@pytest.mark.parametrize("left", [1, 30, 61, 90])
def test_a_torn_tail_of_the_metadata_log_is_cut_off(two_topics, left, caplog):
    path = two_topics.folder / METADATA_LOG
    whole = path.read_bytes()
    two_topics.create_topic("torn")
    added = path.read_bytes()[len(whole) :]
    stop(two_topics, clean=False)
    path.write_bytes(whole + added[:left])
    two_topics.node = two_topics._open()
    assert f"cutting off {left} torn" in caplog.text
    assert {topic.name for topic in two_topics.node.image.topics()} == {"orders", "payments"}
    assert values(two_topics, "orders") == [b"orders"]


# --- folders without a topic ---------------------------------------------------------------------


def test_a_log_of_a_deleted_topic_is_removed_at_start(two_topics, caplog):
    # As a crash leaves it: the deletion is in the metadata log, the folder is still there.
    kept = two_topics.folder / "orders-0"
    content = {path.name: path.read_bytes() for path in kept.iterdir()}
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")])
    assert two_topics.ask(request).responses[0].error_code == 0
    stop(two_topics, clean=False)
    kept.mkdir()
    for name, data in content.items():
        (kept / name).write_bytes(data)
    two_topics.node = two_topics._open()
    assert not kept.exists()
    assert "orders-0 belongs to a deleted topic" in caplog.text
    assert two_topics.node.logs.get("orders", 0) is None


def test_a_log_that_no_topic_is_known_of_is_set_aside_whole(two_topics, caplog):
    stop(two_topics, clean=True)
    (two_topics.folder / "orders-0").rename(two_topics.folder / "strange-0")
    two_topics.node = two_topics._open()
    assert "strange-0 belongs to no topic" in caplog.text
    (aside,) = two_topics.folder.glob("strange-0.*-stray")
    assert b"orders" in (aside / METADATA_LOG.name).read_bytes()
    caplog.clear()
    two_topics.restart()
    assert aside.is_dir()
    assert not caplog.text


@pytest.mark.parametrize("damage", [b"", b"version: 0\ntopic_id: ", None])
def test_a_partition_whose_topic_id_is_damaged_stays_with_its_topic(two_topics, damage):
    stop(two_topics, clean=False)
    path = two_topics.folder / "orders-0" / "partition.metadata"
    whole = path.read_bytes()
    path.unlink() if damage is None else path.write_bytes(damage)
    two_topics.node = two_topics._open()
    assert values(two_topics, "orders") == [b"orders"]
    assert path.read_bytes() == whole


def test_but_not_if_it_may_be_that_of_a_deleted_topic_of_the_same_name(two_topics):
    stop(two_topics, clean=False)
    (two_topics.folder / "orders-0" / "partition.metadata").unlink()
    two_topics.node = two_topics._open()
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="payments")])
    assert two_topics.ask(request).responses[0].error_code == 0
    two_topics.create_topic("payments")
    stop(two_topics, clean=False)
    old = two_topics.folder / "payments-0"
    old.mkdir()
    (old / METADATA_LOG.name).touch()
    two_topics.node = two_topics._open()
    assert not old.exists()
    assert len(list(two_topics.folder.glob("payments-0.*-stray"))) == 1
    assert values(two_topics, "orders") == [b"orders"]


# --- small files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["meta.properties", "recovery-point-offset-checkpoint"])
def test_a_folder_where_a_file_should_be_is_refused_by_name(two_topics, name):
    stop(two_topics, clean=True)
    (two_topics.folder / name).unlink(missing_ok=True)
    (two_topics.folder / name).mkdir()
    with pytest.raises(KafkaStorageError, match=name):
        two_topics._open()


def test_identities_that_are_no_text_are_refused_by_name(two_topics):
    stop(two_topics, clean=True)
    (two_topics.folder / "meta.properties").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KafkaStorageError, match=r"meta\.properties is damaged"):
        two_topics._open()


@pytest.mark.parametrize("mark", [b"", b"\xff\xff", b"[]", b'{"brokerEpoch": "x"}'])
def test_a_damaged_mark_of_a_clean_stop_counts_as_one_all_the_same(two_topics, mark):
    stop(two_topics, clean=True)
    (two_topics.folder / ".kafka_cleanshutdown").write_bytes(mark)
    two_topics.node = two_topics._open()
    assert two_topics.node.logs.was_clean
    assert values(two_topics, "orders") == [b"orders"]


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot"])
@pytest.mark.parametrize("damage", [b"", b"\x00" * 24, b"\xff" * 25])
@pytest.mark.parametrize("clean", [True, False])
def test_damaged_indexes_and_snapshots_lose_no_record(two_topics, suffix, damage, clean):
    stop(two_topics, clean=clean)
    for path in (two_topics.folder / "orders-0").glob(f"*{suffix}"):
        path.write_bytes(damage)
    two_topics.node = two_topics._open()
    assert values(two_topics, "orders") == [b"orders"]
    produce(two_topics, "orders", b"more")
    assert values(two_topics, "orders") == [b"orders", b"more"]


@pytest.mark.parametrize("path", ["{}/", "{}/../{}", "{}/."])
def test_a_folder_may_be_named_in_any_way(tmp_path, path):
    (tmp_path / "data").mkdir()
    named = str(tmp_path / path.format("data", "data"))
    harness = NodeHarness(named)  # type: ignore[arg-type]
    harness.create_topic("orders")
    for value in (b"1", b"2", b"3"):
        produce(harness, "orders", value)
    harness.node.replicas.partition("orders", 0).log.delete_records(2)
    harness.restart()
    log = harness.node.replicas.partition("orders", 0).log
    assert (log.log_start_offset, log.recovery_point) == (2, 3)
    harness.node.close()
