"""A broker of a scripted network that coordinates a group of one and serves a few records.

Just enough for whole consumers on a clock that the test moves: every member is alone, and a fetch
without data is never answered, as if the broker waited for some.
"""

from pyclient.consumer.group.consumer_protocol import decode_subscription
from pyclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from pyclient.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from pyclient.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from pyclient.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pyclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pyclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.support.consumer_parts import batch_at


class ScriptedGroup:
    """Answers for one broker.

    Attributes:
        values: the records of topic orders, partition 0.
        committed: the group's offset there; -1 is none.
        generation: counts the joins.
    """

    def __init__(self, network, broker, values=()):
        self.network = network
        self.broker = broker
        self.values = list(values)
        self.committed = -1
        self.generation = 0
        broker.on(FindCoordinatorRequest, self.find_coordinator)
        broker.on(JoinGroupRequest, self.join)
        broker.on(SyncGroupRequest, self.sync)
        broker.on(HeartbeatRequest, HeartbeatResponse())
        broker.on(LeaveGroupRequest, LeaveGroupResponse(members=[MemberResponse(member_id="me")]))
        broker.on(OffsetFetchRequest, self.fetch_offsets)
        broker.on(OffsetCommitRequest, self.commit)
        broker.on(ListOffsetsRequest, self.list_offsets)
        broker.on(FetchRequest, self.fetch)

    def find_coordinator(self, request, version):
        broker = self.broker
        return FindCoordinatorResponse(node_id=broker.node_id, host=broker.host, port=broker.port)

    def join(self, request, version):
        self.generation += 1
        protocol = request.protocols[0]
        assert decode_subscription(protocol.metadata, None).topics
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=protocol.name,
            leader="me",
            member_id="me",
            members=[JoinGroupResponseMember(member_id="me", metadata=protocol.metadata)],
        )

    def sync(self, request, version):
        (own,) = request.assignments
        return SyncGroupResponse(assignment=own.assignment)

    def fetch_offsets(self, request, version):
        (group,) = request.groups
        (topic,) = group.topics
        found = OffsetFetchResponsePartitions(partition_index=0, committed_offset=self.committed)
        answer = OffsetFetchResponseTopics(
            name=topic.name, topic_id=topic.topic_id, partitions=[found]
        )
        group = OffsetFetchResponseGroup(group_id=group.group_id, topics=[answer])
        return OffsetFetchResponse(groups=[group])

    def commit(self, request, version):
        (topic,) = request.topics
        (partition,) = topic.partitions
        self.committed = partition.committed_offset
        answer = OffsetCommitResponsePartition(partition_index=0)
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=[answer]
                )
            ]
        )

    def list_offsets(self, request, version):
        (topic,) = request.topics
        (wanted,) = topic.partitions
        offset = 0 if wanted.timestamp == -2 else len(self.values)
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[found])]
        )

    def fetch(self, request, version):
        if not request.topics:
            return None
        (topic,) = request.topics
        (wanted,) = topic.partitions
        values = self.values[wanted.fetch_offset :]
        if not values and request.max_wait_ms:
            return None
        data = PartitionData(
            partition_index=0,
            high_watermark=len(self.values),
            records=batch_at(wanted.fetch_offset, values) if values else b"",
        )
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic, topic_id=topic.topic_id, partitions=[data]
                )
            ]
        )
