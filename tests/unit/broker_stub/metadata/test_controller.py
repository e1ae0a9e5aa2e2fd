"""Unexpected failures in the controller: waiting requests get an error."""

import pytest

from pyclient.error_codes import PolicyViolationError, UnknownServerError
from pyclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.node_harness import NodeHarness


def create(harness: NodeHarness, name: str):
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return harness.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0]


def fail(*_: object) -> None:
    raise ZeroDivisionError("a mistake")


@pytest.mark.parametrize(("step", "next_topic"), [("_plan", "orders"), ("_apply", "payments")])
def test_a_change_that_cannot_be_planned_or_applied_is_answered_and_the_next_is_made(
    harness, monkeypatch, caplog, step, next_topic
):
    with monkeypatch.context() as patched:
        patched.setattr(harness.node.controller, step, fail)
        assert create(harness, "orders").error_code == UnknownServerError.code
    assert "ZeroDivisionError" in caplog.text
    assert create(harness, next_topic).error_code == 0


def test_a_topic_that_creates_itself_has_no_more_partitions_than_any_other(tmp_path):
    harness = NodeHarness(tmp_path, num_partitions=2**31 - 1)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=True
    )
    (topic,) = harness.ask(request, 9).topics
    assert topic.error_code == PolicyViolationError.code
    assert harness.node.image.topic("orders") is None
