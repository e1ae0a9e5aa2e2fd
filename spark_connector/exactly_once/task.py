"""Writes one task's rows in a transaction, and leaves it open for the driver."""

import logging
from collections import deque
from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from pyclient import KafkaProducer, OffsetAndMetadata, SentRecords
from pyclient.entropy import Entropy
from spark_connector.exactly_once.decisions import is_decided
from spark_connector.exactly_once.names import (
    Attempt,
    PreparedTask,
    TaskTransaction,
    proof_group,
)
from spark_connector.exactly_once.sink import ExactlyOnceSink
from spark_connector.sink_columns import sink_columns
from spark_connector.writer import check_delivered

log = logging.getLogger(__name__)

_TOKEN_BYTES = 12
_CLOSE_SECONDS = 10


def write_task(
    batches: Iterator[pa.RecordBatch], sink: ExactlyOnceSink, attempt: Attempt
) -> PreparedTask:
    """Send every row, add the proof, and leave the transaction open.

    A task of a batch that is decided writes nothing: it is a zombie, or a replay whose batch the
    driver only has to finish. Its initialization could abort a transaction that is decided.

    Raises:
        KafkaError: records could not be written; the transaction is aborted.
    """
    batches = (batch for batch in batches if batch.num_rows)
    first = next(batches, None)
    told = PreparedTask(attempt.key, attempt.number, None)
    if first is None:
        return told
    with sink.admin() as admin:
        if is_decided(admin, sink, attempt.key, attempt.number):
            log.warning("batch %d of %s is decided already", attempt.number, attempt.key)
            return told
    producer = sink.task_producer(attempt.transactional_id)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        told.count = _send(producer, sink, chain((first,), batches))
        token = Entropy().random_bytes(_TOKEN_BYTES).hex()
        proof = OffsetAndMetadata(attempt.number + 1, token, -1)
        group = proof_group(attempt.key, attempt.partition)
        producer.send_offsets_to_transaction({sink.decisions: proof}, group)
        prepared = producer.prepare_transaction()
    finally:
        producer.close(timeout=_CLOSE_SECONDS)  # aborts it, unless it is prepared
    told.transaction = TaskTransaction(attempt.partition, token, prepared)
    return told


def _send(producer: KafkaProducer, sink: ExactlyOnceSink, batches: Iterator[pa.RecordBatch]) -> int:
    options = sink.sink
    pending: deque[SentRecords] = deque()
    count = 0
    for batch in batches:
        columns = sink_columns(batch, options.topic, include_timestamp=options.include_timestamp)
        pending.append(producer.send_arrow(options.topic, columns, allow_null=True))
        # What is sent keeps its columns alive until it is forgotten.
        while pending and pending[0].is_done:
            count += check_delivered(pending.popleft())
    producer.flush()
    return count + sum(map(check_delivered, pending))
