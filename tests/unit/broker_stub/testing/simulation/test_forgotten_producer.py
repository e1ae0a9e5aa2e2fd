"""A producer that nobody closed: what it does beside the program is part of the world, too."""

import pytest

from broker_stub.testing.simulation import CALM, Simulation
from pyclient import KafkaProducer


def publish_and_forget(world: Simulation) -> None:
    producer = KafkaProducer(**world.client(), linger_ms=5_000)
    for number in range(3):
        producer.send("orders", b"%d" % number)


def history() -> tuple[list[bytes | None], str]:
    with Simulation(7, CALM) as world:
        world.broker.create_topic("orders")
        world.program(publish_and_forget, world, name="ours")
        world.run()
        values = [record.value for record in world.broker.records("orders")]
    return values, world.trace.text()


@pytest.mark.filterwarnings("ignore:<KafkaProducer client_id=ours-1> was not closed")
def test_its_records_are_sent_and_it_ends_the_same_way_every_time() -> None:
    values, trace = history()
    assert values == [b"0", b"1", b"2"]
    assert "ours-1-close     ends" in trace
    assert history() == (values, trace)
