"""The mock broker inside librdkafka, with a raw connection: batches go in and out untouched."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Producer

from pyclient.protocol.frame import request_frame
from pyclient.protocol.header import response_header_version
from pyclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from pyclient.protocol.schema import Message

TIMEOUT_SECONDS = 30
PRODUCE_VERSION = 7
FETCH_VERSION = 11

Response = TypeVar("Response", bound=Message)


class MockBroker:
    """One broker, alive as long as the producer that hosts it."""

    def __init__(self, host: Producer) -> None:
        (broker,) = host.list_topics(timeout=TIMEOUT_SECONDS).brokers.values()
        self.bootstrap_servers = f"{broker.host}:{broker.port}"
        self._host = host
        self._socket = socket.create_connection((broker.host, broker.port), TIMEOUT_SECONDS)

    def create_topic(self, topic: str) -> None:
        """Make the topic: the mock does when it is asked about it."""
        self._host.list_topics(topic, timeout=TIMEOUT_SECONDS)

    def produce(self, topic: str, partition: int, batch: Any) -> None:
        """Append our batch as it is."""
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=1000 * TIMEOUT_SECONDS,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        response = self._ask(request, PRODUCE_VERSION, ProduceResponse)
        assert response.responses[0].partition_responses[0].error_code == 0

    def fetch(self, topic: str, partition: int) -> bytes:
        """The batches of a partition, as they were appended."""
        wanted = FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 24)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        response = self._ask(request, FETCH_VERSION, FetchResponse)
        (found,) = response.responses[0].partitions
        assert found.error_code == 0
        return bytes(found.records)

    def close(self) -> None:
        self._socket.close()

    def _ask(self, request: Message, version: int, response: type[Response]) -> Response:
        self._socket.sendall(b"".join(request_frame(request, version, 1, "test")))
        length = int.from_bytes(self._receive(4), "big")
        assert response_header_version(response, version) == 0
        return response.decode(self._receive(length)[4:], version)

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            assert piece, "the mock broker hung up"
            data += piece
        return bytes(data)


@contextmanager
def mock_broker() -> Iterator[MockBroker]:
    """A mock broker that ends with the block."""
    host = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 3})
    broker = MockBroker(host)
    try:
        yield broker
    finally:
        broker.close()
