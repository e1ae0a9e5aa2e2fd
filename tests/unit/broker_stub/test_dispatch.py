"""Around the handlers: headers, versions, bad bytes, interceptors."""

from collections.abc import Mapping

import pytest

from broker_stub import dispatch
from broker_stub.dispatch import Interceptor, Intervention
from broker_stub.handlers import SERVED
from broker_stub.request import HANG_UP, Reply, RequestContext
from pyclient.errors import NotLeaderOrFollowerError, UnknownServerError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.registry import ApiVersionRange, request_class, response_class
from pyclient.protocol.schema import Message
from tests.support.node_harness import decode_reply


class Recorder(Interceptor):
    """An interceptor that does what it is told, and remembers what it saw."""

    def __init__(self, before: Intervention | None = None, after: Intervention | None = None):
        self.before = before
        self.after = after
        self.seen: list[str] = []
        self.hidden: set[int] = set()

    def served(self, served: Mapping[int, ApiVersionRange]) -> Mapping[int, ApiVersionRange]:
        return {key: value for key, value in served.items() if key not in self.hidden}

    def on_request(self, request: Message, context: RequestContext) -> Intervention | None:
        self.seen.append(f"request {context.api_key}")
        return self.before

    def on_response(
        self, request: Message, response: Message | None, context: RequestContext
    ) -> Intervention | None:
        self.seen.append(f"response {context.api_key}")
        return self.after


def metadata_of(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


@pytest.mark.parametrize("api_key", SERVED)
def test_every_served_version_is_declared_by_request_and_response(api_key):
    for version in range(SERVED[api_key].lowest, SERVED[api_key].highest + 1):
        assert version in request_class(api_key).stable
        assert version in response_class(api_key).stable


@pytest.mark.parametrize("api_key", SERVED)
def test_every_handler_can_refuse_a_request_in_every_version(api_key):
    for version in range(SERVED[api_key].lowest, SERVED[api_key].highest + 1):
        request = request_class(api_key)()
        if isinstance(request, ProduceRequest):
            request.acks = 1
        if isinstance(request, FindCoordinatorRequest) and version >= 4:
            request.coordinator_keys = ["group"]
        refused = dispatch.refusal(request, UnknownServerError("test"))
        assert refused is not None
        assert refused.encode(version)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\x12",
        b"\x00\x03\x00\x63\x00\x00\x00\x01\xff\xff",  # Metadata 99
        b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff",  # API 999
        b"\x00\x03\x00\x01\x00\x00\x00\x01\xff\xff\x7f\xff\xff\xff",  # an array of two billion
        b"\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff",  # Produce 0: advertised, not served
    ],
)
def test_what_is_no_request_closes_the_connection(harness, frame):
    assert harness.node.handle(memoryview(frame), harness.connection) == HANG_UP


def test_an_unknown_version_of_api_versions_is_answered_in_version_0_with_the_list(harness):
    frame = memoryview(b"\x00\x12\x00\x63\x00\x00\x00\x07\xff\xff")
    reply = harness.node.handle(frame, harness.connection)
    assert isinstance(reply, Reply)
    response = decode_reply(reply, 18, 0)
    assert response.error_code == 35
    assert 18 in {row.api_key for row in response.api_keys}


def test_bytes_behind_a_request_are_ignored_as_kafka_does(harness):
    frame = memoryview(b"\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff" + b"trailing")
    reply = harness.node.handle(frame, harness.connection)
    assert decode_reply(reply, 18, 0).error_code == 0


def test_an_exception_of_ours_is_answered_and_logged(harness, monkeypatch, caplog):
    def broken(*_):
        raise ZeroDivisionError("mistake")

    monkeypatch.setattr("broker_stub.handlers.metadata.handle", broken)
    response = harness.ask(metadata_of("orders"), 12)
    assert response.topics[0].error_code == UnknownServerError.code
    assert "MetadataRequest failed" in caplog.text


def test_interceptors_see_requests_and_responses(harness):
    recorder = Recorder()
    harness.node.dispatcher.interceptors.append(recorder)
    harness.ask(ApiVersionsRequest(), 0)
    assert recorder.seen == ["request 18", "response 18"]


def test_an_intervention_answers_in_place_of_the_handler(harness):
    refused = dispatch.refusal(metadata_of("orders"), NotLeaderOrFollowerError())
    harness.node.dispatcher.interceptors.append(Recorder(before=Intervention(response=refused)))
    response = harness.ask(metadata_of("orders"), 12)
    assert response.topics[0].error_code == NotLeaderOrFollowerError.code
    assert harness.node.image.topic("orders") is None  # it would have been created


def test_an_intervention_answers_in_place_of_the_handler_that_did_its_work(harness):
    harness.node.dispatcher.interceptors.append(
        Recorder(after=Intervention(response=MetadataResponse(cluster_id="another")))
    )
    assert harness.ask(metadata_of("orders"), 12).cluster_id == "another"
    assert harness.node.image.topic("orders") is not None


def test_an_intervention_replaces_the_request(harness):
    harness.node.dispatcher.interceptors.append(
        Recorder(before=Intervention(request=metadata_of("replaced")))
    )
    response = harness.ask(metadata_of("orders"), 12)
    assert [topic.name for topic in response.topics] == ["replaced"]


def test_an_intervention_hangs_up_before_or_after_the_side_effect(harness):
    recorder = Recorder(before=Intervention(close=True))
    harness.node.dispatcher.interceptors.append(recorder)
    assert harness.start(metadata_of("before"), 12).reply == HANG_UP
    recorder.before, recorder.after = None, Intervention(close=True)
    assert harness.start(metadata_of("after"), 12).reply == HANG_UP
    assert harness.node.image.topic("before") is None
    assert harness.node.image.topic("after") is not None


def test_an_intervention_delays_the_answer(harness):
    harness.node.dispatcher.interceptors.append(Recorder(after=Intervention(delay_ms=50)))
    pending = harness.start(metadata_of("orders"), 12)
    harness.advance(49)
    assert not pending.arrived
    harness.advance(1)
    assert pending.response.topics[0].name == "orders"


def test_a_client_that_leaves_takes_its_delayed_answer_with_it(harness):
    harness.node.dispatcher.interceptors.append(Recorder(after=Intervention(delay_ms=50)))
    pending = harness.start(ApiVersionsRequest(), 0)
    pending.parked.abandon()
    assert harness.node.timers.next_deadline_ms() is None


def test_an_intervention_cuts_the_answer_off(harness):
    whole = harness.start(ApiVersionsRequest(), 0).reply
    harness.node.dispatcher.interceptors.append(Recorder(after=Intervention(cut_after_bytes=10)))
    cut = harness.start(ApiVersionsRequest(), 0).reply
    assert cut.close
    assert b"".join(cut.parts)[8:] == b"".join(whole.parts)[8:10]  # behind the correlation id


def test_hidden_apis_are_neither_advertised_nor_served(harness):
    recorder = Recorder()
    recorder.hidden = {3}
    harness.node.dispatcher.interceptors.append(recorder)
    response: ApiVersionsResponse = harness.ask(ApiVersionsRequest(), 0)
    assert 3 not in {row.api_key for row in response.api_keys}
    assert harness.start(metadata_of("orders"), 12).reply == HANG_UP
