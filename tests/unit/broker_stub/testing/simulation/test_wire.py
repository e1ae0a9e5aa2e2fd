"""Connections: bytes in order, all of them while it lives, and a beginning when it breaks."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_stub.testing.simulation.chance import chance
from broker_stub.testing.simulation.clock import SimulatedClock
from broker_stub.testing.simulation.conditions import Conditions
from broker_stub.testing.simulation.network import Network
from broker_stub.testing.simulation.scheduler import Scheduler
from broker_stub.testing.simulation.trace import Trace
from broker_stub.testing.simulation.weather import Weather

ROUGH = Conditions(split=0.5, slow=0.3, slow_ms=100)


class End:
    def __init__(self):
        self.data = b""
        self.error = None

    def receive(self, data):
        assert self.error is None
        self.data += data

    def lose(self, error):
        assert self.error is None
        self.error = error


class Server:
    """Takes connections, and echoes nothing."""

    def __init__(self):
        self.is_up = True
        self.is_powered = True
        self.ends = []
        self.wires = []

    def accept(self, wire):
        self.ends.append(End())
        self.wires.append(wire)
        return self.ends[-1]


class World:
    def __init__(self, seed=1, conditions=ROUGH):
        self.clock = SimulatedClock()
        self.scheduler = Scheduler(self.clock)
        weather = Weather()
        weather.now = conditions
        self.trace = Trace(self.clock)
        self.network = Network(
            self.scheduler, self.clock, weather, chance(seed, "network"), self.trace
        )
        self.server = Server()
        self.network.listen("broker", 9092, self.server)
        self.client = End()
        self.connected = []

    def connect(self, port=9092):
        self.wire = self.network.connect(
            "broker", port, "client", self.client, lambda: self.connected.append(1)
        )
        self.pass_time()
        return self.wire

    def pass_time(self):
        self.scheduler.run_until(lambda: False, 200_000)


SEEDS = st.integers(0, 10_000)
MESSAGES = st.lists(st.binary(min_size=1, max_size=50), max_size=20)


@given(seed=SEEDS, messages=MESSAGES)
def test_whatever_the_delays_bytes_keep_their_order(seed, messages):
    world = World(seed)
    wire = world.connect()
    for message in messages:
        wire.client_writes(message)
        wire.server_writes(message[::-1])
    world.pass_time()
    assert world.server.ends[0].data == b"".join(messages)
    assert world.client.data == b"".join(message[::-1] for message in messages)


@given(seed=SEEDS, messages=MESSAGES)
def test_when_a_connection_breaks_a_beginning_has_arrived_and_both_ends_are_told(seed, messages):
    world = World(seed, ROUGH._replace(cut=0.3))
    wire = world.connect()
    for message in messages:
        wire.client_writes(message)
    world.pass_time()
    (server,) = world.server.ends
    assert b"".join(messages).startswith(server.data)
    assert (server.error is None) == (world.client.error is None)
    if server.error is None:
        assert server.data == b"".join(messages)


def test_it_breaks_at_every_byte_sooner_or_later():
    arrived = set()
    for seed in range(200):
        world = World(seed, Conditions(cut=1))
        world.connect().client_writes(b"12345")
        world.pass_time()
        arrived.add(world.server.ends[0].data)
    assert arrived == {b"12345"[:length] for length in range(6)}


def test_a_stall_ends_nothing_and_tells_nobody():
    stalled = set()
    for seed in range(50):
        world = World(seed, Conditions(stall=1))
        world.connect().client_writes(b"12345")
        world.pass_time()
        (server,) = world.server.ends
        assert (server.error, world.client.error) == (None, None)
        assert b"12345".startswith(server.data)
        stalled.add(server.data == b"12345")
    assert stalled == {True, False}  # for a while, or for good


def test_another_connection_is_not_held_up_by_one_that_stalls():
    world = World(conditions=Conditions())
    first, second = world.connect(), world.connect()
    first.to_server.stall(math.inf, is_full=True)
    first.client_writes(b"first")
    second.client_writes(b"second")
    world.pass_time()
    assert [end.data for end in world.server.ends] == [b"", b"second"]


def test_what_a_client_wrote_before_it_closed_may_arrive_or_not():
    arrived = set()
    for seed in range(30):
        world = World(seed, Conditions())
        wire = world.connect()
        wire.client_writes(b"last words")
        wire.client_closed()
        world.pass_time()
        assert isinstance(world.server.ends[0].error, EOFError)
        arrived.add(world.server.ends[0].data)
    assert arrived == {b"", b"last words"}


def test_a_server_that_closes_is_heard():
    world = World(conditions=Conditions())
    world.connect().server_closed()
    world.pass_time()
    assert isinstance(world.client.error, EOFError)


def test_a_server_without_power_is_heard_of_only_when_it_is_back():
    world = World(conditions=Conditions())
    wire = world.connect()
    wire.server_vanished()
    world.server.is_up = world.server.is_powered = False
    wire.client_writes(b"anybody there?")
    world.pass_time()
    assert world.client.error is None
    world.server.is_up = world.server.is_powered = True
    wire.client_writes(b"and now?")
    world.pass_time()
    assert isinstance(world.client.error, ConnectionResetError)


@pytest.mark.parametrize(
    ("is_powered", "error"), [(True, ConnectionRefusedError), (False, type(None))]
)
def test_a_broker_that_is_down_refuses_as_long_as_its_machine_runs(is_powered, error):
    world = World(conditions=Conditions())
    world.server.is_up, world.server.is_powered = False, is_powered
    world.connect()
    assert isinstance(world.client.error, error)
    assert not world.connected


def test_nobody_listens_at_another_port():
    world = World(conditions=Conditions())
    world.connect(port=9093)
    assert isinstance(world.client.error, ConnectionRefusedError)


def test_a_client_that_gives_up_while_it_connects_is_not_accepted():
    world = World(conditions=Conditions())
    wire = world.network.connect("broker", 9092, "client", world.client, lambda: None)
    wire.client_closed()
    world.pass_time()
    assert world.server.ends == []
