"""Any history of sends, faults, leader changes and timeouts, against a model of a cluster.

What must hold afterwards: acked records are written, once and in order; every future has its
outcome; all memory is back in the pool.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from pyclient.errors import BufferExhaustedError, IllegalStateError
from tests.support.sender_world import SenderWorld

NODES = st.sampled_from([1, 2])
# retriable: request timed out, not leader, too few replicas; for good: invalid record, no access
REFUSALS = st.sampled_from([7, 6, 19, 87, 29])


class SenderHistory(RuleBasedStateMachine):
    """Chance drives a sender, its network and its brokers."""

    options: dict[str, object] = {}
    in_order = True
    once = True

    @initialize(linger_ms=st.sampled_from([0, 5]), codec=st.sampled_from([0, 1]))
    def begin(self, linger_ms, codec):
        self.world = SenderWorld(
            partitions=3,
            linger_ms=linger_ms,
            codec=codec,
            batch_size=800,
            memory=5000,
            delivery_timeout_ms=5_000,
            **self.options,
        )
        self.count = 0
        self.aborted = False

    def connections_with(self, what):
        return [node for node, one in self.world.connections.items() if getattr(one, what)]

    @rule(
        partition=st.sampled_from([None, 0, 0, 1]),
        size=st.sampled_from([5, 20, 20, 120, 400]),
        count=st.integers(1, 6),
    )
    def send(self, partition, size, count):
        for _ in range(count):
            value = b"%d:" % self.count
            try:
                self.world.send(value.ljust(size, b"x"), partition)
            except BufferExhaustedError:
                return
            except IllegalStateError:
                assert self.aborted
                return
            self.count += 1

    @rule()
    def poll(self):
        self.world.poll()

    @rule(ms=st.sampled_from([1, 5, 20, 200, 3_000]))
    def time_passes(self, ms):
        self.world.clock.advance(ms)
        self.world.poll()

    @precondition(lambda self: self.connections_with("requests"))
    @rule(data=st.data())
    def serve(self, data):
        self.world.serve(data.draw(st.sampled_from(self.connections_with("requests"))))

    @precondition(lambda self: self.connections_with("requests"))
    @rule(data=st.data(), code=REFUSALS)
    def refuse(self, data, code):
        self.world.serve(data.draw(st.sampled_from(self.connections_with("requests"))), code)

    @precondition(lambda self: self.connections_with("requests"))
    @rule(data=st.data())
    def append_and_say_it_failed(self, data):
        node = data.draw(st.sampled_from(self.connections_with("requests")))
        self.world.serve(node, 20, after=True)  # too few replicas, but the leader has it

    @precondition(lambda self: self.connections_with("answers"))
    @rule(data=st.data())
    def answer(self, data):
        self.world.answer(data.draw(st.sampled_from(self.connections_with("answers"))))
        self.world.poll()

    @rule(node=NODES)
    def disconnect(self, node):
        self.world.disconnect(node)

    @rule(node=NODES, ready=st.booleans())
    def node_becomes_ready_or_not(self, node, ready):
        self.world.connections[node].is_ready = ready

    @rule(partition=st.integers(0, 2))
    def move_leader(self, partition):
        self.world.move_leader(partition)

    @rule()
    def learn_leaders(self):
        self.world.tell_leaders()

    @rule(limit=st.sampled_from([150, 250, 10**9]))
    def brokers_take_smaller_batches(self, limit):
        self.world.batch_bytes_max = limit

    @rule()
    def flush(self):
        self.world.accumulator.seal_all()

    @invariant()
    def memory_is_accounted_for(self):
        if not hasattr(self, "world"):
            return
        pool = self.world.pool
        assert pool.available <= pool.total
        if not self.world.accumulator.incomplete_count and not any(
            queue.on_wire for queue in self.world.accumulator.topics["t"].queues
        ):
            assert pool.available == pool.total

    def teardown(self):
        if not hasattr(self, "world"):
            return
        self.world.settle_and_check_progress(age_ms_max=2_000)
        self.world.check_delivery(in_order=self.in_order, once=self.once)
        for connection in self.world.connections.values():
            assert not connection.requests
            assert not connection.answers
        self.world.check_memory()
        self.world.finish()


class AbortedHistory(SenderHistory):
    """The same, but nothing is delivered at the end."""

    def teardown(self):
        if hasattr(self, "world"):
            self.world.check_delivery(in_order=self.in_order, once=self.once)
            self.world.finish()


class OrderWithoutIdempotence(SenderHistory):
    """One request in flight keeps the order, except for retries with an unknown outcome."""

    options = {"idempotent": False, "in_flight_max": 1}
    once = False
    in_order = False


class NoAcks(SenderHistory):
    """acks=0: nothing is known, and nothing may leak."""

    options = {"idempotent": False, "acks": 0}
    once = False
    in_order = False


class FewRetries(SenderHistory):
    """Retries run out before time does."""

    options = {"retries": 1}


HISTORIES = settings(max_examples=80, stateful_step_count=60, deadline=None)

TestSenderHistory = SenderHistory.TestCase
TestSenderHistory.settings = HISTORIES
TestAbortedHistory = AbortedHistory.TestCase
TestAbortedHistory.settings = HISTORIES
TestOrderWithoutIdempotence = OrderWithoutIdempotence.TestCase
TestOrderWithoutIdempotence.settings = HISTORIES
TestNoAcks = NoAcks.TestCase
TestNoAcks.settings = HISTORIES
TestFewRetries = FewRetries.TestCase
TestFewRetries.settings = HISTORIES
