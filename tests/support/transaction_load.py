"""Many transactional producers by hand, on one thread: what a broker can do, not a client.

Each writes one record and commits, again and again, in transaction version 2: Produce adds the
partition, EndTxn gives the next epoch. A broker that is still writing markers says so, and is asked
again at once.
"""

import selectors
import socket
import struct
import time
from typing import Final

from pyclient.protocol.frame import LENGTH, request_frame
from pyclient.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch
from tests.support.transaction_script import Producer, TransactionScript

TOPIC: Final = "transactions"
_PRODUCE, _END = 12, 5
_HEAD: Final = struct.Struct(">ib")  # correlation id, no tagged fields
_BUSY: Final = (51, 14, 15, 16)
VALUE: Final = bytes(100)


class _Worker:
    """One producer and its connection."""

    def __init__(self, port: int, number: int, partitions: int) -> None:
        self.transactional_id = f"load-{port}-{number}"
        self.partition = number % partitions
        with RawClient(port) as client:
            script = TransactionScript(client.ask, self.transactional_id, TOPIC)
            while script.find():
                pass
            while (producer := script.init()).error in _BUSY:
                pass
        self.producer: Producer = producer
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_ending = False
        self.done = 0
        self._received = bytearray()

    def produce(self) -> None:
        records = batch(
            VALUE,
            size=512,
            timestamp_ms=int(time.time() * 1000),
            transactional=True,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            base_sequence=0,
        )
        data = PartitionProduceData(index=self.partition, records=records)
        self._send(
            ProduceRequest(
                transactional_id=self.transactional_id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
            ),
            _PRODUCE,
        )
        self.is_ending = False

    def end(self) -> None:
        self._send(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer.id,
                producer_epoch=self.producer.epoch,
                committed=True,
            ),
            _END,
        )
        self.is_ending = True

    def _send(self, request: ProduceRequest | EndTxnRequest, version: int) -> None:
        self.socket.sendall(b"".join(request_frame(request, version, 1, "load")))  # type: ignore[arg-type]

    def on_readable(self) -> None:
        """Read; if the response is whole, go on."""
        self._received += self.socket.recv(1 << 16)
        if len(self._received) < LENGTH.size:
            return
        (length,) = LENGTH.unpack_from(self._received)
        if len(self._received) < LENGTH.size + length:
            return
        body = memoryview(bytes(self._received))[LENGTH.size + _HEAD.size :]
        self._received.clear()
        if self.is_ending:
            self._on_ended(EndTxnResponse.decode(body, _END))
        else:
            response = ProduceResponse.decode(body, _PRODUCE)
            code = response.responses[0].partition_responses[0].error_code
            assert code in (0, *_BUSY), code
            (self.produce if code else self.end)()

    def _on_ended(self, response: EndTxnResponse) -> None:
        if response.error_code in _BUSY:
            self.end()
            return
        assert not response.error_code, response.error_code
        self.producer = Producer(response.producer_id, response.producer_epoch)
        self.done += 1
        self.produce()


class TransactionLoad:
    """Producers that each have one transaction after another."""

    def __init__(self, port: int, producers: int, partitions: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._workers = [_Worker(port, number, partitions) for number in range(producers)]
        for worker in self._workers:
            self._selector.register(worker.socket, selectors.EVENT_READ, worker)
            worker.produce()

    def run_for(self, seconds: float) -> int:
        """Transactions that ended meanwhile."""
        before = sum(worker.done for worker in self._workers)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                key.data.on_readable()
        return sum(worker.done for worker in self._workers) - before

    def close(self) -> None:
        self._selector.close()
        for worker in self._workers:
            worker.socket.close()
