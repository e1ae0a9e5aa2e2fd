"""Committed offsets of groups on our broker: list, alter, reset, delete, lag; and members."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from broker_stub import Broker
from pyclient import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from pyclient.admin import (
    MemberToRemove,
    NewTopic,
    OffsetReset,
    OffsetShift,
    OffsetSpec,
    OffsetTimestamp,
)
from pyclient.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    NoError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
HOUR_MS = 3_600_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(config={"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2, 1)])
        yield admin


@pytest.fixture
def written_ms(broker: Broker, admin: KafkaAdminClient) -> int:
    """Ten records in each partition, one for each of the last ten hours."""
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for hours in range(10, 0, -1):
            for partition in (0, 1):
                at_ms = now_ms - hours * HOUR_MS
                producer.send("orders", b"x", partition=partition, timestamp_ms=at_ms)
    return now_ms


def commit(admin: KafkaAdminClient, first: int, second: int) -> None:
    offsets = {FIRST: OffsetAndMetadata(first, "note"), SECOND: OffsetAndMetadata(second)}
    assert admin.alter_group_offsets("billing", offsets) == {FIRST: NoError, SECOND: NoError}


def test_offsets_are_altered_and_listed(admin: KafkaAdminClient) -> None:
    commit(admin, 3, 5)
    wanted = {FIRST: OffsetAndMetadata(3, "note"), SECOND: OffsetAndMetadata(5)}
    for specs in ("billing", ["billing"], {"billing": None}, {"billing": [FIRST, SECOND]}):
        assert admin.list_group_offsets(specs) == {"billing": wanted}
    assert admin.list_consumer_group_offsets("billing") == wanted
    assert admin.list_consumer_group_offsets("billing", partitions=[FIRST]) == {
        FIRST: wanted[FIRST]
    }
    third = TopicPartition("orders", 2)
    missing = admin.list_group_offsets({"billing": [third], "nobody": None})
    assert missing == {"billing": {third: OffsetAndMetadata(-1)}, "nobody": {}}


def test_what_cannot_be_altered_is_an_error_of_its_partition(admin: KafkaAdminClient) -> None:
    nowhere = TopicPartition("nowhere", 0)
    offsets = {FIRST: OffsetAndMetadata(3), nowhere: OffsetAndMetadata(3)}
    assert admin.alter_group_offsets("billing", offsets) == {
        FIRST: NoError,
        nowhere: UnknownTopicOrPartitionError,
    }


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        (OffsetSpec.EARLIEST, 0),
        (OffsetSpec.LATEST, 10),
        (4, 4),
        (99, 10),
        (OffsetShift(2), 5),
        (OffsetShift(-2), 1),
        (OffsetShift(-99), 0),
        (timedelta(hours=4, minutes=30), 6),
        (timedelta(days=100_000), 0),
        (OffsetTimestamp(0), 0),
        (OffsetTimestamp(-5), 0),
        (OffsetTimestamp(2**60), 10),
    ],
)
def test_offsets_are_reset(
    admin: KafkaAdminClient, written_ms: int, target: object, offset: int
) -> None:
    commit(admin, 3, 3)
    there = OffsetReset(error=NoError, offset=offset)
    assert admin.reset_group_offsets("billing", {FIRST: target}, dry_run=True) == {FIRST: there}
    assert admin.list_group_offsets("billing")["billing"][FIRST].offset == 3
    assert admin.reset_group_offsets("billing", {FIRST: target}) == {FIRST: there}
    assert admin.list_group_offsets("billing")["billing"] == {
        FIRST: OffsetAndMetadata(offset, "note"),
        SECOND: OffsetAndMetadata(3),
    }
    for everything in ({"orders": target}, target):
        commit(admin, 3, 3)
        reset = admin.reset_group_offsets("billing", everything)
        assert reset == {FIRST: there, SECOND: there}


def test_offsets_are_reset_to_a_time_of_day(admin: KafkaAdminClient, written_ms: int) -> None:
    at = datetime.fromtimestamp(written_ms / 1000, UTC) - timedelta(hours=2, minutes=30)
    assert admin.reset_group_offsets("billing", {FIRST: at})[FIRST].offset == 8
    with pytest.raises(ValueError, match="no time zone"):
        admin.reset_group_offsets("billing", {FIRST: at.replace(tzinfo=None)})


def test_targets_that_cannot_be_are_refused_before_anything_changes(
    admin: KafkaAdminClient,
) -> None:
    with pytest.raises(ValueError, match="orders-0 has no committed offset to shift"):
        admin.reset_group_offsets("billing", {FIRST: OffsetShift(1), SECOND: 0})
    with pytest.raises(ValueError, match="cannot be negative"):
        admin.reset_group_offsets("billing", {FIRST: -5})
    with pytest.raises(TypeError, match="'soon' is no target of a reset"):
        admin.reset_group_offsets("billing", {FIRST: "soon"})  # type: ignore[dict-item]
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'oders'"):
        admin.reset_group_offsets("billing", {"oders": OffsetSpec.LATEST})
    assert admin.list_group_offsets("billing") == {"billing": {}}


def test_lag_is_told_in_records_and_in_time(
    admin: KafkaAdminClient, broker: Broker, written_ms: int
) -> None:
    assert admin.lag("billing") == {}
    commit(admin, 7, 10)
    lags = admin.lag("billing")
    first, second = lags[FIRST], lags[SECOND]
    assert (first.committed, first.end, first.lag) == (7, 10, 3)
    assert (second.committed, second.end, second.lag) == (10, 10, 0)
    assert first.time_lag_ms is not None
    assert 0 <= first.time_lag_ms - 3 * HOUR_MS < 60_000
    assert second["time_lag_ms"] == 0
    # Records that were deleted unread count, but the age is that of what is left.
    admin.delete_records({FIRST: 9})
    first = admin.lag("billing")[FIRST]
    assert (first.lag, round((first.time_lag_ms or 0) / HOUR_MS)) == (3, 1)


def test_lag_of_large_batches_is_told(admin: KafkaAdminClient, broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for partition in (0, 1):
            producer.send("orders", bytes(100_000), partition=partition, timestamp_ms=1_000)
    commit(admin, 0, 0)
    ages = [one.time_lag_ms for one in admin.lag("billing").values()]
    assert all(age is not None and age > 1_000_000_000_000 for age in ages)


def test_offsets_are_deleted(admin: KafkaAdminClient) -> None:
    with pytest.raises(GroupIdNotFoundError, match="group 'billing'"):
        admin.delete_group_offsets("billing", [FIRST])
    commit(admin, 3, 5)
    assert admin.delete_group_offsets("billing", [FIRST]) == {FIRST: NoError}
    assert admin.list_group_offsets("billing") == {"billing": {SECOND: OffsetAndMetadata(5)}}


@pytest.fixture
def consumer(broker: Broker, admin: KafkaAdminClient) -> Iterator[KafkaConsumer]:
    """A static member of the group, with both partitions."""
    with KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        group_instance_id="till",
        enable_auto_commit=False,
    ) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)
        consumer.commit({FIRST: OffsetAndMetadata(0)})
        yield consumer


def test_a_group_with_members_keeps_its_offsets(
    admin: KafkaAdminClient, consumer: KafkaConsumer
) -> None:
    assert admin.alter_group_offsets("billing", {FIRST: OffsetAndMetadata(1)}) == {
        FIRST: UnknownMemberIdError
    }
    reset = admin.reset_group_offsets("billing", {FIRST: 0})
    assert reset == {FIRST: {"error": UnknownMemberIdError, "offset": 0}}
    assert admin.delete_group_offsets("billing", [FIRST]) == {FIRST: GroupSubscribedToTopicError}


def test_members_are_described_and_removed(
    admin: KafkaAdminClient, consumer: KafkaConsumer
) -> None:
    described = admin.describe_groups(["billing"])["billing"]
    (member,) = described.members
    assert not isinstance(member.member_assignment, bytes)
    assert member.member_assignment.partitions() == [FIRST, SECOND]
    (old,) = admin.describe_consumer_groups(["billing"])
    assert (old.group, old.state, old.members[0].member_metadata.subscription) == (
        "billing",
        "Stable",
        ["orders"],
    )
    assert old.members[0].member_assignment.assignment == [("orders", [0, 1])]
    assert admin.list_consumer_groups() == [("billing", "consumer")]
    removed = admin.remove_group_members(
        "billing", [MemberToRemove(group_instance_id="till"), MemberToRemove("stranger")]
    )
    assert removed == {"till": NoError, "stranger": UnknownMemberIdError}
    assert admin.describe_groups(["billing"])["billing"].group_state == "Empty"
    removed = admin.remove_group_members("billing", [MemberToRemove(member.member_id)])
    assert removed == {member.member_id: UnknownMemberIdError}
    assert admin.delete_consumer_groups(["billing", "nobody"]) == [
        ("billing", NoError),
        ("nobody", GroupIdNotFoundError),
    ]


def test_members_need_an_id(admin: KafkaAdminClient) -> None:
    with pytest.raises(ValueError, match="needs a member_id or a group_instance_id"):
        admin.remove_group_members("billing", [MemberToRemove()])
