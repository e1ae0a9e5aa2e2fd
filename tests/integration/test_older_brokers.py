"""Every client against our broker playing older ones: the features they had, in their versions."""

from collections.abc import Iterator

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyclient.admin import ConfigResource, NewTopic, OffsetSpec
from pyclient.errors import KafkaError, UnsupportedVersionError
from pyclient.net.scripted import ScriptedNetwork
from pyclient.protocol.messages.create_topics import CreateTopicsRequest
from pyclient.protocol.messages.fetch import FetchRequest
from pyclient.protocol.messages.join_group import JoinGroupRequest
from pyclient.protocol.messages.metadata import MetadataRequest
from pyclient.protocol.messages.offset_commit import OffsetCommitRequest
from pyclient.protocol.messages.offset_fetch import OffsetFetchRequest
from pyclient.protocol.messages.produce import ProduceRequest
from pyclient.protocol.registry import API_NAMES, request_class
from tests.support.older_brokers import HIGHEST, play

ORDERS = TopicPartition("orders", 0)
HAS_SINGLE_CHANGES = {"2.4", "2.8", "3.9"}


@pytest.fixture(params=list(HIGHEST))
def release(request: pytest.FixtureRequest) -> str:
    release: str = request.param
    return release


@pytest.fixture
def broker(release: str) -> Iterator[Broker]:
    with Broker() as broker:
        play(broker, release)
        yield broker
        for api_key, name in API_NAMES.items():
            for one in broker.requests.received(request_class(api_key)):
                assert one.api_version <= HIGHEST[release][name]


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2, 1)])
        yield admin


def versions(broker: Broker, *requests: type) -> dict[str, int]:
    """The version in which each request came first."""
    return {
        one.__name__.removesuffix("Request"): broker.requests.received(one)[0].api_version
        for one in requests
    }


@pytest.mark.parametrize("codec", [None, "gzip", "zstd"])
def test_records_are_sent_in_order_and_once(
    admin: KafkaAdminClient, broker: Broker, release: str, codec: str | None
) -> None:
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, compression_type=codec
    ) as producer:
        futures = [
            producer.send("orders", b"%d" % number, partition=0, headers=[("n", b"1")])
            for number in range(100)
        ]
    assert [one.get(timeout=10).offset for one in futures] == list(range(100))
    wanted = {"Produce": HIGHEST[release]["Produce"]}
    assert versions(broker, ProduceRequest) == wanted
    batch = broker.requests.of(ProduceRequest)[0]
    assert batch.acks == -1


def test_a_group_reads_commits_and_goes_on(
    admin: KafkaAdminClient, broker: Broker, release: str
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(20):
            producer.send("orders", b"%d" % number, partition=0)
    assert [read(broker, 10), read(broker, 10)] == [
        [b"%d" % number for number in range(10)],
        [b"%d" % number for number in range(10, 20)],
    ]
    used = versions(broker, FetchRequest, JoinGroupRequest, OffsetCommitRequest, OffsetFetchRequest)
    assert used == {api: HIGHEST[release][api] for api in used}


def read(broker: Broker, count: int) -> list[bytes]:
    """So many records of the topic, as the group's only member, and committed."""
    values: list[bytes] = []
    with KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=count,
    ) as consumer:
        while len(values) < count:
            for records in consumer.poll(timeout_ms=1_000).values():
                values += [record.value for record in records]
        consumer.commit()
    return values


def test_a_consumer_finds_its_place_by_time(admin: KafkaAdminClient, broker: Broker) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(10):
            producer.send("orders", b"%d" % number, partition=0, timestamp_ms=1_000 + number)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        found = consumer.offsets_for_times({ORDERS: 1_004})
        assert found[ORDERS].offset == 4
        assert consumer.end_offsets([ORDERS]) == {ORDERS: 10}


def test_topics_are_managed(admin: KafkaAdminClient, broker: Broker, release: str) -> None:
    assert admin.list_topics() == ["orders"]
    admin.create_partitions({"orders": 3})
    admin.wait_for_topics(["orders"])
    assert len(admin.describe_topics(["orders"])[0]["partitions"]) == 3
    admin.delete_topics(["orders"])
    assert admin.list_topics() == []
    used = versions(broker, CreateTopicsRequest, MetadataRequest)
    assert used == {api: HIGHEST[release][api] for api in used}


def test_configurations_are_changed_one_way_or_another(
    admin: KafkaAdminClient, release: str
) -> None:
    for change in ({"retention.ms": 5}, {"segment.bytes": 1_000_000}):
        resource = ConfigResource("topic", "orders", change)
        assert admin.alter_configs([resource]) == {"topic": {"orders": "OK"}}
    found = admin.describe_configs([ConfigResource("topic", "orders")])
    assert found["topic"]["orders"].keys() == {"retention.ms", "segment.bytes"}
    admin.reset_configs([ConfigResource("topic", "orders", ["retention.ms"])])
    found = admin.describe_configs([ConfigResource("topic", "orders")])
    assert found["topic"]["orders"].keys() == {"segment.bytes"}
    resource = ConfigResource("topic", "orders", {"cleanup.policy": ("append", "compact")})
    if release in HAS_SINGLE_CHANGES:
        assert admin.alter_configs([resource]) == {"topic": {"orders": "OK"}}
    else:
        with pytest.raises(ValueError, match=r"cleanup\.policy can't be changed by append"):
            admin.alter_configs([resource])


def test_the_cluster_its_records_and_its_groups_are_managed(
    admin: KafkaAdminClient, broker: Broker
) -> None:
    assert [one["broker_id"] for one in admin.describe_cluster()["brokers"]] == [1]
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for _ in range(10):
            producer.send("orders", b"book", partition=0)
    assert admin.delete_records({ORDERS: 4})[ORDERS]["low_watermark"] == 4
    assert admin.list_partition_offsets({ORDERS: OffsetSpec.EARLIEST})[ORDERS].offset == 4
    assert admin.describe_log_dirs(["orders"])[0]["log_dirs"][0]["topics"]
    read(broker, 6)
    assert [one["group_id"] for one in admin.list_groups()] == ["billing"]
    assert admin.describe_groups(["billing"])["billing"]["group_state"] == "Empty"
    assert admin.delete_groups(["billing"]) == {"billing": "OK"}


@pytest.mark.parametrize("release", ["2.1"], indirect=True)
def test_what_an_old_broker_cannot_do_is_an_error_that_names_both_ranges(
    admin: KafkaAdminClient,
) -> None:
    with pytest.raises(UnsupportedVersionError, match="versions 4 to 7, the broker serves 2 to 3"):
        admin.create_topics(["by-default"])
    with pytest.raises(UnsupportedVersionError, match="versions 7 to 11, the broker serves 1 to 4"):
        admin.list_partition_offsets({ORDERS: OffsetSpec.MAX_TIMESTAMP})
    with pytest.raises(UnsupportedVersionError, match="versions 4 to 5, the broker serves 0 to 2"):
        admin.list_groups(states_filter=["Stable"])
    with pytest.raises(UnsupportedVersionError, match="not serve DescribeTopicPartitionsRequest"):
        admin.describe_topic_partitions(["orders"])


# Before 0.11 a record batch had another format: nothing that could be written for it here.


@pytest.fixture
def ancient() -> ScriptedNetwork:
    """A broker of 0.10."""
    network = ScriptedNetwork()
    broker = network.add_broker(1)
    network.add_topic("orders")
    broker.versions |= {0: (0, 2), 1: (0, 3)}
    return network


def test_a_producer_says_that_a_broker_is_too_old(ancient: ScriptedNetwork) -> None:
    with KafkaProducer(
        bootstrap_servers="broker1", environment=ancient, enable_idempotence=False
    ) as producer:
        future = producer.send("orders", b"book")
        with pytest.raises(
            UnsupportedVersionError,
            match=r"ProduceRequest: this one can be sent in versions 3 to .*serves 0 to 2",
        ):
            future.get(timeout=10)


def test_a_consumer_says_that_a_broker_is_too_old(ancient: ScriptedNetwork) -> None:
    with KafkaConsumer(bootstrap_servers="broker1", environment=ancient) as consumer:
        consumer.assign([ORDERS])
        consumer.seek(ORDERS, 0)
        with pytest.raises(
            KafkaError,
            match=r"FetchRequest: this one can be sent in versions 4 to .*serves 0 to 3",
        ):
            consumer.poll(timeout_ms=10_000)
