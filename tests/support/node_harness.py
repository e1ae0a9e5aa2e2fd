"""A broker's core under test: no sockets, no threads, a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker_stub.blocking_work import run
from broker_stub.config.broker_config import BrokerConfig
from broker_stub.config.listeners import Endpoint
from broker_stub.handlers import SERVED
from broker_stub.metadata.topics import NewTopic
from broker_stub.node import Node
from broker_stub.request import ConnectionContext, Parked, Reply
from pyclient.clock import ManualClock
from pyclient.entropy import Entropy
from pyclient.protocol.frame import LENGTH, request_frame
from pyclient.protocol.header import ResponseHeader, response_header_version
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.protocol.registry import response_class
from pyclient.protocol.schema import Message
from pyclient.records.builder import BatchBuilder

HOST, PORT = "127.0.0.1", 9092
NOW_MS = 1_700_000_000_000  # the same in every run


class InlineBackground:
    """Runs the node's blocking work at once."""

    def submit(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        """Run both before returning."""
        done(run(work))


class NodeHarness:
    """Asks a node as a client would, frame by frame."""

    def __init__(
        self, folder: Path, *more_folders: Path, clock: ManualClock | None = None, **config: Any
    ) -> None:
        self.folder = folder
        self.log_dirs = [str(folder), *map(str, more_folders)]
        self.config = {name.replace("_", "."): value for name, value in config.items()}
        self.clock = clock or ManualClock(NOW_MS)
        self.connection = ConnectionContext("test-1", HOST)
        self._correlation_id = 0
        self._lives = 0
        self.node = self._open()

    def _open(self) -> Node:
        self._lives += 1
        node = Node(
            BrokerConfig(self.config),
            self.log_dirs,
            clock=self.clock,
            entropy=Entropy(6 + self._lives),  # a restart draws other ids
            background=InlineBackground(),
        )
        node.open([Endpoint("PLAINTEXT", HOST, PORT)])
        return node

    def restart(self, *, clean: bool = True) -> None:
        self.node.close() if clean else self.node.abandon()
        self.node = self._open()

    def submit(self, request: Message, version: int) -> Reply | Parked[Reply]:
        """The node's answer to a request's frame."""
        self._correlation_id += 1
        parts = request_frame(request, version, self._correlation_id, "test")
        frame = bytearray(b"".join(parts))  # type: ignore[arg-type]
        return self.node.handle(memoryview(frame)[LENGTH.size :], self.connection)

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The response to a request that is answered at once."""
        answer = self.start(request, version)
        assert answer.arrived, "the request was parked"
        return answer.response

    def start(self, request: Message, version: int | None = None) -> Pending:
        """A request whose response may come later."""
        if version is None:
            assert request.api_key is not None
            version = min(SERVED[request.api_key].highest, request.version_cap())
        return Pending(self.submit(request, version), request, version)

    def advance(self, milliseconds: float) -> None:
        """Let time pass."""
        self.clock.advance(milliseconds)
        self.node.timers.fire()

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Make a topic; its id."""
        results: list[Any] = []
        topic = NewTopic(
            name,
            partitions,
            configs={key.replace("_", "."): value for key, value in configs.items()},
        )
        self.node.controller.create_topics([topic], results.extend)
        topic_id: bytes = results[0].topic_id
        return topic_id


class Pending:
    """A response on its way."""

    def __init__(self, reply: Reply | Parked[Reply], request: Message, version: int) -> None:
        self._reply: Reply | None = None
        self._request = request
        self._version = version
        self.parked = reply if isinstance(reply, Parked) else None
        if isinstance(reply, Parked):
            reply.deliver_to(self._on_answered)
        else:
            self._reply = reply

    def _on_answered(self, reply: Reply) -> None:
        self._reply = reply

    @property
    def arrived(self) -> bool:
        return self._reply is not None

    @property
    def reply(self) -> Reply:
        assert self._reply is not None, "the request is still parked"
        return self._reply

    @property
    def response(self) -> Any:
        """The decoded response, as the client reads it."""
        assert self._request.api_key is not None
        return decode_reply(self.reply, self._request.api_key, self._version)


def decode_reply(reply: Reply, api_key: int, version: int) -> Any:
    """Read a reply's bytes: length, header and body, files included."""
    data = b"".join(
        part.read() if hasattr(part, "read") else bytes(part)  # type: ignore[arg-type]
        for part in reply.parts
    )
    (length,) = LENGTH.unpack_from(data)
    assert length == len(data) - LENGTH.size
    declared = response_class(api_key)
    header_version = response_header_version(declared, version)
    _, position = ResponseHeader.decode_from(data, LENGTH.size, header_version)
    return declared.decode(memoryview(data)[position:], version)


def produce_request(
    topic: str, *batches: bytes, acks: int = -1, partition: int = 0, topic_id: bytes = ZERO_UUID
) -> ProduceRequest:
    """Batches for one partition, as a client sends them: one each in most cases."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=topic_id,
                partition_data=[
                    PartitionProduceData(index=partition, records=b"".join(batches) or None)
                ],
            )
        ],
    )


def batch(
    *values: bytes,
    key: bytes | None = None,
    timestamp_ms: int = 1000,
    size: int = 1 << 16,
    **fields: Any,
) -> bytes:
    """A record batch of these values; `size` is the most that it can take."""
    builder = BatchBuilder(bytearray(size), **fields)
    for value in values:
        assert builder.try_append(timestamp_ms, key, value) >= 0
    return b"".join(builder.close())
