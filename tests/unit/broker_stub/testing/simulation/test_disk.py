"""The simulated disk: a power loss keeps what was synced, and any part of the rest."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_stub.testing.simulation.chance import chance
from broker_stub.testing.simulation.clock import SimulatedClock
from broker_stub.testing.simulation.disk import SimulatedDisk
from broker_stub.testing.simulation.trace import Trace

SEEDS = range(40)


class Disk:
    """A disk and the files that a broker would have open."""

    def __init__(self, seed):
        self._disk = SimulatedDisk(chance(seed, "disk"), Trace(SimulatedClock()))
        self._files = self._disk.files()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._disk.remove()

    @property
    def path(self):
        return Path(self._disk.path)

    def write(self, name, content):
        (self.path / name).write_bytes(content)

    def append(self, name, content):
        with (self.path / name).open("ab") as file:
            file.write(content)

    def sync(self, *names):
        for name in names:
            self._files.sync(str(self.path / name))

    def lose_power(self):
        self._disk.lose_power()
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file()
        }


def after_power_loss(prepare):
    """What is left after a power loss, in many worlds."""
    left = []
    for seed in SEEDS:
        with Disk(seed) as disk:
            prepare(disk)
            left.append(disk.lose_power())
    return left


def test_what_was_synced_with_its_folder_survives():
    def prepare(disk):
        disk.write("log", b"record")
        disk.sync("log", "")

    assert after_power_loss(prepare) == [{"log": b"record"}] * len(SEEDS)


def test_of_what_was_appended_since_any_number_of_bytes_survives_or_zeros():
    def prepare(disk):
        disk.write("log", b"safe")
        disk.sync("log", "")
        disk.append("log", b"ABCDEFGH")

    contents = {left["log"] for left in after_power_loss(prepare)}
    assert {b"safe", b"safeABCDEFGH"} <= contents
    for content in contents:
        assert content.startswith(b"safe")
        assert len(content) <= len(b"safeABCDEFGH")
        assert all(
            left in (0, written) for left, written in zip(content[4:], b"ABCDEFGH", strict=False)
        )
    assert len(contents) > 3
    assert any(0 in content and content.endswith(b"H") for content in contents)


def test_a_file_whose_folder_was_not_synced_may_be_gone():
    def prepare(disk):
        disk.write("log", b"record")
        disk.sync("log")

    left = after_power_loss(prepare)
    assert {"log" in one for one in left} == {True, False}
    assert all(one["log"] == b"record" for one in left if "log" in one)


def test_a_file_that_was_never_synced_may_be_empty_in_a_synced_folder():
    def prepare(disk):
        disk.write("log", b"record")
        disk.sync("")

    left = after_power_loss(prepare)
    assert all(
        byte in (0, written)
        for one in left
        for byte, written in zip(one["log"], b"record", strict=False)
    )
    assert {b"", b"record"} <= {one["log"] for one in left}


def test_a_renamed_file_has_its_old_name_or_its_new_one():
    def prepare(disk):
        disk.write("old", b"record")
        disk.sync("old", "")
        (disk.path / "old").rename(disk.path / "new")

    left = after_power_loss(prepare)
    assert {tuple(one.items()) for one in left} == {
        (("old", b"record"),),
        (("new", b"record"),),
    }


def test_a_file_that_replaced_another_is_the_one_or_the_other():
    def prepare(disk):
        disk.write("checkpoint", b"old")
        disk.sync("checkpoint", "")
        disk.write("checkpoint.tmp", b"new")
        disk.sync("checkpoint.tmp")
        os.replace(disk.path / "checkpoint.tmp", disk.path / "checkpoint")

    assert {one["checkpoint"] for one in after_power_loss(prepare)} == {b"old", b"new"}


def test_a_removed_file_may_be_back_as_it_was_synced():
    def prepare(disk):
        disk.write("log", b"safe")
        disk.sync("log", "")
        disk.append("log", b"more")
        (disk.path / "log").unlink()

    left = after_power_loss(prepare)
    assert {} in left
    assert all(one["log"].startswith(b"safe") for one in left if one)
    assert any(left)


def test_a_file_that_was_cut_may_be_long_again():
    def prepare(disk):
        disk.write("log", b"records")
        disk.sync("log", "")
        os.truncate(disk.path / "log", 3)

    assert {one["log"] for one in after_power_loss(prepare)} == {b"rec", b"records"}


def test_folders_are_files_too():
    def prepare(disk):
        (disk.path / "orders-0").mkdir()
        disk.write("orders-0/log", b"record")
        disk.sync("orders-0/log", "orders-0", "")
        (disk.path / "orders-0").rename(disk.path / "orders-0-delete")
        (disk.path / "orders-0").mkdir()  # of another topic

    left = after_power_loss(prepare)
    assert all(b"record" in one.values() for one in left)
    assert {"orders-0/log" in one for one in left} == {True, False}


def test_the_same_chance_leaves_the_same():
    def prepare(disk):
        for number in range(10):
            disk.write(f"log-{number}", b"x" * 100)

    assert after_power_loss(prepare) == after_power_loss(prepare)


def test_what_is_there_after_a_power_loss_is_safe_from_the_next():
    with Disk(3) as disk:
        disk.write("log", b"record")
        disk.sync("")
        left = disk.lose_power()
        assert [disk.lose_power() for _ in range(10)] == [left] * 10


def test_nothing_is_left_behind(tmp_path):
    with Disk(1) as disk:
        home = disk.path.parent
        disk.lose_power()
    assert not home.exists()


@given(
    seed=st.integers(0, 1_000),
    steps=st.lists(st.sampled_from(["append", "sync", "power loss"]), max_size=20),
)
def test_what_was_synced_is_always_there(seed, steps):
    with Disk(seed) as disk:
        disk.write("log", b"")
        disk.sync("log", "")
        synced = written = b""
        for number, step in enumerate(steps):
            if step == "append":
                written += b"%02d" % number
                disk.append("log", b"%02d" % number)
            elif step == "sync":
                disk.sync("log")
                synced = written
            else:
                written = synced = disk.lose_power()["log"]
        assert disk.lose_power()["log"].startswith(synced)


def test_a_sync_of_what_is_not_there_fails():
    with Disk(1) as disk, pytest.raises(FileNotFoundError):
        disk.sync("nothing")
