"""Fetch sessions: what is sent to a broker, and which of its answers count."""

import pytest

from pyclient.consumer.fetch.session import FetchSession, SessionPartition
from pyclient.error_codes import FetchSessionIdNotFoundError, InvalidFetchSessionEpochError
from pyclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.types import TopicPartition
from tests.support.consumer_parts import topic_id

P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))


def want(offset, topic="orders", epoch=0):
    return SessionPartition(topic_id(topic), offset, 1_000, epoch)


def fill(session, wanted):
    request = FetchRequest()
    session.fill(request, wanted)
    return request


def asked(request):
    return {
        (topic.topic, one.partition): one.fetch_offset
        for topic in request.topics
        for one in topic.partitions
    }


def forgotten(request):
    return {
        (topic.topic, number)
        for topic in request.forgotten_topics_data
        for number in topic.partitions
    }


def answer(*partitions, session_id=0, error=0, throttle=0, by_name=False):
    topics = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(
            PartitionData(partition_index=partition.partition)
        )
    return FetchResponse(
        session_id=session_id,
        error_code=error,
        throttle_time_ms=throttle,
        responses=[
            FetchableTopicResponse(
                topic=topic if by_name else "",
                topic_id=ZERO_UUID if by_name else topic_id(topic),
                partitions=found,
            )
            for topic, found in topics.items()
        ],
    )


@pytest.fixture
def opened():
    """A session with two partitions at offset 0."""
    session = FetchSession(1)
    fill(session, {P0: want(0), P1: want(0)})
    assert session.on_response(answer(P0, P1, session_id=77))
    return session


def test_the_first_request_asks_for_everything_and_opens_a_session():
    request = fill(FetchSession(1), {P0: want(5), P1: want(6)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert asked(request) == {("orders", 0): 5, ("orders", 1): 6}


def test_later_requests_tell_only_what_changed(opened):
    request = fill(opened, {P0: want(9), P1: want(0), P2: want(3)})
    assert (request.session_id, request.session_epoch) == (77, 1)
    assert asked(request) == {("orders", 0): 9, ("orders", 2): 3}
    assert forgotten(request) == set()
    opened.on_response(answer(P0, session_id=77))
    request = fill(opened, {P1: want(0)})
    assert request.session_epoch == 2
    assert asked(request) == {}
    assert forgotten(request) == {("orders", 0), ("orders", 2)}


def test_a_new_leader_epoch_is_a_change(opened):
    assert asked(fill(opened, {P0: want(0, epoch=1), P1: want(0)})) == {("orders", 0): 0}


def test_a_recreated_topic_restarts_the_session(opened):
    request = fill(opened, {P0: want(0, topic="other"), P1: want(0, topic="other")})
    assert (request.session_id, request.session_epoch) == (77, 0)
    assert len(asked(request)) == 2


def test_a_broker_without_sessions_is_asked_for_everything_each_time():
    session = FetchSession(1)
    for _ in range(2):
        request = fill(session, {P0: want(0)})
        assert (request.session_id, request.session_epoch) == (0, 0)
        assert asked(request) == {("orders", 0): 0}
        assert session.on_response(answer(P0, session_id=0))


def test_sessions_that_are_switched_off_are_never_asked_for():
    session = FetchSession(1, enabled=False)
    for _ in range(2):
        request = fill(session, {P0: want(0)})
        assert (request.session_id, request.session_epoch) == (0, -1)
        assert session.on_response(answer(P0, session_id=0))


def test_a_forgotten_session_is_reopened(opened):
    fill(opened, {P0: want(0), P1: want(0)})
    assert not opened.on_response(answer(error=FetchSessionIdNotFoundError.code))
    request = fill(opened, {P0: want(0), P1: want(0)})
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert len(asked(request)) == 2


@pytest.mark.parametrize(
    "fail",
    [
        lambda session: session.on_failure(),
        lambda session: session.on_response(answer(error=InvalidFetchSessionEpochError.code)),
        lambda session: session.on_response(answer(P2, session_id=77)),
    ],
    ids=["no answer", "wrong epoch", "a partition that was not asked for"],
)
def test_a_session_in_doubt_is_replaced_and_the_broker_told_which(opened, fail):
    fill(opened, {P0: want(0), P1: want(0)})
    fail(opened)
    request = fill(opened, {P0: want(0), P1: want(0)})
    assert (request.session_id, request.session_epoch) == (77, 0)
    assert len(asked(request)) == 2


def test_a_full_answer_with_partitions_left_out_is_not_used():
    session = FetchSession(1)
    fill(session, {P0: want(0), P1: want(0)})
    assert not session.on_response(answer(P0, session_id=77))
    assert not session.is_incremental()


def test_an_empty_answer_to_a_throttled_client_is_not_used_either(caplog):
    session = FetchSession(1)
    fill(session, {P0: want(0)})
    assert not session.on_response(answer(throttle=100))
    assert caplog.records == []


def test_an_incremental_answer_may_leave_partitions_out(opened):
    fill(opened, {P0: want(0), P1: want(0)})
    assert opened.on_response(answer(session_id=77))
    assert opened.is_incremental()


def test_the_epoch_goes_round_without_meeting_the_special_ones(opened):
    opened._epoch = 2**31 - 1
    fill(opened, {P0: want(0), P1: want(0)})
    assert opened.on_response(answer(session_id=77))
    assert fill(opened, {P0: want(0), P1: want(0)}).session_epoch == 1


@pytest.mark.parametrize("by_name", [True, False])
def test_answers_are_found_by_name_and_by_id(by_name):
    session = FetchSession(1)
    fill(session, {P0: want(0)})
    response = answer(P0, by_name=by_name)
    assert [partition for partition, _ in session.answers(response)] == [P0]
    assert session.on_response(response)
