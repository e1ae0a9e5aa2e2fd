"""The scripted network: its brokers and topics, its clock, and the loops of its clients."""

from __future__ import annotations

import errno
import math
import os
import socket
from collections.abc import Callable, Sequence
from typing import Final

from pyclient.clock import ManualClock
from pyclient.entropy import Entropy
from pyclient.errors import IllegalStateError, KafkaError, UnknownTopicOrPartitionError
from pyclient.net.connection import Connection
from pyclient.net.io_thread import IoThread
from pyclient.net.resolver import Address, Resolution
from pyclient.net.scripted.broker import ScriptedBroker
from pyclient.net.scripted.transport import ScriptedTransport
from pyclient.net.transport import SocketOptions
from pyclient.net.waiting import Waiter, check_may_wait
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from pyclient.protocol.schema import Message

_START_MS: Final = 1_700_000_000_000  # the same in every run
# More turns than this without the clock moving are no work, but a busy loop.
_TURNS_IN_A_ROW_MAX: Final = 10_000


class ScriptedWaiter:
    """Waits by turning the loops."""

    def __init__(self, network: ScriptedNetwork) -> None:
        self._network = network
        self._woken = False

    def wake(self) -> None:
        """End the wait, and later ones."""
        self._woken = True

    def wait(self, timeout_ms: float) -> bool:
        """Turn the loops until woken or the time is up."""
        if not self._woken:
            check_may_wait(self._network, "waiting")
            self._network.run_until(lambda: self._woken, timeout_ms)
        return self._woken


class ScriptedPoller:
    """The network of one client."""

    def __init__(self, network: ScriptedNetwork, options: SocketOptions) -> None:
        self._network = network
        self._limit_bytes = options.receive_message_max_bytes
        self._transports: list[ScriptedTransport] = []
        self._woken = False
        self.sleeps_until_ms = -math.inf

    def resolve(self, host: str, port: int) -> Resolution:
        """Look a host up among those that the script knows."""
        resolution = Resolution()
        resolution.done = True
        if host in self._network.hosts:
            resolution.addresses = [
                Address(int(socket.AF_INET), (address, port))
                for address in self._network.hosts[host]
            ]
        else:
            resolution.error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolution

    def open(self, address: Address, owner: Connection) -> ScriptedTransport:
        host, port = address.target[:2]
        broker = self._network.broker_at(host, port)
        transport = ScriptedTransport(broker, owner, self, self._limit_bytes)
        if broker is None:
            transport.error = OSError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        self._transports.append(transport)
        self.stay_awake()
        return transport

    def poll(self, timeout_ms: float) -> Sequence[ScriptedTransport]:
        """Write and read. Does not wait: it notes until when it would have."""
        news = [one for one in self._transports if self._exchange(one)]
        # A transport is told of once more after its error, never again.
        self._transports = [
            one for one in self._transports if one.error is None and not one.is_closed
        ]
        busy = bool(news) or self._woken
        self._woken = False
        now_ms = self._network.clock.monotonic_ms()
        self.sleeps_until_ms = now_ms if busy else now_ms + max(timeout_ms, 0)
        return news

    def _exchange(self, transport: ScriptedTransport) -> bool:
        broker = transport.broker
        if transport.is_closed:
            return False
        if transport.error is not None or broker is None:
            return True
        if not transport.connected:
            return broker.advance_connection(transport)
        arrived = transport.deliver()
        sent_before = transport.parts_sent
        for request in transport.take_requests():
            broker.serve(transport, request)
        return arrived or transport.parts_sent > sent_before or transport.error is not None

    def stay_awake(self) -> None:
        """There is something to do, also when the present turn has polled already."""
        self.sleeps_until_ms = -math.inf

    def wake(self) -> None:
        """End the present poll, or the next one."""
        self._woken = True
        self.stay_awake()

    def close(self) -> None:
        """The loop has ended: never poll again."""
        self.sleeps_until_ms = math.inf


class ScriptedNetwork:
    """Brokers, topics, a clock and the loops of the clients that live here.

    Attributes:
        clock: stands still but for `advance` and waits.
        hosts: addresses by host name.
        topics: the number of partitions by name, as Metadata tells it.
        auto_create_topics: a topic that a Metadata request names comes into being.
    """

    def __init__(self, seed: int = 0) -> None:
        self.clock = ManualClock(_START_MS)
        self.entropy = Entropy(seed)
        self.hosts: dict[str, list[str]] = {}
        self.topics: dict[str, int] = {}
        self.auto_create_topics = False
        self.brokers: dict[int, ScriptedBroker] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._pollers: list[ScriptedPoller] = []
        self._loops: list[tuple[IoThread, ScriptedPoller]] = []
        self._turning = False

    def add_broker(self, node_id: int, host: str | None = None, port: int = 9092) -> ScriptedBroker:
        """A broker that answers ApiVersions and Metadata; the test says the rest."""
        host = host or f"broker{node_id}"
        self.hosts.setdefault(host, [host])
        broker = ScriptedBroker(node_id, host, port)
        broker.on(ApiVersionsRequest, broker.api_versions)
        broker.on(MetadataRequest, self.describe)
        self.brokers[node_id] = broker
        return broker

    def add_topic(self, name: str, partitions: int = 1) -> None:
        """A topic whose leaders go round the brokers."""
        self.topics[name] = partitions
        self._topic_ids[name] = self.entropy.uuid()

    def broker_at(self, host: str, port: int) -> ScriptedBroker | None:
        """The broker that listens at an address."""
        for broker in self.brokers.values():
            if host in self.hosts[broker.host] and port == broker.port:
                return broker
        return None

    def describe(self, request: Message, version: int) -> MetadataResponse:  # noqa: ARG002
        """The answer to a Metadata request."""
        assert isinstance(request, MetadataRequest)
        asked = (
            list(self.topics)
            if request.topics is None
            else [one.name or "" for one in request.topics]
        )
        if self.auto_create_topics and request.allow_auto_topic_creation:
            for name in asked:
                if name not in self.topics:
                    self.add_topic(name)
        return MetadataResponse(
            cluster_id="scripted",
            controller_id=min(self.brokers),
            brokers=[
                MetadataResponseBroker(node_id=one.node_id, host=one.host, port=one.port)
                for one in self.brokers.values()
            ],
            topics=[self._describe_topic(name) for name in asked],
        )

    def _describe_topic(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(name=name, error_code=UnknownTopicOrPartitionError.code)
        nodes = sorted(self.brokers)
        leaders = [nodes[index % len(nodes)] for index in range(self.topics[name])]
        return MetadataResponseTopic(
            name=name,
            topic_id=self._topic_ids[name],
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=leader,
                    leader_epoch=0,
                    replica_nodes=[leader],
                    isr_nodes=[leader],
                )
                for index, leader in enumerate(leaders)
            ],
        )

    # --- the environment of an engine, and its waiting ---------------------------------------

    def new_waiting(self) -> ScriptedNetwork:
        """Waiting turns the loops of this network."""
        return self

    def new_poller(self, options: SocketOptions) -> ScriptedPoller:
        """The network of one more client."""
        poller = ScriptedPoller(self, options)
        self._pollers.append(poller)
        return poller

    def run(self, io_thread: IoThread, name: str) -> Callable[[], None]:  # noqa: ARG002
        """Turn this loop too from now on."""
        self._loops.append((io_thread, self._pollers[-1]))
        return lambda: None

    def run_beside(self, function: Callable[[], None], name: str) -> None:  # noqa: ARG002
        """Call it now: there is only one thread. Its waits run the loops."""
        function()

    def waiter(self) -> Waiter:
        """A waiter whose waits run the loops."""
        return ScriptedWaiter(self)

    def claim_io_thread(self) -> None:
        """Never called: only `IoThread.run` does, and the test runs the loops instead."""
        raise IllegalStateError("a scripted loop is turned by the test")

    def on_io_thread(self) -> bool:
        """Whether a loop is at its turn."""
        return self._turning

    def abandon(self, error: KafkaError) -> None:
        """A forked child gets what any wait would get."""
        raise error

    # --- driving -----------------------------------------------------------------------------

    def run_until(self, condition: Callable[[], bool], timeout_ms: float = 10_000) -> bool:
        """Turn all loops until the condition holds or the (manual) time is up; which of both.

        When no loop has anything left to do, the clock moves to what is due next.
        """
        end_ms = self.clock.monotonic_ms() + timeout_ms
        turns_in_a_row = 0
        while not condition():
            now_ms = self.clock.monotonic_ms()
            ready = [loop for loop, poller in self._loops if poller.sleeps_until_ms <= now_ms]
            if ready:
                for loop in ready:
                    self._turn(loop)
                turns_in_a_row += 1
                if turns_in_a_row > _TURNS_IN_A_ROW_MAX:
                    raise AssertionError("a loop spins: it always wants to be turned at once")
                continue
            turns_in_a_row = 0
            if now_ms >= end_ms:
                return False
            next_ms = min((poller.sleeps_until_ms for _, poller in self._loops), default=math.inf)
            if min(next_ms, end_ms) == math.inf:
                raise AssertionError("everything waits, for ever")
            # A float may be too coarse to move the clock by what is left: then by a little more.
            self.clock.advance(max(min(next_ms, end_ms) - now_ms, 1e-6))
        return True

    def run_for(self, milliseconds: float) -> None:
        """Turn all loops for a span of (manual) time."""
        self.run_until(lambda: False, milliseconds)

    def _turn(self, loop: IoThread) -> None:
        self._turning = True
        try:
            if loop.is_closing:
                loop.finish()
                self._loops = [pair for pair in self._loops if pair[0] is not loop]
            else:
                loop.run_once()
        finally:
            self._turning = False
