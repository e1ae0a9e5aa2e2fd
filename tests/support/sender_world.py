"""A sender core between an accumulator and a model of a cluster, driven step by step.

Two nodes share perfectly replicated logs. Requests and answers wait on the connections until a
step moves them, so that a test, or chance, decides every interleaving.
"""

from collections import deque
from functools import partial

from pyclient import _twin
from pyclient.entropy import Entropy
from pyclient.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError
from pyclient.producer.batch_sizing import Limits
from pyclient.producer.buffer_pool import BufferPool
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.producer.metrics import ProducerMetrics
from pyclient.producer.outcomes import BatchOutcomes, RetryRules
from pyclient.producer.record_accumulator import RecordAccumulator
from pyclient.producer.sender import Sender, SenderSettings
from pyclient.producer.sequences import Sequences
from pyclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from pyclient.records.batch import RecordBatch
from pyclient.timers import ExponentialBackoff
from tests.support.fake_engine import FakeEngine
from tests.support.scripted_log import MESSAGE_TOO_LARGE, Partition

NOT_LEADER = 6


class Connection:
    """Requests on their way to a node, and its answers on their way back."""

    def __init__(self):
        self.is_ready = True
        self.requests = deque()
        self.answers = deque()


class SenderWorld:
    """Topic `t` with a few partitions on nodes 1 and 2."""

    def __init__(
        self,
        partitions=2,
        *,
        idempotent=True,
        acks=-1,
        codec=0,
        batch_size=300,
        batch_max_size=None,
        memory=3000,
        linger_ms=5,
        delivery_timeout_ms=1000,
        retries=2**31 - 1,
        in_flight_max=5,
        max_request_size=1000,
    ):
        self.engine = FakeEngine()
        self.clock = self.engine.clock
        self.acks = acks
        self.logs = [Partition() for _ in range(partitions)]
        self.leaders = [1 + index % 2 for index in range(partitions)]
        self.epoch = 0
        self.connections = {1: Connection(), 2: Connection()}
        self.batch_bytes_max = 10**9
        self.futures = []  # (partition, value, future), in the order of sending
        self.sent_ms = {}  # by value
        self.pool = BufferPool(
            memory,
            batch_size,
            clock=self.clock,
            waiter=self.engine.waiter,
            on_exhausted=self.engine.wake,
        )
        new_builder = partial(_twin.BatchBuilder, codec=codec)
        self.accumulator = RecordAccumulator(
            Limits(
                batch_size,
                batch_max_size or batch_size,
                max_request_size,
                linger_ms,
                delivery_timeout_ms,
            ),
            self.pool,
            self.engine,
            new_builder,
            compresses=codec != 0,
        )
        self.sequences = Sequences(in_flight_max) if idempotent else None
        if idempotent:
            self.sequences.set_identity(1, 0)
        self.metrics = ProducerMetrics(self.clock, self.pool)
        self.outcomes = BatchOutcomes(
            RetryRules(
                retries, delivery_timeout_ms, ExponentialBackoff(Entropy(0), 10, 100), batch_size
            ),
            self.accumulator,
            self.pool,
            self.sequences,
            self.engine.metadata,
            self.metrics,
            new_builder,
            lambda now_ms: ["a cable is loose"],
        )
        self.sender = Sender(
            SenderSettings(acks, 500, max_request_size, in_flight_max),
            self.accumulator,
            self.pool,
            self.sequences,
            self.outcomes,
            self,
            self.engine.metadata,
            self.metrics,
        )
        self.tell_leaders()

    # --- what the sender asks of the network -------------------------------------------------

    def ready(self, node, now_ms):
        return self.connections[node].is_ready

    def ready_at_ms(self, node, now_ms):
        return float("inf")

    # --- steps -------------------------------------------------------------------------------

    def tell_leaders(self):
        """Let the client learn who leads."""
        snapshot = self.engine.describe("t", self.leaders, self.epoch)
        self.accumulator.add_topic("t")
        self.accumulator.update_metadata(snapshot)

    def send(self, value, partition=None, key=None):
        """Append a record as `send` does; raises what the accumulator raises."""
        topic = self.accumulator.topics["t"]
        result, index = self.accumulator.append(topic, partition, 1000, key, value, (), 0)
        future = FutureRecordMetadata(result, index, 1000, -1, len(value))
        self.futures.append((result.topic_partition.partition, value, future))
        self.sent_ms[value] = self.clock.monotonic_ms()
        return future

    def poll(self):
        """Poll the sender; its requests go onto their connections. When it wants to go on."""
        requests, next_poll_ms = self.sender.poll(self.clock.monotonic_ms())
        for request in requests:
            self.connections[request.node].requests.append(request)
        return next_poll_ms

    def serve(self, node, error_code=0, *, after=False):
        """Let a node take the oldest request: append, or refuse all of it, and answer.

        With `after` it appends, and answers with the error all the same.
        """
        connection = self.connections[node]
        unsent = connection.requests.popleft()
        (topic,) = unsent.request.topic_data
        answers = [
            self._append(node, one.index, b"".join(one.records), 0 if after else error_code)
            for one in topic.partition_data
        ]
        for one in answers if after else ():
            one.error_code = one.error_code or error_code
        response = ProduceResponse(
            responses=[TopicProduceResponse(topic_id=topic.topic_id, partition_responses=answers)]
        )
        connection.answers.append((unsent, ProduceResponse() if self.acks == 0 else response))

    def _append(self, node, index, records, error_code):
        offset = -1
        if not error_code:
            if self.leaders[index] != node:
                error_code = NOT_LEADER
            elif len(records) > self.batch_bytes_max:
                error_code = MESSAGE_TOO_LARGE
            else:
                error_code, offset = self.logs[index].append(RecordBatch(records))
        return PartitionProduceResponse(index=index, error_code=error_code, base_offset=offset)

    def answer(self, node):
        """Let the oldest answer of a node arrive."""
        unsent, response = self.connections[node].answers.popleft()
        unsent.on_done(response, self.clock.monotonic_ms())

    def disconnect(self, node, error=None):
        """Break a connection: answers and unserved requests on it are lost."""
        connection = self.connections[node]
        lost = [*(unsent for unsent, _ in connection.answers), *connection.requests]
        connection.answers.clear()
        connection.requests.clear()
        for unsent in lost:
            unsent.on_done(error or KafkaConnectionError("it broke"), self.clock.monotonic_ms())

    def move_leader(self, partition):
        """The other node leads a partition; the client does not know yet."""
        self.leaders[partition] = 3 - self.leaders[partition]
        self.epoch += 1

    def settle(self, rounds=200):
        """Serve and answer everything until nothing is left to do."""
        self.tell_leaders()
        for _ in range(rounds):
            next_poll_ms = self.poll()
            busy = False
            for node, connection in self.connections.items():
                while connection.requests:
                    self.serve(node)
                while connection.answers:
                    self.answer(node)
                    busy = True
            if not self.accumulator.incomplete_count:
                return
            if not busy and next_poll_ms > self.clock.monotonic_ms():
                self.clock.advance(next_poll_ms - self.clock.monotonic_ms())
        raise AssertionError(f"not settled: {self.accumulator.incomplete_count} batches are left")

    # --- what must hold ----------------------------------------------------------------------

    def values(self, partition):
        return [record.value for record in self.logs[partition].records]

    def check_delivery(self, *, in_order=True, once=True):
        """Acked records are in the log where they were said to be; none is there twice."""
        for index in range(len(self.logs)):
            written = self.values(index)
            sent = [value for partition, value, _ in self.futures if partition == index]
            if once:
                assert len(set(written)) == len(written), "a record was written twice"
            if in_order:
                places = {value: place for place, value in enumerate(sent)}
                order = [places[value] for value in written]
                assert order == sorted(order), "records were written out of order"
        for partition, value, future in self.futures:
            if future.succeeded():
                offset = future.get().offset
                if offset >= 0:
                    assert self.values(partition)[offset] == value, "an offset is wrong"
                elif self.acks:
                    assert value in self.values(partition), "an acked record is lost"
            elif future.failed():
                assert isinstance(future.exception, KafkaError)

    def settle_and_check_progress(self, age_ms_max):
        """On a healthy cluster, whatever was sent lately arrives: nothing is stuck."""
        self.batch_bytes_max = 10**9
        for connection in self.connections.values():
            connection.is_ready = True
        now_ms = self.clock.monotonic_ms()
        young = [
            future
            for _, value, future in self.futures
            if not future.is_done and now_ms - self.sent_ms[value] < age_ms_max
        ]
        self.settle()
        stuck = [future for future in young if isinstance(future.exception, KafkaTimeoutError)]
        assert not stuck, f"a healthy cluster did not get {stuck}"

    def check_memory(self):
        """With nothing under way, all memory is back."""
        assert self.pool.available == self.pool.total
        assert self.accumulator.incomplete_count == 0

    def finish(self):
        """Abort the rest and check that nothing leaked and every future has its outcome."""
        for node in self.connections:
            self.disconnect(node, KafkaTimeoutError("never sent"))
        self.outcomes.abort(KafkaTimeoutError("the end"))
        assert all(future.is_done for _, _, future in self.futures)
        self.check_memory()
