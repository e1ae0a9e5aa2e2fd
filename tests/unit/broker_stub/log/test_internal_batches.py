"""Reading internal topics back: which records count."""

from broker_stub.log.batch.append_info import AppendOrigin
from broker_stub.log.internal_batches import read_log
from tests.support.logs import append, batch, marker, open_log, transactional_batch


def test_records_of_aborted_and_of_open_transactions_do_not_count(tmp_path):
    log = open_log(tmp_path / "orders-0")
    for buffer in (
        transactional_batch(b"committed", producer_id=1),
        transactional_batch(b"aborted", producer_id=2),
        batch(b"plain"),
        transactional_batch(b"open", producer_id=3),
        marker(committed=True, producer_id=1),
        marker(committed=False, producer_id=2),
        transactional_batch(b"committed later", producer_id=2, sequence=1),
        marker(committed=True, producer_id=2),
    ):
        append(log, buffer, origin=AppendOrigin.COORDINATOR)
    assert [(record.offset, record.value) for record in read_log(log)] == [
        (0, b"committed"),
        (2, b"plain"),
        (6, b"committed later"),
    ]
