"""Answers that come later."""

import pytest

from broker_stub.request import Parked


def test_an_answer_reaches_a_receiver_that_asked_before_it_came():
    parked: Parked[int] = Parked()
    got = []
    parked.deliver_to(got.append)
    parked.answer(1)
    assert got == [1]


def test_an_answer_that_is_there_already_is_delivered_at_once():
    parked: Parked[int] = Parked()
    parked.answer(1)
    got = []
    parked.deliver_to(got.append)
    assert got == [1]


def test_a_second_answer_is_a_mistake():
    parked: Parked[int] = Parked()
    parked.answer(1)
    with pytest.raises(RuntimeError, match="twice"):
        parked.answer(2)


def test_an_answer_to_a_client_that_is_gone_is_dropped():
    gone = []
    parked: Parked[int] = Parked(on_abandoned=lambda: gone.append(True))
    got = []
    parked.deliver_to(got.append)
    parked.abandon()
    parked.abandon()
    parked.answer(1)
    assert gone == [True]
    assert got == []
    assert parked.abandoned
