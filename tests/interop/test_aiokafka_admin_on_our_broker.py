"""All that aiokafka's admin client has, on `python -m broker_stub`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError, OffsetOutOfRangeError

from tests.interop.aiokafka_client import Aiokafka
from tests.interop.foreign_records import TIMEOUT_SECONDS, Record
from tests.support.server_process import ServerProcess

UNKNOWN_TOPIC, INVALID_TOPIC, TOPIC_EXISTS, INVALID_CONFIG = 3, 17, 36, 40

_numbers = count()


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess() as running:
        yield running


Ask = Callable[[Callable[[AIOKafkaAdminClient], Awaitable[Any]]], Any]


@pytest.fixture
def ask(server: ServerProcess) -> Ask:
    """Call the admin client, by a new one each time: its answer."""

    def call(use: Callable[[AIOKafkaAdminClient], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            admin = AIOKafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
            await admin.start()
            try:
                return await use(admin)
            finally:
                await admin.close()

        return asyncio.run(asyncio.wait_for(run(), TIMEOUT_SECONDS))

    return call


@pytest.fixture
def topic(ask: Ask) -> str:
    """A topic of two partitions, and of one option of its own."""
    name = f"topic-{next(_numbers)}"
    new = NewTopic(name, 2, 1, topic_configs={"retention.ms": "1000000"})
    assert create(ask, new) == [(name, 0)]
    return name


def create(ask: Ask, new: NewTopic, **options: Any) -> list[tuple[str, int]]:
    """Topics and error codes."""
    answer = ask(lambda admin: admin.create_topics([new], **options))
    return [(name, code) for name, code, _ in answer.topic_errors]


def partitions(ask: Ask, topic: str) -> list[int]:
    (described,) = ask(lambda admin: admin.describe_topics([topic]))
    assert described["error_code"] == 0
    return sorted(one["partition"] for one in described["partitions"])


def changed_options(ask: Ask, topic: str) -> dict[str, str]:
    """What is set on the topic itself."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    (answer,) = ask(lambda admin: admin.describe_configs([resource]))
    ((error_code, _, _, name, entries),) = answer.resources
    assert (error_code, name) == (0, topic)
    by_topic = 1
    return {option: value for option, value, _, source, *_ in entries if source == by_topic}


def test_topics_are_created_as_asked(ask, topic):
    assert topic in ask(lambda admin: admin.list_topics())
    assert partitions(ask, topic) == [0, 1]
    assert changed_options(ask, topic) == {"retention.ms": "1000000"}


def test_a_topic_that_is_only_validated_is_not_there(ask):
    assert create(ask, NewTopic("tried", 1, 1), validate_only=True) == [("tried", 0)]
    assert "tried" not in ask(lambda admin: admin.list_topics())


def test_it_is_told_what_is_wrong_with_a_topic(ask, topic):
    assert create(ask, NewTopic(topic, 1, 1)) == [(topic, TOPIC_EXISTS)]
    assert create(ask, NewTopic("bad name", 1, 1)) == [("bad name", INVALID_TOPIC)]
    unknown = NewTopic("refused", 1, 1, topic_configs={"no.such.key": "1"})
    assert create(ask, unknown) == [("refused", INVALID_CONFIG)]


def test_topics_are_deleted_once(ask, topic):
    deleted = ask(lambda admin: admin.delete_topics([topic]))
    assert list(deleted.topic_error_codes) == [(topic, 0)]
    assert topic not in ask(lambda admin: admin.list_topics())
    deleted = ask(lambda admin: admin.delete_topics([topic]))
    assert list(deleted.topic_error_codes) == [(topic, UNKNOWN_TOPIC)]


def test_a_topic_grows_and_does_not_shrink(ask, topic):
    grown = ask(lambda admin: admin.create_partitions({topic: NewPartitions(4)}))
    assert [code for _, code, _ in grown.topic_errors] == [0]
    assert partitions(ask, topic) == [0, 1, 2, 3]
    with pytest.raises(InvalidPartitionsError):
        ask(lambda admin: admin.create_partitions({topic: NewPartitions(3)}))
    assert partitions(ask, topic) == [0, 1, 2, 3]


def test_a_configuration_is_replaced(ask, topic):
    new = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"segment.ms": "5000"})
    (answer,) = ask(lambda admin: admin.alter_configs([new]))
    assert [code for code, *_ in answer.resources] == [0]
    assert changed_options(ask, topic) == {"segment.ms": "5000"}


def test_a_configuration_that_makes_no_sense_is_refused(ask, topic):
    bad = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"segment.ms": "soon"})
    (answer,) = ask(lambda admin: admin.alter_configs([bad]))
    assert [code for code, *_ in answer.resources] == [INVALID_CONFIG]
    assert changed_options(ask, topic) == {"retention.ms": "1000000"}


def test_records_are_deleted(server, ask, topic):
    sent = [Record(0, None, b"value-%d" % index, (), 1_700_000_000_000) for index in range(10)]
    Aiokafka().produce(server.bootstrap_servers, topic, sent)
    partition = TopicPartition(topic, 0)
    deleted = ask(lambda admin: admin.delete_records({partition: RecordsToDelete(4)}))
    assert deleted == {partition: 4}
    left = Aiokafka().consume(server.bootstrap_servers, topic, 1, 6)
    assert left == {0: sent[4:]}
    with pytest.raises(OffsetOutOfRangeError):
        ask(lambda admin: admin.delete_records({partition: RecordsToDelete(11)}))


def test_the_cluster_is_described(server, ask):
    cluster = ask(lambda admin: admin.describe_cluster())
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == server.bootstrap_servers
    assert cluster["controller_id"] == broker["node_id"]


def test_groups_are_listed_and_described_with_their_offsets(server, ask, topic):
    partition = TopicPartition(topic, 1)

    async def commit() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=server.bootstrap_servers, group_id="group", enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([partition])
        await consumer.commit({partition: (7, "so far")})
        await consumer.stop()

    asyncio.run(asyncio.wait_for(commit(), TIMEOUT_SECONDS))
    no_protocol = ""  # nobody ever joined
    assert ("group", no_protocol) in ask(lambda admin: admin.list_consumer_groups())
    (described,) = ask(lambda admin: admin.describe_consumer_groups(["group"]))
    ((error_code, name, state, *_),) = described.groups
    assert (error_code, name, state) == (0, "group", "Empty")
    assert ask(lambda admin: admin.find_coordinator("group")) == 1
    offsets = ask(lambda admin: admin.list_consumer_group_offsets("group"))
    assert offsets[partition][:2] == (7, "so far")
