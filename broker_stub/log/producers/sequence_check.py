"""Whether a batch is a retry of one that was written: then it is not written again.

A producer's last five batches are remembered. After a restart a snapshot gives the last one of
each; the four before it are in the log's tail. That is read when a sequence looks like a retry of
them, and not before, so a clean start reads nothing; elsewhere, for it may take long, so such a
retry is asked to come again (`producer_recall`). Called under the lock of the log.
"""

from collections.abc import Callable, Sequence

from broker_stub.log.batch.header import BatchHeader
from broker_stub.log.producers.producer_state import ProducerState, RememberedBatch
from pyclient.errors import KafkaStorageError


def check_producers(
    state: ProducerState,
    headers: Sequence[BatchHeader],
    request_recall: Callable[[], None],
    *,
    from_client: bool,
) -> RememberedBatch | None:
    """Refuse batches that their producers may not write; the one that is there already, if so.

    Only a client's retry is looked for, and only its sequences are checked.

    Raises:
        InvalidProducerEpochError, OutOfOrderSequenceError: see `ProducerState.check`.
        KafkaStorageError: it will be known soon; `request_recall` was called, if need be.
    """
    for header in headers:
        if header.producer_id < 0:
            continue
        entry = state.get(header.producer_id)
        if from_client and entry is not None:
            duplicate = entry.duplicate_of(header)
            if duplicate is not None:
                return duplicate
            if entry.may_have_forgotten(header):
                if not state.is_recalling:
                    state.is_recalling = True
                    request_recall()
                raise KafkaStorageError(
                    f"what producer {header.producer_id} wrote before the broker's start is being "
                    "looked up; send the batch again"
                )
        state.check(header, check_sequence=from_client)
    return None
