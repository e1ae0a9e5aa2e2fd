"""The data path against the handlers: the same frames give the same bytes.

Two nodes with the same state and the same randomness get every frame: one serves it on the data
path, the other, which has an interceptor, through the codec.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_stub.dispatch import Interceptor
from broker_stub.request import Parked, Reply
from pyclient.protocol.frame import LENGTH, request_frame
from pyclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from pyclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from pyclient.protocol.primitives import ZERO_UUID
from pyclient.protocol.schema import Message
from pyclient.types import TopicPartition
from tests.support.group_member import GroupMember, find_coordinator
from tests.support.node_harness import NodeHarness, batch
from tests.support.offset_requests import offset_commit_request

TOPICS = ("orders", "payments")
MISSING_ID = b"missing-topic-id"


class Watcher(Interceptor):
    """Looks at requests, and does nothing about them."""

    def __init__(self) -> None:
        self.seen = 0

    def on_request(self, request: Message, context: Any) -> None:
        self.seen += 1


class Pair:
    """Two nodes alike."""

    def __init__(self, folder: Path) -> None:
        self.short = NodeHarness(folder / "short")
        self.ordinary = NodeHarness(folder / "ordinary")
        self.ids = {name: self._create(name) for name in TOPICS}
        for node in self.nodes:
            find_coordinator(node)
        self.watcher = Watcher()
        self.ordinary.node.dispatcher.interceptors.append(self.watcher)

    @property
    def nodes(self) -> tuple[NodeHarness, NodeHarness]:
        return self.short, self.ordinary

    def _create(self, name: str) -> bytes:
        first, second = (node.create_topic(name, 2) for node in self.nodes)
        assert first == second
        return first

    def answers(self, frame: bytes) -> tuple[object, object]:
        """Both nodes' answers to a frame, given without its length."""
        first, second = (
            told(node.node.handle(memoryview(bytearray(frame)), node.connection))
            for node in self.nodes
        )
        return first, second

    def ends(self) -> list[list[int]]:
        return [
            [
                node.node.replicas.partition(name, index).log_end_offset
                for name in TOPICS
                for index in (0, 1)
            ]
            for node in self.nodes
        ]


def told(reply: Reply | Parked[Reply]) -> object:
    if isinstance(reply, Parked):
        reply.abandon()
        return "parked"
    data = b"".join(
        part.read() if hasattr(part, "read") else bytes(part)  # type: ignore[arg-type]
        for part in reply.parts
    )
    return data, reply.close


def frame_of(request: Message, version: int, client_id: str | None = "client") -> bytes:
    parts = request_frame(request, version, 4711, client_id)
    return b"".join(parts)[LENGTH.size :]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("nodes"))
    yield made
    for node in made.nodes:
        node.node.abandon()


BATCHES = st.sampled_from(
    [
        batch(b"value"),
        batch(b"a", b"b", b"c", key=b"k"),
        batch(b"v" * 3000),
        batch(b"v" * 70_000, size=1 << 17),
        batch(b"i", producer_id=7, producer_epoch=0, base_sequence=0),
        batch(b"i", producer_id=7, producer_epoch=0, base_sequence=5),
        batch(b"1") + batch(b"2"),
        batch(b"damaged")[:-1] + b"?",
        b"",
        b"nonsense",
        None,
    ]
)
INDEXES = st.sampled_from([0, 1, 0, 1, 7, -1])


@st.composite
def topic_names(draw: st.DrawFn, ids: Mapping[str, bytes]) -> tuple[str, bytes]:
    name = draw(st.sampled_from([*TOPICS, *TOPICS, "missing", "__consumer_offsets", "ünï"]))
    return name, ids.get(name, MISSING_ID)


@st.composite
def produce_requests(draw: st.DrawFn, ids: Mapping[str, bytes]) -> ProduceRequest:
    topics = []
    for name, topic_id in draw(st.lists(topic_names(ids), max_size=3)):
        data = draw(st.lists(st.tuples(INDEXES, BATCHES), max_size=3))
        topics.append(
            TopicProduceData(
                name=name,
                topic_id=topic_id,
                partition_data=[
                    PartitionProduceData(index=index, records=records) for index, records in data
                ],
            )
        )
    return ProduceRequest(
        transactional_id=draw(st.sampled_from([None, None, None, "", "transaction"])),
        acks=draw(st.sampled_from([-1, 1, -1, 1, 0, 2])),
        timeout_ms=1000,
        topic_data=topics,
    )


@st.composite
def fetch_requests(draw: st.DrawFn, ids: Mapping[str, bytes], version: int) -> FetchRequest:
    topics = []
    for name, topic_id in draw(st.lists(topic_names(ids), max_size=3)):
        topics.append(
            FetchTopic(
                topic=name,
                topic_id=topic_id,
                partitions=[
                    FetchPartition(
                        partition=draw(INDEXES),
                        current_leader_epoch=draw(st.sampled_from([-1, 0, 3])),
                        fetch_offset=draw(st.sampled_from([0, 0, 1, 5, 10**6, -1])),
                        partition_max_bytes=draw(st.sampled_from([1, 100, 1 << 20])),
                    )
                    for _ in range(draw(st.integers(0, 2)))
                ],
            )
        )
    request = FetchRequest(
        max_wait_ms=draw(st.sampled_from([0, 500])),
        min_bytes=draw(st.sampled_from([0, 1, 10**6])),
        max_bytes=draw(st.sampled_from([1, 1 << 20])),
        isolation_level=draw(st.sampled_from([0, 1])),
        topics=topics,
    )
    if version >= 7:
        request.session_id, request.session_epoch = draw(
            st.sampled_from([(0, -1), (0, 0), (9, -1), (9, 1)])
        )
        if draw(st.booleans()):
            request.forgotten_topics_data = [
                ForgottenTopic(topic="orders", topic_id=ZERO_UUID, partitions=[0])
            ]
    if version >= 11:
        request.rack_id = draw(st.sampled_from(["", "rack"]))
    if version >= 15 and draw(st.booleans()):
        request.replica_state = ReplicaState(replica_id=3, replica_epoch=1)
    return request


@st.composite
def commit_requests(draw: st.DrawFn, version: int) -> OffsetCommitRequest:
    topics = []
    for name, _ in draw(st.lists(topic_names({}), max_size=3)):
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=draw(INDEXES),
                committed_offset=draw(st.sampled_from([0, 7, -1, 2**62])),
                committed_leader_epoch=draw(st.sampled_from([-1, 4])) if version >= 6 else -1,
                committed_metadata=draw(
                    st.sampled_from([None, "", "", "about it", "ünï", "m" * 4097])
                ),
            )
            for _ in range(draw(st.integers(0, 3)))
        ]
        topics.append(OffsetCommitRequestTopic(name=name, partitions=partitions))
    request = OffsetCommitRequest(
        group_id=draw(st.sampled_from(["group", "another", "members", "", "ünï"])),
        generation_id_or_member_epoch=draw(st.sampled_from([-1, -1, -1, 0, 1])),
        member_id=draw(st.sampled_from(["", "", "nobody"])),
        topics=topics,
    )
    if version >= 7:
        request.group_instance_id = draw(st.sampled_from([None, None, "instance", ""]))
    if version <= 4:
        request.retention_time_ms = draw(st.sampled_from([-1, 60_000]))
    return request


STEPS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("version", range(3, 14))
@STEPS
@given(data=st.data())
def test_produce_is_answered_alike(pair, version, data):
    request = data.draw(produce_requests(pair.ids))
    client_id = data.draw(st.sampled_from(["client", "", None]))
    short, ordinary = pair.answers(frame_of(request, version, client_id))
    assert short == ordinary
    ends = pair.ends()
    assert ends[0] == ends[1]


@pytest.mark.parametrize("version", range(4, 18))
@STEPS
@given(data=st.data())
def test_fetch_is_answered_alike(pair, version, data):
    request = data.draw(fetch_requests(pair.ids, version))
    short, ordinary = pair.answers(frame_of(request, version))
    assert short == ordinary


@pytest.mark.parametrize("version", range(2, 10))
@STEPS
@given(data=st.data())
def test_commits_are_answered_alike_and_written_alike(pair, version, data):
    request = data.draw(commit_requests(version))
    client_id = data.draw(st.sampled_from(["client", "", None]))
    short, ordinary = pair.answers(frame_of(request, version, client_id))
    assert short == ordinary
    groups = ("group", "another", "members", "", "ünï")
    short_offsets, ordinary_offsets = (
        [dict(node.node.coordinator.offsets.of_group(group)) for group in groups]
        for node in pair.nodes
    )
    assert short_offsets == ordinary_offsets


def test_the_commit_of_a_member_takes_the_short_cut(pair, monkeypatch):
    members = [GroupMember(node, group_id="members") for node in pair.nodes]
    for member in members:
        member.join()
        member.start_sync({member.member_id: b"everything"})
    monkeypatch.setattr(pair.short.node.dispatcher, "_decode", None)
    for version in range(2, 10):
        codes = [member.commit(version, version=version) for member in members]
        assert codes == [0, 0]
        for node in pair.nodes:
            kept = node.node.coordinator.offsets.get("members", TopicPartition("orders", 0))
            assert kept is not None
            assert kept.offset == version


@pytest.mark.parametrize("version", range(4, 18))
def test_what_is_malformed_is_answered_alike(pair, version):
    random = Random(version)
    topic = FetchTopic(
        topic="orders",
        topic_id=pair.ids["orders"],
        partitions=[FetchPartition(partition=0, partition_max_bytes=1000)],
    )
    data = TopicProduceData(
        name="orders",
        topic_id=pair.ids["orders"],
        partition_data=[PartitionProduceData(index=0, records=batch(b"value"))],
    )
    produce_version = min(version, 13)
    commit = offset_commit_request(
        "group", {("orders", 0): 3}, metadata="about it", member_id="member"
    )
    frames = [
        frame_of(FetchRequest(topics=[topic], max_bytes=1000), version),
        frame_of(ProduceRequest(acks=1, topic_data=[data]), produce_version),
        frame_of(commit, min(version, 9)),
    ]
    for _ in range(300):
        frame = bytearray(random.choice(frames))
        if random.random() < 0.3:
            del frame[random.randrange(8, len(frame)) :]
        else:
            frame[random.randrange(8, len(frame))] = random.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
        short, ordinary = pair.answers(bytes(frame))
        assert short == ordinary, bytes(frame)


def test_the_short_cut_is_taken_unless_somebody_watches(pair, monkeypatch):
    taken = []

    def decode(*arguments: object) -> None:
        taken.append(arguments)
        raise AssertionError("by the codec")

    monkeypatch.setattr(pair.short.node.dispatcher, "_decode", decode)
    data = TopicProduceData(
        name="orders",
        topic_id=pair.ids["orders"],
        partition_data=[PartitionProduceData(index=0, records=batch(b"value"))],
    )
    topic = FetchTopic(
        topic="orders",
        topic_id=pair.ids["orders"],
        partitions=[FetchPartition(partition=0, partition_max_bytes=1000)],
    )
    seen = pair.watcher.seen
    for version in range(3, 14):
        pair.answers(frame_of(ProduceRequest(acks=1, topic_data=[data]), version))
    for version in range(4, 18):
        pair.answers(frame_of(FetchRequest(topics=[topic], max_bytes=1000), version))
    assert not taken
    assert pair.watcher.seen == seen + 25


def test_a_mistake_of_ours_is_answered_as_an_error(pair, monkeypatch, caplog):
    def fail(*arguments: object, **keywords: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("broker_stub.replica.partition.Partition.append", fail)
    data = TopicProduceData(
        name="orders", partition_data=[PartitionProduceData(index=0, records=batch(b"value"))]
    )
    request = ProduceRequest(acks=1, topic_data=[data])
    short, ordinary = pair.answers(frame_of(request, 9))
    assert short == ordinary
    response = pair.short.ask(request, 9)
    assert response.responses[0].partition_responses[0].error_code == -1
    assert "Produce" in caplog.text
