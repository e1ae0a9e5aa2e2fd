"""What a request holds, and the highest version that can carry it."""

import pytest

from pyclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from pyclient.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from pyclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pyclient.protocol.messages.end_txn import EndTxnRequest
from pyclient.protocol.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic
from pyclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from pyclient.protocol.messages.heartbeat import HeartbeatRequest
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from pyclient.protocol.messages.produce import ProduceRequest, TopicProduceData
from pyclient.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from pyclient.protocol.schema import Message

ID = b"\x01" * 16


def offset_fetch(*topics: OffsetFetchRequestTopics) -> OffsetFetchRequest:
    group = OffsetFetchRequestGroup(group_id="g", topics=list(topics))
    return OffsetFetchRequest(groups=[group])


@pytest.mark.parametrize(
    ("request_", "cap"),
    [
        (HeartbeatRequest(), 4),
        (InitProducerIdRequest(), 5),  # 6 is not stable
        # a topic without an id
        (ProduceRequest(topic_data=[TopicProduceData(topic_id=ID)]), 13),
        (ProduceRequest(topic_data=[TopicProduceData(topic_id=ID), TopicProduceData()]), 12),
        (FetchRequest(), 18),
        (FetchRequest(topics=[FetchTopic(topic_id=ID)]), 18),
        (FetchRequest(topics=[FetchTopic(topic_id=ID), FetchTopic(topic="t")]), 12),
        (FetchRequest(forgotten_topics_data=[ForgottenTopic(topic_id=ID)]), 18),
        (FetchRequest(forgotten_topics_data=[ForgottenTopic(topic="t")]), 12),
        (OffsetCommitRequest(topics=[OffsetCommitRequestTopic(topic_id=ID)]), 10),
        (OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t")]), 9),
        (offset_fetch(OffsetFetchRequestTopics(topic_id=ID)), 10),
        (offset_fetch(OffsetFetchRequestTopics(name="t")), 9),
        (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 9),
        # one where later versions take many
        (OffsetFetchRequest(group_id="g"), 7),
        (FindCoordinatorRequest(key="g"), 3),
        (FindCoordinatorRequest(coordinator_keys=["g"]), 6),
        (LeaveGroupRequest(member_id="m"), 2),
        (LeaveGroupRequest(members=[MemberIdentity(member_id="m")]), 5),
        (DeleteTopicsRequest(topic_names=["t"]), 5),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6),
        # what later versions dropped
        (MetadataRequest(), 13),
        (MetadataRequest(include_cluster_authorized_operations=True), 10),
        # who asks
        (AddPartitionsToTxnRequest(v3_and_below_transactional_id="t"), 3),
        (AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction()]), 5),
        (ConsumerGroupHeartbeatRequest(member_id="m"), 1),
        (ConsumerGroupHeartbeatRequest(), 0),
    ],
    ids=lambda value: f"{type(value).__name__}" if isinstance(value, Message) else f"{value}",
)
def test_cap(request_: Message, cap: int) -> None:
    assert request_.version_cap() == cap
    assert cap in request_.versions
    request_.encode(cap)


@pytest.mark.parametrize(
    ("request_", "before", "since"),
    [
        (ProduceRequest(transactional_id="t"), 11, 13),
        (ProduceRequest(transactional_id="t", topic_data=[TopicProduceData()]), 11, 12),
        (ProduceRequest(), 13, 13),
        (TxnOffsetCommitRequest(), 4, 5),
        (EndTxnRequest(), 4, 5),
    ],
    ids=lambda value: f"{type(value).__name__}" if isinstance(value, Message) else f"{value}",
)
def test_cap_of_a_transactions_request_rises_with_transaction_version_2(
    request_: Message, before: int, since: int
) -> None:
    assert [request_.version_cap(version) for version in (0, 1, 2)] == [before, before, since]
