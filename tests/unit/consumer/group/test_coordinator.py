"""Finding the coordinator, and losing it."""

import pytest

from pyclient.consumer.group.coordinator import CoordinatorFinder
from pyclient.errors import (
    CoordinatorNotAvailableError,
    GroupAuthorizationError,
    KafkaConnectionError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    RequestTimedOutError,
)
from pyclient.net.request_manager import coordinator_connection
from pyclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from pyclient.types import BrokerMetadata
from tests.support.consumer_parts import BACKOFF_MS, new_backoff, new_inbox

FOUND = FindCoordinatorResponse(node_id=3, host="broker3", port=9093)


class Nodes:
    def __init__(self):
        self.added = []

    def add_node(self, broker):
        self.added.append(broker)


@pytest.fixture
def nodes():
    return Nodes()


@pytest.fixture
def inbox():
    return new_inbox()


@pytest.fixture
def finder(nodes, inbox):
    return CoordinatorFinder("g", nodes, new_backoff(), inbox)


def ask(finder, now_ms=0.0):
    (unsent,) = finder.poll(now_ms).requests
    return unsent


def test_nobody_is_asked_before_somebody_wants_to_know(finder):
    assert finder.poll(0).requests == ()
    assert finder.want() is None
    unsent = ask(finder)
    assert unsent.node is None
    assert (unsent.request.key, unsent.request.key_type) == ("g", 0)
    assert finder.poll(0).requests == ()


def test_the_coordinator_has_a_connection_of_its_own(finder, nodes):
    finder.want()
    ask(finder).on_done(FOUND, 0)
    assert finder.connection == finder.want() == coordinator_connection(3)
    assert nodes.added == [BrokerMetadata(coordinator_connection(3), "broker3", 9093)]
    assert finder.poll(0).requests == ()


@pytest.mark.parametrize(
    "outcome",
    [
        FindCoordinatorResponse(error_code=CoordinatorNotAvailableError.code),
        KafkaConnectionError(),
    ],
)
def test_a_failed_search_is_repeated_after_a_pause(finder, inbox, outcome):
    finder.want()
    ask(finder).on_done(outcome, 0)
    result = finder.poll(0)
    assert (result.requests, result.next_poll_ms) == ((), BACKOFF_MS)
    ask(finder, BACKOFF_MS).on_done(FOUND, BACKOFF_MS)
    assert finder.connection is not None
    assert inbox.is_empty


def test_a_refusal_is_raised_and_repeated_only_after_that(finder, inbox):
    finder.want()
    refusal = FindCoordinatorResponse(
        error_code=GroupAuthorizationError.code, error_message="not you"
    )
    ask(finder).on_done(refusal, 0)
    assert finder.poll(10 * BACKOFF_MS).requests == ()
    with pytest.raises(GroupAuthorizationError, match="not you"):
        inbox.run()
    ask(finder, 10 * BACKOFF_MS)


@pytest.mark.parametrize(
    "error", [NotCoordinatorError(), KafkaConnectionError(), RequestTimedOutError()]
)
def test_a_wrong_or_lost_coordinator_is_looked_for_again(finder, error):
    finder.want()
    ask(finder).on_done(FOUND, 0)
    finder.on_error(error, 0)
    assert finder.connection is None
    assert finder.poll(0).requests == ()
    ask(finder, BACKOFF_MS)


def test_other_errors_are_not_about_the_coordinator(finder):
    finder.want()
    ask(finder).on_done(FOUND, 0)
    finder.on_error(OffsetMetadataTooLargeError(), 0)
    assert finder.connection is not None
