"""Our transactional clients on our broker, in both transaction versions."""

import threading
from collections.abc import Iterator

import pytest

from broker_stub import Broker
from pyclient import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from pyclient.errors import (
    CommitFailedError,
    InvalidTxnStateError,
    KafkaTimeoutError,
    ProducerFencedError,
)

OUT = TopicPartition("out", 0)


@pytest.fixture(params=[1, 2], ids=["TV1", "TV2"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(config={"transaction.version": request.param}) as running:
        running.create_topic("in", 1)
        running.create_topic("out", 1)
        yield running


@pytest.fixture
def producer(broker: Broker) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as made:
        made.init_transactions()
        yield made


@pytest.fixture(params=["read_committed", "read_uncommitted"])
def isolation_level(request: pytest.FixtureRequest) -> str:
    level: str = request.param
    return level


def reader(broker: Broker, isolation_level: str) -> KafkaConsumer:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        isolation_level=isolation_level,
        auto_offset_reset="earliest",
        consumer_timeout_ms=300,
    )
    consumer.assign([OUT])
    return consumer


def test_readers_see_what_their_isolation_level_says(
    broker: Broker, producer: KafkaProducer, isolation_level: str
) -> None:
    for number in range(4):
        producer.begin_transaction()
        producer.send("out", b"%d" % number)
        producer.flush()
        if number == 3:
            break  # it stays open
        if number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    is_committed = isolation_level == "read_committed"
    wanted = [b"0", b"2"] if is_committed else [b"0", b"1", b"2", b"3"]
    end = 6 if is_committed else 7
    with reader(broker, isolation_level) as consumer:
        assert [record.value for record in consumer] == wanted
        assert consumer.position(OUT) == consumer.end_offsets([OUT])[OUT] == end
        figures = consumer.metrics()["consumer-fetch-manager-metrics"]
        assert figures["records-lag-max"] == 0
    with reader(broker, isolation_level) as consumer:
        rows = []
        while consumer.position(OUT) < end:
            table = consumer.poll_arrow(timeout_ms=300)
            rows += table.column("value").to_pylist()
        assert rows == wanted


def test_offsets_are_committed_with_the_transaction_only(
    broker: Broker, producer: KafkaProducer
) -> None:
    partition = TopicPartition("in", 0)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for offset, commits in ((3, True), (7, False)):
            producer.begin_transaction()
            offsets = {partition: OffsetAndMetadata(offset, "", -1)}
            producer.send_offsets_to_transaction(offsets, "group")
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        assert admin.list_group_offsets({"group": [partition]})["group"][partition].offset == 3


@pytest.mark.parametrize("groups", [1, 2])
def test_stable_offsets_are_waited_for(
    broker: Broker, producer: KafkaProducer, groups: int
) -> None:
    partition = TopicPartition("in", 0)
    asked = {f"group {number}": [partition] for number in range(groups)}
    servers = broker.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers, default_api_timeout_ms=500) as hasty:
        producer.begin_transaction()
        for group in asked:
            offsets = {partition: OffsetAndMetadata(3, "mark", -1)}
            producer.send_offsets_to_transaction(offsets, group)
        with pytest.raises(KafkaTimeoutError):
            hasty.list_group_offsets(asked, require_stable=True)
        assert hasty.list_group_offsets(asked)["group 0"][partition].offset == -1
    producer.commit_transaction()
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        found = admin.list_group_offsets(asked, require_stable=True)
    assert [one[partition].offset for one in found.values()] == [3] * groups


def test_a_member_that_the_group_has_given_up_cannot_commit(
    broker: Broker, producer: KafkaProducer
) -> None:
    stale = ("group", 5, "somebody else")
    producer.begin_transaction()
    producer.send("out", b"v")
    with KafkaConsumer(
        "in", bootstrap_servers=broker.bootstrap_servers, group_id="group"
    ) as consumer:
        while not consumer.assignment():
            consumer.poll(timeout_ms=100)
        member = consumer.group_metadata()._replace(member_id=stale[2])
        with pytest.raises(CommitFailedError, match="no longer the member"):
            producer.send_offsets_to_transaction(
                {TopicPartition("in", 0): OffsetAndMetadata(1, "", -1)}, member
            )
    producer.abort_transaction()
    with producer.transaction():
        producer.send("out", b"next")
    with reader(broker, "read_committed") as consumer:
        assert [record.value for record in consumer] == [b"next"]


def test_the_second_producer_of_an_id_wins(broker: Broker, producer: KafkaProducer) -> None:
    producer.begin_transaction()
    producer.send("out", b"zombie")
    producer.flush()
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as second:
        second.init_transactions()
        with second.transaction():
            second.send("out", b"living")
        with pytest.raises(ProducerFencedError):
            producer.commit_transaction()
    with reader(broker, "read_committed") as consumer:
        assert [record.value for record in consumer] == [b"living"]


@pytest.mark.parametrize("commit", [True, False])
def test_another_client_ends_a_prepared_transaction(
    broker: Broker, producer: KafkaProducer, commit: bool
) -> None:
    producer.begin_transaction()
    producer.send("out", b"v")
    prepared = producer.prepare_transaction()
    producer.close()
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for _ in range(2):
            admin.end_transaction(prepared, commit=commit)
        with pytest.raises(InvalidTxnStateError):
            admin.end_transaction(prepared, commit=not commit)
    with reader(broker, "read_committed") as consumer:
        assert [record.value for record in consumer] == ([b"v"] if commit else [])


def test_several_threads_share_a_transaction(broker: Broker, producer: KafkaProducer) -> None:
    producer.begin_transaction()

    def send(number: int) -> None:
        for index in range(500):
            producer.send("out", b"%d-%d" % (number, index))

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.commit_transaction()
    with reader(broker, "read_committed") as consumer:
        assert len({record.value for record in consumer}) == 2_000
