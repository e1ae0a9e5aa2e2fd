"""Whether a batch is a retry of one that was written: then it is not written again.

A producer's last five batches are remembered. After a restart a snapshot gives the last one of
each; the four before it are in the log's tail, which is searched only when a sequence looks like
a retry of them, once per producer and within a bound. So a clean start reads nothing. Called
under the lock of the log.
"""

from collections.abc import Sequence
from typing import Final

from broker_stub.log.batch_header import BatchHeader
from broker_stub.log.producer_state import (
    BATCHES_REMEMBERED,
    ProducerEntry,
    ProducerState,
    RememberedBatch,
    last_sequence_of,
)
from broker_stub.log.segment import Segment

_SEARCHED_BYTES: Final = 16 << 20


def check_producers(
    state: ProducerState,
    headers: Sequence[BatchHeader],
    segments: Sequence[Segment],
    *,
    from_client: bool,
) -> RememberedBatch | None:
    """Refuse batches that their producers may not write; the one that is there already, if so.

    Only a client's retry is looked for, and only its sequences are checked.

    Raises:
        InvalidProducerEpochError, OutOfOrderSequenceError: see `ProducerState.check`.
    """
    for header in headers:
        if header.producer_id < 0:
            continue
        entry = state.get(header.producer_id)
        if from_client and entry is not None:
            duplicate = entry.duplicate_of(header)
            if duplicate is None and entry.may_have_forgotten(header):
                recall_batches(entry, segments)
                duplicate = entry.duplicate_of(header)
            if duplicate is not None:
                return duplicate
        state.check(header, check_sequence=from_client)
    return None


def recall_batches(entry: ProducerEntry, segments: Sequence[Segment]) -> None:
    """Put the entry's older batches, as far as the tail still has them, before its known ones."""
    missing = BATCHES_REMEMBERED - len(entry.batches)
    if not entry.batches or not missing:
        entry.tail_is_known = True
        return
    before_offset = entry.batches[0].first_offset
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
    entry.tail_is_known = True  # not before: a read may fail, and the retry comes again


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
