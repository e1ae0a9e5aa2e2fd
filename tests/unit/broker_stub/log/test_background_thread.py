"""The background thread: tasks in order, woken by the logs' work and by a moved clock."""

import threading

from broker_stub.log.background_thread import BackgroundThread
from pyclient.clock import ManualClock
from tests.support.logs import NOW_MS, TOPIC_ID, append, open_manager


def test_tasks_run_in_order_on_another_thread_and_a_failing_one_stops_nothing(tmp_path):
    manager = open_manager(tmp_path)
    background = BackgroundThread(manager)
    background.start()
    ran: list[tuple[str, int]] = []

    def fail() -> None:
        raise RuntimeError("a mistake")

    background.submit(lambda: ran.append(("first", threading.get_ident())))
    background.submit(fail)
    background.submit(lambda: ran.append(("second", threading.get_ident())))
    background.stop()
    assert [name for name, _ in ran] == ["first", "second"]
    assert {thread for _, thread in ran}.isdisjoint({threading.get_ident()})
    manager.close()


def test_work_of_the_logs_wakes_the_thread(tmp_path):
    manager = open_manager(tmp_path, segment_bytes=100)
    flushed = threading.Event()
    log = manager.create("orders", 0, topic_id=TOPIC_ID)
    background = BackgroundThread(manager)
    background.start()
    append(log)
    append(log)  # rolls, and asks for a flush
    background.submit(flushed.set)
    assert flushed.wait(30)
    background.stop()
    assert log.recovery_point == 2
    manager.close()


def test_a_moved_clock_is_looked_at_when_woken(tmp_path):
    clock = ManualClock(NOW_MS)
    manager = open_manager(tmp_path, clock=clock, retention_ms=100)
    log = manager.create("orders", 0, topic_id=TOPIC_ID)
    append(log)
    background = BackgroundThread(manager)
    background.start()
    clock.advance(300_000)
    background.wake()
    background.stop()
    assert log.log_start_offset == 1
    manager.close()


def test_housekeeping_that_fails_is_told_and_done_again(tmp_path, monkeypatch, caplog):
    clock = ManualClock(NOW_MS)
    manager = open_manager(tmp_path, clock=clock, settings={"checkpoint_interval_ms": 1000})
    failed, done = threading.Event(), threading.Event()

    def write(folders, logs):
        if failed.is_set():
            done.set()
            return
        failed.set()
        raise RuntimeError("a mistake")

    monkeypatch.setattr(manager._housekeeping._checkpoints, "write", write)
    background = BackgroundThread(manager)
    background.start()
    clock.on_advance(background.wake)
    clock.advance(1000)
    assert failed.wait(30)
    flushed = threading.Event()
    background.submit(flushed.set)
    assert flushed.wait(30)
    clock.advance(1000)
    assert done.wait(30)
    background.stop()
    assert "housekeeping failed" in caplog.text
    manager.abandon()
