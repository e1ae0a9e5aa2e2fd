"""Randomness: repeatable with a seed, different without, and Kafka's rule for topic ids."""

import uuid

from hypothesis import given
from hypothesis import strategies as st

from pyclient.entropy import Entropy
from pyclient.types import format_uuid


def draws(entropy: Entropy) -> list[object]:
    return [
        entropy.below(1_000_000),
        entropy.uniform(0.8, 1.2),
        entropy.choice("abcdef"),
        entropy.shuffled([1, 2, 3, 4, 5]),
        entropy.random_bytes(8),
        entropy.uuid(),
    ]


@given(st.integers())
def test_the_same_seed_gives_the_same_draws(seed: int) -> None:
    assert draws(Entropy(seed)) == draws(Entropy(seed))


def test_two_sources_without_a_seed_differ() -> None:
    assert Entropy().random_bytes(16) != Entropy().random_bytes(16)


def test_shuffling_leaves_the_argument_and_keeps_every_item() -> None:
    items = list(range(20))
    assert sorted(Entropy(1).shuffled(items)) == items == list(range(20))


def test_topic_ids_are_version_4_and_never_look_like_an_option() -> None:
    entropy = Entropy(7)
    ids = [entropy.uuid() for _ in range(2_000)]
    assert len(set(ids)) == len(ids)
    assert {uuid.UUID(bytes=raw).version for raw in ids} == {4}
    assert not any(format_uuid(raw).startswith("-") for raw in ids)
