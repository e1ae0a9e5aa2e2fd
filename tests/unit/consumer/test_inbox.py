"""Posted functions run on the caller's thread; `ring` ends its wait."""

import pytest

from pyclient.consumer.inbox import Inbox
from pyclient.errors import IllegalStateError, KafkaError
from tests.support.consumer_parts import FakeWaiter


@pytest.fixture
def submitted():
    return []


@pytest.fixture
def inbox(submitted):
    return Inbox(FakeWaiter, submitted.append)


def test_actions_run_in_order(inbox):
    ran = []
    inbox.post(lambda: ran.append(1))
    inbox.post(lambda: ran.append(2))
    assert not inbox.is_empty
    inbox.run()
    assert ran == [1, 2]
    assert inbox.is_empty


def test_an_action_that_raises_leaves_the_rest_for_the_next_time(inbox):
    ran = []

    def fail():
        raise ValueError("mine")

    inbox.post(fail)
    inbox.post(lambda: ran.append(1))
    with pytest.raises(ValueError, match="mine"):
        inbox.run()
    inbox.run()
    assert ran == [1]


def test_an_error_is_raised_once_and_acknowledged(inbox, submitted):
    inbox.post_error(KafkaError("trouble"), acknowledge=list)
    with pytest.raises(KafkaError, match="trouble"):
        inbox.run()
    assert submitted == [list]
    inbox.run()


def test_an_error_that_was_dealt_with_is_not_raised(inbox, submitted):
    inbox.post_error(KafkaError("old"), before_raise=lambda: False)
    inbox.post_error(IllegalStateError("new"))
    with pytest.raises(IllegalStateError):
        inbox.raise_error()
    assert len(submitted) == 2


def test_errors_can_be_raised_without_running_actions(inbox):
    ran = []
    inbox.post(lambda: ran.append(1))
    inbox.raise_error()
    assert ran == []


def test_a_ring_before_the_wait_is_not_lost_and_counts_once(inbox):
    waiters = []

    def new_waiter():
        waiters.append(FakeWaiter())
        return waiters[-1]

    inbox = Inbox(new_waiter, lambda action: None)
    inbox.ring()
    inbox.wait(100)
    assert len(waiters) == 2
    assert not waiters[-1].woken
    inbox.wait(100)
    assert len(waiters) == 2
