"""A change that a crash interrupts: nobody sees what a power cut could still take back."""

from __future__ import annotations

from typing import Any

from broker_stub.metadata.topics import NewTopic
from broker_stub.testing.simulation import CALM, Simulation


def test_what_a_killed_broker_had_written_is_safe_once_the_next_one_shows_it() -> None:
    with Simulation(1, CALM) as world:
        broker = world.broker
        answers: list[Any] = []
        broker.node.controller.create_topics([NewTopic("orders")], answers.extend)
        broker.kill()  # written, not synced yet, and nobody was told
        assert not answers
        broker.start()
        assert broker.node.image.topic("orders") is not None
        broker.lose_power()
        broker.start()
        assert broker.node.image.topic("orders") is not None


def test_a_controller_is_busy_until_its_change_is_seen() -> None:
    with Simulation(1, CALM) as world:
        controller = world.broker.node.controller
        answers: list[Any] = []
        controller.create_topics([NewTopic("orders")], answers.extend)
        assert controller.is_busy
        world.run_until(lambda: bool(answers), 1_000)
        assert not controller.is_busy
