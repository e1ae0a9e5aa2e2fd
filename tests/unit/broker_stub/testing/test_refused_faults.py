"""Faults that could never be applied: a mistake in the test, told where it is made."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from broker_stub.testing import Always, Next, Nth, Randomly
from broker_stub.testing.faults import Faults
from pyclient.errors import (
    BrokerResponseError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NoError,
)
from pyclient.protocol.messages.create_topics import CreateTopicsRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.produce import ProduceRequest, ProduceResponse
from pyclient.protocol.messages.unregister_broker import UnregisterBrokerRequest

ERROR = LeaderNotAvailableError


def refusal(kind: type[Exception], order: Callable[[Faults], object]) -> str:
    faults = Faults()
    with pytest.raises(kind) as caught:
        order(faults)
    assert faults.standing == ()
    assert faults.hidden == {}
    return str(caught.value)


@pytest.mark.parametrize(
    ("api", "meant"),
    [
        (ProduceResponse, "ProduceRequest of pyclient.protocol.messages.produce"),
        (MetadataRequest(), "MetadataRequest of pyclient.protocol.messages.metadata"),
        ("Heartbeat", "HeartbeatRequest of pyclient.protocol.messages.heartbeat"),
        ("CreateTopicsRequest", "CreateTopicsRequest of pyclient.protocol.messages.create_topics"),
        (12, "HeartbeatRequest of pyclient.protocol.messages.heartbeat"),
        (int, "ProduceRequest"),
        (["Produce"], "ProduceRequest"),
        (True, "FetchRequest"),
    ],
)
def test_an_api_is_named_by_the_class_of_its_request(api, meant):
    for order in (
        lambda faults: faults.fail_next(api, ERROR),
        lambda faults: faults.delay(api, 5),
        lambda faults: faults.drop(api),
        lambda faults: faults.cut(api, 5),
        lambda faults: faults.hide(api),
    ):
        assert f"not the class of a request, as {meant}" in refusal(TypeError, order)


def test_an_api_that_is_not_served_can_t_fail():
    assert "does not serve UnregisterBrokerRequest" in refusal(
        ValueError, lambda faults: faults.fail_next(UnregisterBrokerRequest, ERROR)
    )


@pytest.mark.parametrize(
    "error", ["NotLeaderOrFollowerError", KafkaTimeoutError, BrokerResponseError, None, True, 3.0]
)
def test_an_error_has_a_wire_code(error):
    assert "give an error that has a wire code" in refusal(
        TypeError, lambda faults: faults.fail_next(ProduceRequest, error)
    )


@pytest.mark.parametrize("code", [70_000, 2**15, -(2**15) - 1])
def test_a_wire_code_has_sixteen_bits(code):
    assert f"{code} is no wire code: -32768 to 32767 are" in refusal(
        ValueError, lambda faults: faults.fail_next(ProduceRequest, code)
    )


@pytest.mark.parametrize("code", [0, NoError])
def test_success_is_no_error(code):
    assert "code 0 is no error" in refusal(
        ValueError, lambda faults: faults.fail_next(ProduceRequest, code)
    )


@pytest.mark.parametrize("code", [-1, 9999, 2**15 - 1])
def test_a_code_of_a_newer_broker_is_taken(code):
    assert Faults().fail_next(ProduceRequest, code).effect.error.code == code


@pytest.mark.parametrize(
    ("api", "scope", "kind", "words"),
    [
        (ProduceRequest, {"partition": 0}, ValueError, "partition 0 of which topic"),
        (HeartbeatRequest, {"topic": "orders"}, ValueError, "limited to one topic"),
        (
            CreateTopicsRequest,
            {"topic": "orders", "partition": 0},
            ValueError,
            "limited to one partition",
        ),
        (ProduceRequest, {"topics": ["orders"]}, TypeError, "can't be limited by topics"),
        (ProduceRequest, {"topic": 5}, TypeError, "named by a str, not by 5"),
        (ProduceRequest, {"topic": ""}, ValueError, "no name"),
        (
            ProduceRequest,
            {"topic": "orders", "partition": "0"},
            TypeError,
            "the number of a partition is a whole number, not '0'",
        ),
        (
            ProduceRequest,
            {"topic": "orders", "partition": True},
            TypeError,
            "the number of a partition is a whole number, not True",
        ),
        (
            ProduceRequest,
            {"topic": "orders", "partition": -1},
            ValueError,
            "no partition -1: the first one is 0",
        ),
        (ProduceRequest, {"client_id": 3}, TypeError, "calls itself by a str, not by 3"),
        (ProduceRequest, {"after": "no"}, TypeError, "after is True or False, not 'no'"),
    ],
)
def test_a_limit_makes_sense(api, scope, kind, words):
    assert words in refusal(kind, lambda faults: faults.fail_next(api, ERROR, **scope))
    assert words in refusal(kind, lambda faults: faults.drop(api, **scope))


@pytest.mark.parametrize("when", [Always, 3, True, 0, "next"])
def test_a_when_says_which_requests(when):
    for order in (
        lambda faults: faults.fail(ProduceRequest, ERROR, when),
        lambda faults: faults.delay(ProduceRequest, 5, when),
        lambda faults: faults.drop(ProduceRequest, when),
        lambda faults: faults.cut(ProduceRequest, 5, when),
    ):
        assert "does not say which requests" in refusal(TypeError, order)


WRONG_NUMBERS: list[tuple[Callable[[Faults], object], type[Exception], str]] = [
    (lambda f: f.fail_next(ProduceRequest, ERROR, "3"), TypeError, "whole number, not '3'"),
    (lambda f: f.fail_next(ProduceRequest, ERROR, 1.5), TypeError, "whole number, not 1.5"),
    (lambda f: f.fail_nth(ProduceRequest, ERROR, None), TypeError, "whole number, not None"),
    (lambda f: f.delay(ProduceRequest, "5"), TypeError, "a number, not '5'"),
    (lambda f: f.delay(ProduceRequest, True), TypeError, "a number, not True"),
    (lambda f: f.delay(ProduceRequest, math.nan), ValueError, "finite number, not nan"),
    (lambda f: f.delay(ProduceRequest, math.inf), ValueError, "finite number, not inf"),
    (lambda f: f.delay(ProduceRequest, -1), ValueError, "1 ms early"),
    (lambda f: f.delay(ProduceRequest, 1e12), ValueError, "2147483647 ms or less"),
    (lambda f: f.cut(ProduceRequest, 1.5), TypeError, "whole number, not 1.5"),
    (lambda f: f.cut(ProduceRequest, "1"), TypeError, "whole number, not '1'"),
    (lambda f: f.cut(ProduceRequest, None), TypeError, "whole number, not None"),
    (lambda f: f.cut(ProduceRequest, -1), ValueError, "nothing before byte 0"),
    (lambda f: f.hide(ProduceRequest, above=5.5), TypeError, "whole number, not 5.5"),
    (lambda f: f.hide(ProduceRequest, below="5"), TypeError, "whole number, not '5'"),
    (lambda f: f.hide(ProduceRequest, above=True), TypeError, "whole number, not True"),
]


@pytest.mark.parametrize(("order", "kind", "words"), WRONG_NUMBERS)
def test_a_number_is_of_its_kind(order, kind, words):
    assert words in refusal(kind, order)


WRONG_CHOICES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Next(0), ValueError, "the next 0 requests are none"),
    (lambda: Next(1.5), TypeError, "whole number, not 1.5"),
    (lambda: Next(True), TypeError, "whole number, not True"),
    (lambda: Nth(0), ValueError, "no request number 0"),
    (lambda: Nth("2"), TypeError, "whole number, not '2'"),
    (lambda: Randomly(1.1, 0), ValueError, "between 0 and 1: 1.1"),
    (lambda: Randomly(-1, 0), ValueError, "between 0 and 1: -1"),
    (lambda: Randomly(math.nan, 0), ValueError, "finite number, not nan"),
    (lambda: Randomly("0.5", 0), TypeError, "a number, not '0.5'"),
    (lambda: Randomly(0.5, None), TypeError, "a seed is a whole number, not None"),
]


@pytest.mark.parametrize(("choose", "kind", "words"), WRONG_CHOICES)
def test_a_choice_that_can_never_be_is_refused(choose, kind, words):
    with pytest.raises(kind) as caught:
        choose()
    assert words in str(caught.value)
