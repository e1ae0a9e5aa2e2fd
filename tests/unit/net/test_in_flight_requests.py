"""The bounded queue of a connection."""

import math

from pyclient.net.in_flight_requests import InFlightRequest, InFlightRequests
from pyclient.net.request_manager import UnsentRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest


def request(deadline_ms: float) -> InFlightRequest:
    return InFlightRequest(
        UnsentRequest(HeartbeatRequest(), 1, lambda outcome, now_ms: None), deadline_ms
    )


def test_there_is_room_up_to_the_limit():
    requests = InFlightRequests(limit=2)
    requests.add(request(10))
    assert requests.has_room
    requests.add(request(10))
    assert not requests.has_room
    requests.pop()
    assert requests.has_room


def test_requests_finish_in_the_order_they_were_sent():
    requests = InFlightRequests(limit=5)
    first, second = request(10), request(5)
    requests.add(first)
    requests.add(second)
    assert requests.oldest() is first
    assert requests.pop() is first
    assert requests.oldest() is second


def test_a_later_request_may_be_due_earlier():
    requests = InFlightRequests(limit=5)
    requests.add(request(1_000))
    impatient = request(50)
    requests.add(impatient)
    assert requests.earliest_deadline_ms == 50
    assert requests.expired(49) == []
    assert requests.expired(50) == [impatient]


def test_the_deadline_of_a_finished_request_is_forgotten_when_it_has_passed():
    requests = InFlightRequests(limit=5)
    requests.add(request(50))
    requests.pop()
    requests.add(request(1_000))
    assert requests.expired(60) == []
    assert requests.earliest_deadline_ms == 1_000


def test_clearing_takes_all_out():
    requests = InFlightRequests(limit=5)
    held = [request(10), request(20)]
    for one in held:
        requests.add(one)
    assert requests.clear() == held
    assert len(requests) == 0
    assert requests.oldest() is None
    assert requests.earliest_deadline_ms == math.inf
