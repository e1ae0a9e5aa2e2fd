"""The batches that a snapshot does not keep: all but the last of five, from the log's tail.

Asked for once after a start, by the first retry that needs it, and for all producers together. The
headers are read without the lock and with pauses, for the background thread has other things to do
meanwhile. Background thread.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Final

from broker_stub import diagnostics
from broker_stub.log.batch_header import BatchHeader
from broker_stub.log.compaction import Work
from broker_stub.log.partition_log import PartitionLog
from broker_stub.log.producer_state import BATCHES_REMEMBERED, ProducerEntry, RememberedBatch
from broker_stub.log.segment import Segment
from broker_stub.log.segment_list import SegmentList
from pyclient.errors import CorruptRecordError

# A retry comes soon, so what it repeats lies near the end.
_TAIL_BYTES: Final = 16 << 20
_BATCHES_BETWEEN_PAUSES: Final = 1024


def recall(log: PartitionLog) -> Work:
    """Have the log's producers remember what its tail shows, with pauses.

    Raises:
        KafkaStorageError: the disk refused; the next retry asks again.
    """
    older = _OlderBatches(log.producers())
    try:
        for segment, position in log.while_open(_tail) or ():
            try:
                for count, (_, header) in enumerate(segment.walk(position), 1):
                    older.note(header)
                    if count % _BATCHES_BETWEEN_PAUSES == 0:
                        yield
            except CorruptRecordError as error:
                diagnostics.warn(
                    "producers' retries from behind a damaged batch are not known again: %s", error
                )
        log.recall_producers(older.found)
    finally:
        log.producer_state.is_recalling = False


def _tail(segments: SegmentList) -> list[tuple[Segment, int]]:
    """The segments that the tail reaches into, oldest first, and from where on."""
    tail: list[tuple[Segment, int]] = []
    left = _TAIL_BYTES
    for segment in reversed(segments.all()):
        if left <= 0:
            break
        tail.append((segment, segment.batch_around(segment.size - left)))
        left -= segment.size
    return tail[::-1]


class _OlderBatches:
    """What is found of the producers that may have written more than they are known for.

    Attributes:
        found: the batches before those that are known, oldest first, by producer id.
    """

    def __init__(self, producers: Iterable[ProducerEntry]) -> None:
        # The epoch, and the offset that the known batches start with.
        self._wanted = {
            entry.producer_id: (entry.epoch, entry.batches[0].first_offset)
            for entry in producers
            if not entry.tail_is_known
        }
        self.found: Mapping[int, deque[RememberedBatch]] = defaultdict(
            lambda: deque(maxlen=BATCHES_REMEMBERED - 1)
        )

    def note(self, header: BatchHeader) -> None:
        """See whether the batch is one of them."""
        wanted = self._wanted.get(header.producer_id)
        if (
            wanted is not None
            and wanted[0] == header.producer_epoch
            and header.last_offset < wanted[1]
            and not header.is_control
        ):
            self.found[header.producer_id].append(RememberedBatch.of(header, header.last_offset))
