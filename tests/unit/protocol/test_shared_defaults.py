"""A struct that a decoded version lacks is one shared default: readable, never changed."""

import pytest

from pyclient.protocol.messages.current_leader import LeaderIdAndEpoch
from pyclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData


def decoded_partition() -> PartitionData:
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=b"")])
    response = FetchResponse.decode(FetchResponse(responses=[topic]).encode_bytes(11), 11)
    return response.responses[0].partitions[0]


def test_a_shared_default_equals_a_struct_of_defaults() -> None:
    assert decoded_partition().current_leader == LeaderIdAndEpoch()
    assert LeaderIdAndEpoch() == decoded_partition().current_leader
    assert repr(decoded_partition().current_leader) == repr(LeaderIdAndEpoch())


def test_a_shared_default_refuses_changes_and_says_what_to_do() -> None:
    partition = decoded_partition()
    with pytest.raises(AttributeError, match="assign a new LeaderIdAndEpoch"):
        partition.current_leader.leader_id = 3
    partition.current_leader = LeaderIdAndEpoch(leader_id=3)
    assert decoded_partition().current_leader.leader_id == -1
