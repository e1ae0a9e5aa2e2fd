"""Batches of a producer that a snapshot does not hold, found in the log's tail.

After a restart a snapshot gives each producer's last batch. A retry of an older one is rare, so
the log is searched only when a sequence looks like one, once per producer, within a bound: a clean
start reads nothing. Called under the lock of the log.
"""

from collections.abc import Sequence
from typing import Final

from broker_stub.log.producer_state import (
    BATCHES_REMEMBERED,
    ProducerEntry,
    RememberedBatch,
    last_sequence_of,
)
from broker_stub.log.segment import Segment

_SEARCHED_BYTES: Final = 16 << 20


def recall_batches(entry: ProducerEntry, segments: Sequence[Segment]) -> None:
    """Put the entry's older batches, as far as the tail still has them, before its known ones."""
    entry.tail_is_known = True
    if not entry.batches:
        return
    before_offset = entry.batches[0].first_offset
    missing = BATCHES_REMEMBERED - len(entry.batches)
    recalled: list[RememberedBatch] = []
    left = _SEARCHED_BYTES
    for segment in reversed(segments):
        if segment.base_offset >= before_offset:
            continue
        recalled = _batches_of(entry, segment, left, before_offset) + recalled
        left -= segment.size
        if len(recalled) >= missing or left <= 0:
            break
    entry.batches[:0] = recalled[-missing:]


def _batches_of(
    entry: ProducerEntry, segment: Segment, searched_bytes: int, before_offset: int
) -> list[RememberedBatch]:
    found = []
    for _, header in segment.walk_around(segment.size - searched_bytes):
        if header.base_offset >= before_offset:
            break
        if (
            header.producer_id == entry.producer_id
            and header.producer_epoch == entry.epoch
            and not header.is_control
        ):
            found.append(
                RememberedBatch(
                    last_sequence_of(header),
                    header.last_offset,
                    header.last_offset_delta,
                    header.max_timestamp,
                )
            )
    return found
