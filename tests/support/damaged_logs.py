"""Logs with damaged indexes: how the damage is done, and the log that has it."""

import struct
from collections.abc import Callable
from pathlib import Path

from broker_stub.log.log_manager import LogManager
from broker_stub.log.partition_log import PartitionLog
from pyclient.clock import ManualClock
from tests.support.logs import NOW_MS, append, batch, open_manager

COUNT = 20
EVERY_SECOND = {"index_interval_bytes": 100}
VALUES = {offset: b"%02d" % offset for offset in range(COUNT)}


def finish(manager: LogManager) -> None:
    """Do what the background thread does until nothing is left."""
    while manager.run_due() == 0:
        pass


def flip_middle(entry_bytes: int) -> Callable[[Path], None]:
    """Damage the last field of an entry in the middle, which a check of the end misses."""

    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        middle = len(content) // entry_bytes // 2 * entry_bytes
        content[middle + entry_bytes - 1] ^= 1
        path.write_bytes(content)

    return flip


def zero_out(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def point_inside_a_batch(path: Path) -> None:
    path.write_bytes(struct.pack(">ii", 1, 7) * (path.stat().st_size // 8))


def point_before_the_file(path: Path) -> None:
    path.write_bytes(struct.pack(">ii", 1, -7) * (path.stat().st_size // 8))


def remove(path: Path) -> None:
    path.unlink()


def shorten(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()  # a map of the old file stays as it is
    path.write_bytes(content[:8])


def write(manager: LogManager, count: int = COUNT) -> PartitionLog:
    log = manager.create("orders", 0, topic_id=bytes(range(16)))
    for number in range(count):
        append(log, batch(b"%02d" % number, timestamps=[NOW_MS + number]))
    return log


def damaged(
    folder: Path,
    suffix: str,
    damage: Callable[[Path], None],
    *,
    clock: ManualClock | None = None,
    **values: int,
) -> tuple[LogManager, PartitionLog, bytes]:
    """A log that was opened cleanly, with one index damaged since; and the undamaged index."""
    values = EVERY_SECOND | values
    manager = open_manager(folder, clock=clock, **values)
    write(manager)
    manager.close()
    manager = open_manager(folder, clock=clock, **values)
    log = manager.get("orders", 0)
    assert log is not None
    index = folder / "orders-0" / f"{0:020d}{suffix}"
    good = index.read_bytes()
    damage(index)
    for segment in log.segments:
        segment.close()  # as if other files had needed the room: else the old file stays mapped
    return manager, log, good


def offsets_by_time(log: PartitionLog) -> list[int]:
    found = [log.lookup_timestamp(NOW_MS + number) for number in range(COUNT)]
    return [one.offset for one in found if one is not None]
