"""One thread appends and reads while another flushes, deletes and expires segments."""

import threading

from broker_stub.log.cleaning.retention import delete_old_segments
from pyclient.errors import OffsetOutOfRangeError
from pyclient.records.batch import RecordBatch, iter_batches
from tests.support.logs import NOW_MS, TOPIC_ID, append, idempotent_batch, open_manager


def test_housekeeping_never_disturbs_appends_and_reads(tmp_path, restless):
    manager = open_manager(
        tmp_path, segment_bytes=400, retention_bytes=1200, settings={"open_files_max": 4}
    )
    log = manager.create("orders", 0, topic_id=TOPIC_ID)
    done = threading.Event()
    failures: list[Exception] = []

    def keep_house() -> None:
        try:
            while not done.is_set():
                log.flush()
                delete_old_segments(log, NOW_MS)
                log.expire_producers(NOW_MS, 1 << 40)
                manager.run_due()
        except Exception as error:  # noqa: BLE001  the assertion below shows it
            failures.append(error)

    housekeeper = threading.Thread(target=keep_house)
    housekeeper.start()
    position = 0
    for sequence in range(600):
        assert append(log, idempotent_batch(sequence)).first_offset == sequence
        try:
            read = log.read(position, 300)
        except OffsetOutOfRangeError:
            position = log.log_start_offset
            continue
        if read.records is not None:
            found = list(iter_batches(read.records.read()))
            for one in found:
                assert isinstance(one, RecordBatch)
                assert one.crc_is_valid()
            assert found[0].base_offset <= position <= found[0].last_offset
            position = read.next_offset
    done.set()
    housekeeper.join()
    assert failures == []
    delete_old_segments(log, NOW_MS)
    assert log.log_start_offset > 500
    manager.close()
    manager = open_manager(tmp_path)
    reopened = manager.get("orders", 0)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.log_end_offset) == (log.log_start_offset, 600)
    manager.close()
