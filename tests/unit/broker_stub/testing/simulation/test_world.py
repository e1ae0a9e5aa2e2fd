"""A world as its users see it: programs, clients, a broker, and how failures are told."""

import logging
import math
import os
import threading

import pytest

from broker_stub.testing.simulation import (
    CALM,
    Conditions,
    Simulation,
    WorldStuckError,
    disk,
)
from broker_stub.testing.simulation.broker import SimulatedBroker
from broker_stub.testing.simulation.conditions import drawn
from broker_stub.testing.simulation.histories import explore
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.errors import (
    IllegalStateError,
    KafkaConnectionError,
    NoBrokersAvailable,
    TopicExistsError,
)
from pyclient.protocol.messages.produce import ProduceRequest


@pytest.fixture
def world():
    with Simulation(1, CALM) as world:
        yield world


def publish(world, *values):
    with KafkaProducer(**world.client()) as producer:
        for value in values:
            producer.send("orders", value)


def test_a_producer_publishes_to_the_broker(world):
    world.broker.create_topic("orders")
    world.program(publish, world, b"one", b"two")
    world.run()
    assert [record.value for record in world.broker.records("orders")] == [b"one", b"two"]


def test_a_consumer_reads_what_a_producer_publishes(world):
    world.broker.create_topic("orders", partitions=2)
    got = []

    def consume():
        with KafkaConsumer(
            "orders", **world.client(), group_id="readers", auto_offset_reset="earliest"
        ) as consumer:
            while len(got) < 3:
                for records in consumer.poll(timeout_ms=1_000).values():
                    got.extend(record.value for record in records)

    world.program(publish, world, b"1", b"2", b"3")
    world.program(consume)
    world.run()
    assert sorted(got) == [b"1", b"2", b"3"]


def test_a_callback_runs_in_the_loop_and_must_not_wait(world):
    world.broker.create_topic("orders")
    errors = []

    def send_and_wait_in_a_callback():
        with KafkaProducer(**world.client()) as producer:

            def flush(_metadata):
                try:
                    producer.flush()
                except IllegalStateError as error:
                    errors.append(error)

            producer.send("orders", b"x").add_callback(flush)
            producer.flush()

    world.program(send_and_wait_in_a_callback)
    world.run()
    assert len(errors) == 1


def test_a_failure_tells_the_seed_and_the_last_events():
    def fail(world):
        world.note("the shelf is empty")
        raise RuntimeError("out of books")

    def history():
        with Simulation(4711, CALM) as world:
            world.program(fail, world)
            world.run()

    with pytest.raises(RuntimeError) as caught:
        history()
    (note,) = caught.value.__notes__
    assert "Simulation(seed=4711)" in note
    assert "the shelf is empty" in note


def test_exploring_tells_which_history_failed():
    def history(seed):
        assert seed != 3

    with pytest.raises(AssertionError) as caught:
        explore(history, range(10))
    assert "of seed 3" in caught.value.__notes__[0]


def test_exploring_ends_with_the_seeds_or_the_time():
    seen = []
    assert explore(seen.append, range(5)).histories == 5
    assert str(explore(seen.append, range(10**9), seconds=0)).startswith("1 histories up to seed 0")


def test_an_exception_that_is_only_logged_fails_the_history(world):
    def lose_a_callback():
        try:
            raise ValueError("out of books")
        except ValueError:
            logging.getLogger("pyclient.producer").exception("A callback failed")

    world.program(lose_a_callback)
    with pytest.raises(AssertionError, match="A callback failed") as caught:
        world.run()
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_broker_that_was_killed_has_all_that_was_written(world):
    world.broker.create_topic("orders")
    world.program(publish, world, b"one")
    world.run()
    world.broker.kill()
    world.broker.start()
    assert [record.value for record in world.broker.records("orders")] == [b"one"]


def test_a_broker_that_lost_its_power_has_a_beginning_of_it():
    left = set()
    for seed in range(30):
        with Simulation(seed, CALM) as world:
            world.broker.create_topic("orders")
            world.program(publish, world, *(b"%d" % number for number in range(5)))
            world.run()
            world.broker.lose_power()
            world.broker.start()
            left.add(tuple(record.value for record in world.broker.records("orders")))
    written = tuple(b"%d" % number for number in range(5))
    assert left <= {written[:count] for count in range(6)}
    assert {(), written} <= left


def test_a_topic_that_was_created_survives_every_power_loss():
    for seed in range(10):
        with Simulation(seed, CALM) as world:
            world.broker.create_topic("orders", partitions=3)
            world.broker.lose_power()
            world.broker.start()
            assert world.broker.records("orders") == []


def test_while_the_broker_is_down_clients_are_told_so(world):
    world.broker.kill()

    def connect():
        with pytest.raises(NoBrokersAvailable, match="refused"):
            KafkaAdminClient(**world.client(), bootstrap_timeout_ms=1_000)

    world.program(connect)
    world.run_until(lambda: world.programs.all_done, 60_000)
    with pytest.raises(IllegalStateError, match="down"):
        world.broker.records("orders")


def test_after_a_run_it_is_calm_and_the_broker_is_there():
    stormy = Conditions(crash_every_ms=50, downtime_ms=1_000_000)
    with Simulation(1, stormy) as world:
        world.program(world.sleep, 10_000, name="sleeper")
        world.run()
        assert world.broker.is_up
        assert world.weather.now is CALM
        life = world.broker.life_number
        world.run_for(3_600_000)
        assert world.broker.life_number == life


def test_crashes_come_and_the_broker_comes_back():
    stormy = Conditions(crash_every_ms=500, downtime_ms=100, power_loss=0.5)
    with Simulation(1, stormy) as world:
        world.program(world.sleep, 10_000, name="sleeper")
        world.run()
        assert 5 < world.broker.life_number < 40


def test_one_client_argument_set_makes_one_client(world):
    arguments = world.client()

    def connect_twice():
        with (
            KafkaAdminClient(**arguments),
            pytest.raises(IllegalStateError, match="ask for another"),
        ):
            KafkaAdminClient(**arguments)

    world.program(connect_twice)
    world.run()


def test_clients_are_called_after_their_program_or_as_told(world):
    names = []

    def name():
        names.append(world.client()["client_id"])
        names.append(world.client("cashier")["client_id"])

    world.program(name)
    world.run()
    assert names == ["name-1", "cashier"]


def test_a_host_that_is_not_in_this_world_cannot_be_resolved(world):
    def connect():
        arguments = {**world.client(), "bootstrap_servers": "elsewhere:9092"}
        with pytest.raises(NoBrokersAvailable, match="no such host"):
            KafkaAdminClient(**arguments, bootstrap_timeout_ms=1_000)

    world.program(connect)
    world.run()


def test_creating_a_topic_twice_is_an_error_of_the_broker(world):
    world.broker.create_topic("orders")
    with pytest.raises(TopicExistsError):
        world.broker.create_topic("orders")


def test_a_program_can_create_a_topic_too(world):
    world.program(world.broker.create_topic, "orders", name="creator")
    world.run()
    assert world.broker.records("orders") == []


def test_a_run_that_takes_too_long_names_who_has_not_ended(world):
    world.program(world.sleep, 10_000, name="sleeper")
    with pytest.raises(WorldStuckError, match="sleeper"):
        world.run(timeout_ms=100)


def test_a_client_that_outlives_its_world_can_be_closed_without_a_wait():
    clients = []
    with Simulation(1, CALM) as world:
        world.program(lambda: clients.append(KafkaAdminClient(**world.client())), name="maker")
        world.run()
    clients[0].close()


def test_what_is_in_flight_at_the_end_of_a_world_fails():
    errors = []

    def ask(world):
        admin = KafkaAdminClient(**world.client())
        world.broker.kill()
        try:
            admin.list_topics()
        except KafkaConnectionError as error:
            errors.append(error)

    with Simulation(1, CALM) as world:
        world.program(ask, world)
        world.run_for(100)
    assert errors == []  # the program was unwound, not answered


def test_a_world_whose_broker_cannot_start_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "_IN_MEMORY", str(tmp_path))

    def refuse(_broker):
        raise OSError("out of order")

    monkeypatch.setattr(SimulatedBroker, "start", refuse)
    with pytest.raises(OSError, match="out of order"):
        Simulation(1)
    assert list(tmp_path.iterdir()) == []


def test_streams_of_chance_are_independent(world):
    first = [world.chance("a").below(1_000) for _ in range(3)]
    assert [world.chance("a").below(1_000) for _ in range(3)] == first
    assert world.chance("b").below(10**9) != world.chance("a").below(10**9)


def test_conditions_are_drawn_by_the_seed():
    with Simulation(5) as one, Simulation(5) as two, Simulation(6) as three:
        assert one.conditions == two.conditions != three.conditions


def test_drawn_conditions_leave_faults_out_now_and_then():
    with Simulation(1) as world:
        drawn_ones = [drawn(world.chance(f"{number}")) for number in range(200)]
    for name in ("slow", "split", "choke", "cut", "stall", "refuse", "error", "pause"):
        off = sum(getattr(one, name) == 0 for one in drawn_ones)
        assert 40 < off < 95
    assert any(one.crash_every_ms == math.inf for one in drawn_ones)


def test_a_doubled_request_is_carried_out_again_and_nobody_hears_of_it():
    doubled = Conditions(double=1.0, doubled_apis=frozenset({ProduceRequest.api_key}), slow_ms=5)
    with Simulation(1, doubled) as world:
        world.broker.create_topic("orders")

        def publish():
            with KafkaProducer(**world.client(), enable_idempotence=False) as producer:
                assert producer.send("orders", b"v").get(timeout=5).offset == 0
            world.sleep(10)

        world.program(publish)
        world.run()
        assert [record.value for record in world.broker.records("orders")] == [b"v", b"v"]


def test_clocks_are_wrong_each_by_its_own_and_right_again_in_calm():
    with Simulation(1, Conditions(skew_ms=60_000)) as world:
        clocks = [world.machine_clock("a"), world.machine_clock("b")]
        skews = []

        def look():
            for _ in range(50):
                skews.append(tuple(one.now_ms() - world.clock.now_ms() for one in clocks))
                world.sleep(500)
            assert [one.monotonic_ms() for one in clocks] == [world.clock.monotonic_ms()] * 2

        world.program(look)
        world.run()
        assert all(first != second for first, second in skews)
        assert len(set(skews)) > 3  # they jump
        assert max(abs(one) for pair in skews for one in pair) <= 60_000
        assert [one.now_ms() for one in clocks] == [world.clock.now_ms()] * 2


def test_a_world_leaves_no_thread_and_no_file_behind():
    before = threading.active_count()
    with Simulation(1, CALM) as world:
        world.broker.create_topic("orders")
        world.program(publish, world, b"x")
        world.run()
        home = os.path.dirname(world.broker.disk.path)
    assert threading.active_count() <= before
    assert not os.path.exists(home)
