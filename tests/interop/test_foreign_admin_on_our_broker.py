"""Topics and configurations, by foreign admin clients, on `python -m broker_stub`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from kafka.admin import ConfigResource as PythonConfigResource
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

from tests.support.server_process import ServerProcess

TIMEOUT_SECONDS = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    with ServerProcess("--data-dir", folder) as running:
        yield running


@pytest.fixture(scope="module")
def confluent(server: ServerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": server.bootstrap_servers})


@pytest.fixture
def kafka_python(server: ServerProcess) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    yield admin
    admin.close()


def cluster_id(folder: Path) -> str:
    """The id that the broker's folder bears."""
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]


def failure(futures: dict) -> int:
    (future,) = futures.values()
    with pytest.raises(KafkaException) as raised:
        future.result(TIMEOUT_SECONDS)
    return raised.value.args[0].code()


def test_confluent_creates_describes_and_deletes_topics(server, confluent):
    topic = NewTopic("made", 3, 1, config={"retention.ms": "1000"})
    confluent.create_topics([topic])["made"].result(TIMEOUT_SECONDS)
    listed = confluent.list_topics(timeout=TIMEOUT_SECONDS)
    assert sorted(listed.topics["made"].partitions) == [0, 1, 2]
    assert f"{listed.brokers[1].host}:{listed.brokers[1].port}" == server.bootstrap_servers
    resource = ConfigResource(ConfigResource.Type.TOPIC, "made")
    (future,) = confluent.describe_configs([resource]).values()
    entries = future.result(TIMEOUT_SECONDS)
    assert entries["retention.ms"].value == "1000"
    assert not entries["retention.ms"].is_default
    assert entries["max.message.bytes"].value == "1048588"
    assert entries["max.message.bytes"].is_default
    confluent.delete_topics(["made"])["made"].result(TIMEOUT_SECONDS)
    assert "made" not in confluent.list_topics(timeout=TIMEOUT_SECONDS).topics


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("bad name", 1, 1), 17),
        (NewTopic("refused", 1, 3), 38),
        (NewTopic("refused", 1, 1, config={"no.such.key": "1"}), 40),
    ],
)
def test_confluent_is_told_what_is_wrong_with_a_topic(confluent, topic, code):
    assert failure(confluent.create_topics([topic])) == code


def test_confluent_is_told_of_topics_that_exist_or_do_not(confluent):
    confluent.create_topics([NewTopic("twice", 1, 1)])["twice"].result(TIMEOUT_SECONDS)
    assert failure(confluent.create_topics([NewTopic("twice", 1, 1)])) == 36
    assert failure(confluent.delete_topics(["missing"])) == 3


def test_confluent_describes_the_cluster(folder, confluent):
    cluster = confluent.describe_cluster().result(TIMEOUT_SECONDS)
    assert cluster.cluster_id == cluster_id(folder)
    assert [node.id for node in cluster.nodes] == [1]


def test_kafka_python_creates_describes_and_deletes_topics(kafka_python):
    kafka_python.create_topics(
        [PythonNewTopic("theirs", 2, 1, topic_configs={"segment.bytes": "4096"})]
    )
    assert "theirs" in kafka_python.list_topics()
    with pytest.raises(TopicAlreadyExistsError):
        kafka_python.create_topics([PythonNewTopic("theirs", 2, 1)])
    resource = PythonConfigResource(ConfigResourceType.TOPIC, "theirs")
    described = kafka_python.describe_configs([resource])
    assert "4096" in str(described)
    kafka_python.delete_topics(["theirs"])
    with pytest.raises(UnknownTopicOrPartitionError):
        kafka_python.delete_topics(["theirs"])


def test_kafka_python_describes_the_cluster(folder, kafka_python):
    cluster = kafka_python.describe_cluster()
    assert cluster["cluster_id"] == cluster_id(folder)
