"""Which requests a fault is for."""

import pytest

from broker_stub.testing import Always, Next, Nth, Randomly, When


def chosen(when: When, requests: int) -> list[int]:
    """The numbers of the requests that it matches, if no other condition applies."""
    taken = []
    for number in range(1, requests + 1):
        if when.wants():
            when.took()
            taken.append(number)
    return taken


def test_always_takes_every_request():
    assert chosen(Always(), 3) == [1, 2, 3]


def test_next_takes_as_many_as_were_ordered_and_is_spent_then():
    when = Next(2)
    assert not when.spent
    assert chosen(when, 5) == [1, 2]
    assert when.spent


def test_nth_takes_that_one_alone():
    when = Nth(3)
    assert chosen(when, 6) == [3]
    assert when.spent


def test_nth_takes_the_one_behind_if_its_own_went_to_another_fault():
    when = Nth(1)
    assert when.wants()
    assert not when.spent
    assert chosen(when, 3) == [1]


def test_the_same_seed_takes_the_same_requests():
    first, again, other = (chosen(Randomly(0.5, seed), 100) for seed in (1, 1, 2))
    assert first == again != other
    assert 20 < len(first) < 80


@pytest.mark.parametrize(("probability", "taken"), [(0, 0), (1, 100)])
def test_a_probability_of_zero_is_never_and_of_one_always(probability, taken):
    assert len(chosen(Randomly(probability, 0), 100)) == taken
