"""The pool: its bound, its order, and no leaks on any path."""

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pyclient.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError
from pyclient.producer.buffer_pool import BufferPool
from tests.support.fake_engine import FakeEngine


def new_pool(engine, total=100, pooled_size=10, on_exhausted=lambda: None):
    return BufferPool(
        total, pooled_size, clock=engine.clock, waiter=engine.waiter, on_exhausted=on_exhausted
    )


def test_a_pooled_buffer_goes_round(engine):
    pool = new_pool(engine)
    first = pool.allocate(10, 0)
    pool.release([first])
    assert pool.allocate(10, 0) is first


def test_a_buffer_of_another_size_counts_and_is_not_kept(engine):
    pool = new_pool(engine)
    large = pool.allocate(60, 0)
    assert (len(large), pool.available) == (60, 40)
    pool.release([large])
    assert pool.available == 100
    assert pool.allocate(60, 0) is not large


def test_a_large_buffer_takes_the_memory_of_pooled_ones(engine):
    pool = new_pool(engine)
    small = [pool.allocate(10, 0) for _ in range(10)]
    pool.release(small)
    assert len(pool.allocate(95, 0)) == 95
    assert pool.available == 5


class Holder:
    """Has buffers, and then something else."""

    def __init__(self, buffers):
        self.buffers = buffers
        self.kept = None
        self.spare = []

    def release_to(self, buffers):
        buffers += self.buffers
        self.buffers = []


def test_what_a_buffer_is_exchanged_for_counts_and_is_never_pooled(engine):
    pool = new_pool(engine)
    buffers = [pool.allocate(10, 0) for _ in range(10)]
    kept = memoryview(b"x" * 4)
    pool.exchange(Holder(buffers[:2]), kept)
    assert pool.available == 16
    as_large_as_a_buffer = memoryview(b"x" * 10)
    pool.exchange(Holder([buffers[2]]), as_large_as_a_buffer)
    assert pool.available == 16
    pool.release([kept, as_large_as_a_buffer, *buffers[3:]])
    assert pool.available == 100
    assert all(isinstance(pool.allocate(10, 0), bytearray) for _ in range(10))


def test_an_exchange_serves_those_who_wait(engine):
    pool = new_pool(engine, total=10)
    held = pool.allocate(10, 0)
    engine.meanwhile = [lambda: pool.exchange(Holder([held]), memoryview(b"x"))]
    assert len(pool.allocate(5, 100)) == 5
    assert pool.available == 4


def test_several_buffers_are_lent_at_once_used_ones_first(engine):
    pool = new_pool(engine)
    used = [pool.allocate(10, 0) for _ in range(3)]
    pool.release(used)
    holder = Holder([])
    assert pool.lend(holder, 2) == 2
    assert {id(buffer) for buffer in holder.spare} < {id(buffer) for buffer in used}
    assert pool.available == 80
    another = Holder([])
    assert pool.lend(another, 4) == 4  # the third used one, and new ones
    assert [len(buffer) for buffer in another.spare] == [10] * 4
    assert pool.available == 40
    pool.release(holder.spare + another.spare)
    assert pool.available == 100


def test_what_a_holder_has_to_spare_already_counts(engine):
    pool = new_pool(engine)
    holder = Holder([])
    assert pool.lend(holder, 2) == 2
    assert pool.lend(holder, 3) == 3
    assert pool.available == 70


def test_as_many_are_lent_as_there_are(engine):
    pool = new_pool(engine)
    pool.allocate(85, 0)
    assert pool.lend(Holder([]), 3) == 1
    assert pool.lend(Holder([]), 3) == 0


def test_nothing_is_lent_while_others_wait(engine):
    pool = new_pool(engine)
    used = pool.allocate(10, 0)
    held = pool.allocate(80, 0)
    pool.release([used])
    holder = Holder([])
    engine.meanwhile = [lambda: (pool.lend(holder, 1), pool.release([held]))]
    assert len(pool.allocate(50, 1000)) == 50
    assert holder.spare == []


def test_a_closed_pool_lends_nothing(engine):
    pool = new_pool(engine)
    pool.close()
    with pytest.raises(IllegalStateError):
        pool.lend(Holder([]), 1)


def test_memory_is_short_when_less_than_half_is_left(engine):
    pool = new_pool(engine)
    for _ in range(5):
        pool.allocate(10, 0)
    assert not pool.is_short
    pool.allocate(1, 0)
    assert pool.is_short


def test_a_full_pool_fails_after_the_wait_and_says_what_holds_the_memory(engine):
    pool = new_pool(engine)
    pool.allocate(95, 0)
    with pytest.raises(
        BufferExhaustedError, match=r"hold 95 of the 100 bytes.*1 callers wait"
    ) as e:
        pool.allocate(10, 250)
    assert isinstance(e.value, KafkaTimeoutError)
    assert (e.value.buffered, e.value.limit) == (95, 100)
    assert engine.clock.monotonic_ms() == 250
    assert (pool.waiting_count, pool.exhausted_count, pool.waited_ms) == (0, 1, 250)


def test_a_caller_that_has_to_wait_ends_the_linger_of_open_batches(engine):
    exhausted = []
    pool = new_pool(engine, on_exhausted=lambda: exhausted.append(pool.waiting_count))
    held = pool.allocate(95, 0)
    engine.meanwhile = [lambda: pool.release([held])]
    pool.allocate(10, 100)
    assert exhausted == [1]  # called while it is in the queue, so that the sender sees it


def test_memory_that_comes_back_ends_the_wait(engine):
    pool = new_pool(engine)
    held = pool.allocate(95, 0)
    engine.meanwhile = [lambda: pool.release([held])]
    assert len(pool.allocate(10, 100)) == 10
    assert pool.available == 90


def test_callers_are_served_in_turn_and_none_overtakes_a_large_one(engine):
    pool = new_pool(engine)
    held = [pool.allocate(10, 0) for _ in range(10)]
    waiting = []

    def release_one_by_one():
        for buffer in held:
            pool.release([buffer])
            waiting.append(pool.waiting_count)

    # Callers of 40, 10 and 20 bytes, each one inside the wait of the one before.
    engine.meanwhile = [
        lambda: pool.allocate(10, 100),
        lambda: pool.allocate(20, 100),
        release_one_by_one,
    ]
    pool.allocate(40, 100)
    assert waiting[:7] == [3, 3, 3, 2, 1, 1, 0]


def test_nobody_is_served_while_others_wait(engine):
    pool = new_pool(engine)
    pool.allocate(95, 0)
    engine.meanwhile = [lambda: tried.append(pool.try_allocate(1))]
    tried = []
    with pytest.raises(BufferExhaustedError):
        pool.allocate(50, 10)
    assert tried == [None]
    assert len(pool.try_allocate(1)) == 1


def test_closing_ends_every_wait_with_an_error(engine):
    pool = new_pool(engine)
    held = pool.allocate(95, 0)
    engine.meanwhile = [pool.close]
    with pytest.raises(IllegalStateError, match="closed"):
        pool.allocate(10, 100)
    with pytest.raises(IllegalStateError):
        pool.try_allocate(1)
    pool.release([held])
    assert pool.available == 100


@pytest.mark.parametrize("granted_before", [False, True])
def test_an_interrupted_wait_leaks_nothing(engine, granted_before):
    pool = new_pool(engine)
    held = [pool.allocate(10, 0) for _ in range(10)]

    def interrupt():
        if granted_before:
            pool.release(held)
        raise KeyboardInterrupt

    engine.meanwhile = [interrupt]
    with pytest.raises(KeyboardInterrupt):
        pool.allocate(10, 100)
    if not granted_before:
        pool.release(held)
    assert (pool.available, pool.waiting_count) == (100, 0)


def test_a_split_may_overdraw_and_pays_back_first(engine):
    pool = new_pool(engine)
    held = [pool.allocate(10, 0) for _ in range(10)]
    part = pool.allocate_beyond(15)
    assert pool.available == -15
    pool.release(held[:1])
    assert pool.try_allocate(1) is None
    pool.release(held[1:])
    pool.release([part])
    assert pool.available == 100
    assert len(pool.allocate(100, 0)) == 100


class PoolMachine(RuleBasedStateMachine):
    """Any order of allocations, waits and releases: the accounting stays right."""

    def __init__(self):
        super().__init__()
        self.engine = FakeEngine()
        self.pool = new_pool(self.engine)
        self.held = []

    @rule(size=st.sampled_from([1, 5, 10, 10, 10, 17, 40, 100]))
    def try_allocate(self, size):
        before = self.pool.available
        buffer = self.pool.try_allocate(size)
        assert (buffer is not None) == (before >= size)
        if buffer is not None:
            assert len(buffer) == size
            self.held.append(buffer)

    @rule(
        sizes=st.lists(st.sampled_from([1, 10, 30, 100]), min_size=1, max_size=4),
        returned=st.integers(0, 3),
    )
    def wait_in_line(self, sizes, returned):
        """Nested waits: the innermost one releases some memory."""
        order = deque()

        def caller(size):
            try:
                buffer = self.pool.allocate(size, 5)
            except BufferExhaustedError:
                order.append((size, None))
            else:
                order.append((size, buffer))
                self.held.append(buffer)

        def give_back():
            for _ in range(min(returned, len(self.held))):
                self.pool.release([self.held.pop(0)])

        self.engine.meanwhile = [*(lambda s=size: caller(s) for size in sizes[1:]), give_back]
        caller(sizes[0])
        self.engine.meanwhile = []
        assert self.pool.waiting_count == 0

    @rule(spare=st.integers(0, 1), count=st.integers(0, 8))
    def lend(self, spare, count):
        """Allocates more than is left; what the holder has stays allocated."""
        holder = Holder([])
        before = self.pool.lend(holder, spare)
        possible = max(self.pool.available // 10, 0)
        assert self.pool.lend(holder, count) == before + min(max(count - before, 0), possible)
        assert all(len(buffer) == 10 for buffer in holder.spare)
        self.held += holder.spare

    @rule(size=st.integers(1, 30))
    def overdraw(self, size):
        self.held.append(self.pool.allocate_beyond(size))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data):
        self.pool.release([self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))])

    @invariant()
    def what_is_held_and_what_is_free_are_the_total(self):
        assert self.pool.available + sum(map(len, self.held)) == self.pool.total

    def teardown(self):
        self.pool.release(self.held)
        assert self.pool.available == self.pool.total
        assert len(self.pool.allocate(self.pool.total, 0)) == self.pool.total


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
