"""A change interrupted by a crash: nothing is visible before it is durable."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from broker_stub.metadata.topics import NewTopic
from broker_stub.testing.simulation import CALM, Simulation
from pyclient.errors import CorruptRecordError, KafkaStorageError
from tests.support.node_harness import NodeHarness

METADATA_LOG = Path("__cluster_metadata-0") / f"{0:020d}.log"


def test_what_a_killed_broker_had_written_is_safe_once_the_next_one_shows_it() -> None:
    with Simulation(1, CALM) as world:
        broker = world.broker
        answers: list[Any] = []
        broker.node.controller.create_topics([NewTopic("orders")], answers.extend)
        broker.kill()  # written, not synced yet, and nobody was told
        assert not answers
        broker.start()
        assert broker.node.image.topic("orders") is not None
        broker.lose_power()
        broker.start()
        assert broker.node.image.topic("orders") is not None


def test_a_controller_is_busy_until_its_change_is_seen() -> None:
    with Simulation(1, CALM) as world:
        controller = world.broker.node.controller
        answers: list[Any] = []
        controller.create_topics([NewTopic("orders")], answers.extend)
        assert controller.is_busy
        world.run_until(lambda: bool(answers), 1_000)
        assert not controller.is_busy


def unsynced_change(folder: Path, *, lives: int) -> tuple[bytes, bytes]:
    """A folder with a change that was appended, and no sync of it; the log up to it, and it."""
    with Simulation(1, CALM) as world:
        broker = world.broker
        for number in range(lives):
            broker.create_topic(f"kept-{number}")
            broker.stop()
            broker.start()
        path = Path(broker.disk.path) / METADATA_LOG
        before = path.read_bytes() if path.exists() else b""
        broker.node.controller.create_topics([NewTopic("orders")], lambda answers: None)
        broker.kill()
        shutil.copytree(broker.disk.path, folder)
        content = path.read_bytes()
    assert content.startswith(before)
    return before, content[len(before) :]


@pytest.mark.parametrize("lives", [0, 1, 3])
def test_a_power_loss_may_keep_any_part_of_what_was_not_synced(tmp_path, lives, caplog):
    # File systems may write later blocks of a file before earlier ones.
    folder = tmp_path / "folder"
    before, unsynced = unsynced_change(folder, lives=lives)
    assert len(unsynced) > 100
    kept = {f"kept-{number}" for number in range(lives)}
    for lost in range(0, len(unsynced) - 16, 16):
        again = tmp_path / f"lost-{lost}"
        shutil.copytree(folder, again)
        (again / METADATA_LOG).write_bytes(
            before + unsynced[:lost] + bytes(16) + unsynced[lost + 16 :]
        )
        harness = NodeHarness(again)
        assert {topic.name for topic in harness.node.image.topics()} == kept
        assert "torn or damaged bytes at offset" in caplog.text
        caplog.clear()
        harness.create_topic("next")
        harness.restart(clean=False)
        assert harness.node.image.topic("next") is not None
        harness.node.abandon()


def test_what_was_synced_is_never_taken_for_a_power_loss(tmp_path):
    folder = tmp_path / "folder"
    before, unsynced = unsynced_change(folder, lives=3)
    for damaged in range(0, len(before), 24):
        content = bytearray(before + unsynced)
        content[damaged] ^= 0x55
        (folder / METADATA_LOG).write_bytes(content)
        with pytest.raises((KafkaStorageError, CorruptRecordError), match="damaged"):
            NodeHarness(folder)
        assert (folder / METADATA_LOG).read_bytes() == content
