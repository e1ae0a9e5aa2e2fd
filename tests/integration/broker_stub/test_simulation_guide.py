"""The example of docs/simulation.md is a test: it passes, and can fail."""

import re
from pathlib import Path
from typing import Any

import pytest

from broker_stub.testing.simulation import Conditions, explore
from pyclient import KafkaProducer

GUIDE = Path(__file__).parents[3] / "docs" / "simulation.md"


@pytest.fixture
def example() -> dict[str, Any]:
    (source,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(source, names)
    return names


def test_the_guides_example_passes(example):
    example["test_no_order_is_lost_or_taken_twice"]()


def test_the_guides_example_finds_a_producer_that_sends_twice(example):
    def without_idempotence(**options):
        return KafkaProducer(**options, enable_idempotence=False)

    example["KafkaProducer"] = without_idempotence
    with pytest.raises(AssertionError) as caught:
        explore(example["history"], range(200))
    assert "This was Simulation(seed=" in caught.value.__notes__[0]


def test_the_guide_names_every_condition():
    guide = GUIDE.read_text(encoding="utf-8")
    assert not [name for name in Conditions._fields if f"`{name}`" not in guide]
