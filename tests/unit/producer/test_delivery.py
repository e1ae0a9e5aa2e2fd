"""Futures: outcomes, callbacks, waiting, splitting."""

import asyncio
import contextlib
import gc
import logging
import sys
import threading
import weakref

import pytest

from pyclient.errors import (
    IllegalStateError,
    InvalidRecordError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    TopicAuthorizationError,
)
from pyclient.net.waiting import ThreadWaiting
from pyclient.producer.batch_result import BatchResult
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.producer.sent_records import Rows, Run, SentRecords
from pyclient.types import RecordMetadata, TopicPartition
from tests.support.fake_engine import FakeEngine
from tests.support.threads import switching

PARTITION = TopicPartition("orders", 3)
SIZES = (-1, 5, -1)


@pytest.fixture
def result(engine):
    return BatchResult(PARTITION, engine)


def future_of(result, index=0):
    return FutureRecordMetadata(result, index, 1234, *SIZES)


def test_a_record_of_a_written_batch_has_the_batchs_offset_plus_its_index(result):
    future = future_of(result, index=2)
    assert not future.is_done
    result.succeed(base_offset=40)
    assert future.get() == RecordMetadata("orders", 3, PARTITION, 42, 1234, None, *SIZES)
    assert future.is_done
    assert future.succeeded()
    assert not future.failed()
    assert future.value == future.get()


def test_the_brokers_append_time_replaces_the_records(result):
    result.succeed(base_offset=0, log_append_time_ms=99)
    assert future_of(result).get().timestamp == 99


def test_without_an_acknowledgement_the_offset_is_unknown(result):
    result.succeed(base_offset=-1)
    assert future_of(result, index=7).get().offset == -1


def test_a_record_of_a_failed_batch_raises_the_error(result):
    future = future_of(result)
    result.fail(NotLeaderOrFollowerError())
    with pytest.raises(NotLeaderOrFollowerError):
        future.get()
    assert future.failed()
    assert future.retriable()
    assert future.value is None
    assert future.exception == NotLeaderOrFollowerError()


def test_records_that_the_broker_names_fail_with_their_own_error(result):
    result.fail(InvalidRecordError("batch"), {1: InvalidRecordError("no key")})
    assert future_of(result, 0).exception.args == ("batch",)
    assert future_of(result, 1).exception.args == ("no key",)
    assert not future_of(result, 1).retriable()


def test_every_get_raises_an_error_with_a_traceback_of_its_own(result):
    future = future_of(result)
    result.fail(InvalidRecordError("no key"))
    lengths = []
    for _ in range(3):
        with pytest.raises(InvalidRecordError, match="no key") as raised:
            future.get()
        lengths.append(len(raised.traceback))
    assert len(set(lengths)) == 1


@pytest.mark.parametrize("way", ["get", "raise", "errback", "all"])
def test_a_failed_record_leaves_nothing_behind_once_its_future_is_dropped(way, caplog):
    # Futures are not the garbage collector's business: no error may lead back to one.
    caplog.set_level(logging.CRITICAL, "pyclient.producer.delivery")  # pytest keeps what is logged
    engine = FakeEngine()
    reference = weakref.ref(engine)
    result = BatchResult(PARTITION, engine)
    future = future_of(result)
    result.fail(InvalidRecordError("no key"))

    def fail_again(error):
        raise error

    with contextlib.suppress(InvalidRecordError):
        if way == "get":
            future.get()
        elif way == "raise":
            raise future.exception
        elif way == "errback":
            future.add_errback(fail_again)
        else:
            SentRecords(Rows(1, None, lambda row: (0, -1, 5, -1)), [Run(result, 0, 1)]).get()
    del engine, result, future
    gc.collect()
    assert reference() is None


def test_get_gives_up_after_its_timeout(engine, result):
    with pytest.raises(KafkaTimeoutError, match=r"orders-3 within 2.5 s; it is still on its way"):
        future_of(result).get(timeout=2.5)
    assert engine.clock.monotonic_ms() == 2500


def test_get_returns_what_arrives_meanwhile(engine, result):
    engine.meanwhile = [lambda: result.succeed(5)]
    assert future_of(result).get(timeout=1).offset == 5


def test_get_in_a_callback_raises_unless_the_outcome_is_known(engine, result):
    future = future_of(result)
    engine.is_io_thread = True
    with pytest.raises(IllegalStateError, match=r"get\(\)"):
        future.get()
    result.succeed(5)
    assert future.get().offset == 5


def test_a_callback_gets_its_own_arguments_first(result):
    calls = []
    future = future_of(result)
    assert future.add_callback(lambda *args, **more: calls.append((args, more)), "a", b=1) is future
    result.succeed(0)
    assert calls == [(("a", future.value), {"b": 1})]


def test_callbacks_run_for_success_and_errbacks_for_failure(engine):
    calls = []
    for outcome in ("succeed", "fail"):
        result = BatchResult(PARTITION, engine)
        future = future_of(result)
        future.add_callback(lambda value: calls.append("callback"))
        future.add_errback(lambda error: calls.append("errback"))
        future.add_both(lambda either: calls.append("both"))
        if outcome == "succeed":
            result.succeed(0)
        else:
            result.fail(TopicAuthorizationError())
    assert calls == ["callback", "both", "errback", "both"]


def test_callbacks_run_in_the_order_of_the_records(result):
    calls = []
    for index in (2, 0, 1):
        future_of(result, index).add_callback(lambda value: calls.append(value.offset))
    result.succeed(0)
    assert calls == [0, 1, 2]


def test_a_callback_that_comes_late_runs_at_once(result):
    result.succeed(7)
    calls = []
    future_of(result).add_callback(calls.append)
    assert [one.offset for one in calls] == [7]


def test_a_callback_that_raises_is_logged_and_stops_nobody(result, caplog):
    calls = []
    future = future_of(result)
    future.add_callback(lambda value: 1 / 0)
    future.add_callback(calls.append)
    result.succeed(0)
    assert len(calls) == 1
    assert "ZeroDivisionError" in caplog.text


def test_a_callback_cannot_end_the_io_thread_but_may_leave_the_callers(engine, result, caplog):
    future = future_of(result)
    future.add_callback(lambda value: sys.exit("enough"))
    engine.is_io_thread = True
    result.succeed(7)
    assert "A callback" in caplog.text
    engine.is_io_thread = False
    with pytest.raises(SystemExit):
        future.add_callback(lambda value: sys.exit("enough"))


def test_waiters_go_on_only_after_the_callbacks_have_run(engine, result):
    order = []
    future = future_of(result)
    future.add_callback(lambda value: order.append(("callback", result.is_finished)))
    engine.meanwhile = [lambda: result.succeed(0)]
    future.get(timeout=1)
    assert order == [("callback", False)]
    assert result.is_finished


class TestSplit:
    """A batch of five records that becomes batches of two, one and two."""

    @pytest.fixture
    def futures(self, result):
        return [future_of(result, index) for index in range(5)]

    def test_each_record_follows_its_part(self, result, futures):
        first, second, third = result.split([2, 1, 2])
        assert not any(future.is_done for future in futures)
        third.succeed(30)
        first.succeed(10)
        second.fail(InvalidRecordError())
        assert [future.is_done for future in futures] == [True] * 5
        offsets = [None if future.failed() else future.get().offset for future in futures]
        assert offsets == [10, 11, None, 30, 31]

    def test_callbacks_move_to_the_parts(self, result, futures):
        calls = []
        for future in reversed(futures):
            future.add_callback(lambda value: calls.append(value.offset))
        first, second, third = result.split([2, 1, 2])
        second.succeed(20)
        assert calls == [20]
        third.succeed(30)
        first.succeed(10)
        assert calls == [20, 30, 31, 10, 11]

    def test_parts_can_be_split_again(self, result, futures):
        _, _, third = result.split([2, 1, 2])
        fourth, fifth = third.split([1, 1])
        futures[4].add_callback(lambda value: None)
        fourth.succeed(1)
        fifth.succeed(9)
        assert futures[4].get().offset == 9

    def test_a_waiting_caller_then_waits_for_the_part(self, engine, result, futures):
        parts = []
        engine.meanwhile = [
            lambda: parts.extend(result.split([2, 1, 2])),
            lambda: parts[1].succeed(20),
        ]
        assert futures[2].get(timeout=1).offset == 20

    def test_a_flush_waits_for_all_parts(self, engine, result):
        from pyclient.timers import Deadline

        parts = result.split([2, 1, 2])
        parts[0].succeed(0)
        parts[1].succeed(0)
        assert not result.wait_finished(Deadline(engine.clock, 10))
        parts[2].succeed(0)
        assert result.wait_finished(Deadline(engine.clock, 10))


class RealEngine:
    """Waiting on real threads."""

    def __init__(self):
        from pyclient.clock import SystemClock

        self.clock = SystemClock()
        self.waiter = ThreadWaiting().waiter

    def check_usable(self, call):
        pass

    def check_may_wait(self, call):
        pass


def test_a_future_can_be_awaited():
    async def main():
        result = BatchResult(PARTITION, RealEngine())
        futures = [future_of(result, index) for index in range(3)]
        thread = threading.Thread(target=lambda: result.succeed(10))
        waiting = asyncio.gather(*futures)
        await asyncio.sleep(0)
        thread.start()
        offsets = [value.offset for value in await waiting]
        thread.join()
        failed = BatchResult(PARTITION, RealEngine())
        failed.fail(InvalidRecordError())
        with pytest.raises(InvalidRecordError):
            await future_of(failed)
        return offsets

    assert asyncio.run(main()) == [10, 11, 12]


def test_awaiting_survives_a_split_and_a_cancelled_neighbour():
    async def main():
        result = BatchResult(PARTITION, RealEngine())
        one, other = (asyncio.ensure_future(_value(future_of(result, i))) for i in range(2))
        await asyncio.sleep(0)
        one.cancel()
        parts = result.split([1, 1])
        await asyncio.sleep(0)
        parts[1].succeed(5)
        parts[0].succeed(4)
        return (await other).offset

    async def _value(future):
        return await future

    assert asyncio.run(main()) == 5


def test_a_closed_loop_does_not_disturb_the_outcome():
    result = BatchResult(PARTITION, RealEngine())

    async def give_up():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(future_of(result), 0)

    asyncio.run(give_up())
    result.succeed(1)
    assert future_of(result).get().offset == 1


def test_every_callback_runs_once_whatever_the_threads_do():
    with switching():
        for _ in range(100):
            result = BatchResult(PARTITION, RealEngine())
            counts = [0] * 8
            started = threading.Barrier(5)

            def register(first, result=result, counts=counts, started=started):
                started.wait()
                for index in (first, first + 4):

                    def count(_, index=index):
                        counts[index] += 1

                    future_of(result, index).add_callback(count)

            threads = [threading.Thread(target=register, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            started.wait()
            parts = result.split([3, 5])
            parts[0].succeed(0)
            parts[1].succeed(0)
            for thread in threads:
                thread.join()
            assert counts == [1] * 8
