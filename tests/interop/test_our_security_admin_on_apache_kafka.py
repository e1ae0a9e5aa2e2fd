"""Our admin client on Apache Kafka 4.3: what our broker has no feature for.

Access control lists, SCRAM users, quotas, transactions, log directories, features. The node has an
authorizer that lets everybody in, and two log directories.
"""

import json
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from kafka import KafkaProducer as TransactionalProducer

from pyclient import KafkaAdminClient, TopicPartition, TopicPartitionReplica
from pyclient.admin import (
    ACL,
    ANY,
    AbortTransactionSpec,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ClientQuotaAlteration,
    NewTopic,
    OffsetSpec,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    TransactionState,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from pyclient.errors import (
    InvalidProducerEpochError,
    InvalidUpdateVersionError,
    LogDirNotFoundError,
    NoError,
    SecurityDisabledError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.integration.broker_stub.raw_client import RawClient
from tests.interop.apache_kafka import ApacheKafka, apache_kafka
from tests.support.admin_guide import run_example
from tests.support.batches import build_batch, numbered_records
from tests.support.command_line import Shell

Found = TypeVar("Found")
ORDERS = TopicPartition("orders", 0)
ANYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


@pytest.fixture(scope="module")
def secured(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    folder = tmp_path_factory.mktemp("secured")
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "log.dirs": f"{folder}/first,{folder}/second",
        # So that a producer can leave a transaction open that no coordinator knows.
        "transaction.partition.verification.enable": "false",
    }
    with apache_kafka(folder, config) as node:
        yield node


@pytest.fixture
def admin(secured: ApacheKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=secured.bootstrap_servers) as admin:
        admin.create_topics(["orders"], raise_errors=False)
        admin.wait_for_topics(["orders"])
        yield admin


def eventually(look: Callable[[], Found], is_there: Callable[[Found], bool]) -> Found:
    """Brokers learn of changes a moment after the controller has made them."""
    for _ in range(1_000):
        found = look()
        if is_there(found):
            return found
    raise AssertionError(f"it stays {found}")


def test_the_guides_example_of_security_runs(
    admin: KafkaAdminClient, secured: ApacheKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    run_example("Users, access, quotas", secured.bootstrap_servers)
    assert capsys.readouterr().out.splitlines() == ["4096", "1"]


def acl(user: str, operation: ACLOperation, pattern: ResourcePattern) -> ACL:
    return ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, pattern)


def test_entries_are_created_described_and_deleted(admin: KafkaAdminClient) -> None:
    bills = ResourcePattern(ResourceType.TOPIC, "bills", ACLResourcePatternType.PREFIXED)
    reads, writes = (acl("bob", one, bills) for one in (ACLOperation.READ, ACLOperation.WRITE))
    # Only a cluster can be created in: the second entry makes no sense, the third is there twice.
    wrong = acl("bob", ACLOperation.CREATE_TOKENS, ResourcePattern(ResourceType.GROUP, "bills"))
    created = admin.create_acls([reads, wrong, writes, reads])
    assert [one for one in created.succeeded if one != wrong] == [reads, writes, reads]
    of_bob = ACLFilter(
        "User:bob",
        None,
        ACLOperation.ANY,
        ACLPermissionType.ANY,
        ResourcePatternFilter(ResourceType.TOPIC, "bills-2026", ACLResourcePatternType.MATCH),
    )
    found, error = eventually(lambda: admin.describe_acls(of_bob), lambda found: len(found[0]) == 2)
    assert (set(found), error) == ({reads, writes}, NoError)
    of_nobody = ACLFilter(
        "User:nobody", None, ACLOperation.ANY, ACLPermissionType.ANY, of_bob.resource_pattern
    )
    deleted, nothing = admin.delete_acls([of_bob, of_nobody])
    assert (deleted[0], set(deleted[1]), deleted[2]) == (of_bob, {reads, writes}, NoError)
    assert nothing == (of_nobody, [], NoError)
    eventually(lambda: admin.describe_acls(of_bob), lambda found: not found[0])


def test_entries_on_the_command_line(
    admin: KafkaAdminClient,
    secured: ApacheKafka,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shell = Shell(secured, capfd, monkeypatch)
    created = shell("acls", "create", "--topic", "cli-", "--prefixed", "--allow", "carol", "-o",
                    "read", "-o", "describe", "--json")  # fmt: skip
    assert [row["operation"] for row in created.json] == ["describe", "read"]
    listing = ("acls", "list", "--topic", "cli-orders", "--match", "--principal", "carol", "--json")
    found = eventually(lambda: shell(*listing).json, lambda rows: len(rows) == 2)
    assert {(row["pattern"], row["name"], row["permission"]) for row in found} == {
        ("prefixed", "cli-", "allow")
    }
    delete = ("acls", "delete", "--topic", "cli-", "--principal", "carol")
    assert shell(*delete, "--dry-run").out.count("User:carol") == 2
    assert shell(*delete).err == "2 entries deleted.\n"
    eventually(lambda: shell(*listing).json, lambda rows: not rows)


def test_entries_need_an_authorizer(apache: ApacheKafka) -> None:
    entry = acl("bob", ACLOperation.READ, ResourcePattern(ResourceType.TOPIC, "bills"))
    with KafkaAdminClient(bootstrap_servers=apache.bootstrap_servers) as admin:
        with pytest.raises(SecurityDisabledError, match="No Authorizer is configured"):
            admin.describe_acls(ANYTHING)
        created = admin.create_acls([entry])
        assert (created["succeeded"], created["failed"]) == ([], [SecurityDisabledError])
        assert "User:bob" in str(created.errors[entry])


def test_users_are_created_described_and_deleted(admin: KafkaAdminClient) -> None:
    weak = UserScramCredentialUpsertion("bob", "SCRAM-SHA-256", b"secret", 8192)
    changes = [
        weak,
        UserScramCredentialDeletion("carol", "SCRAM-SHA-256"),
        UserScramCredentialUpsertion("dave", "scram-sha-256", "secret", iterations=1),
    ]
    altered = admin.alter_user_scram_credentials(changes)
    assert altered["bob"] is None
    strong = UserScramCredentialUpsertion("bob", ScramMechanism.SCRAM_SHA_512, "secret")
    assert admin.alter_user_scram_credentials([strong]) == {"bob": None}
    # Apache Kafka takes one change of a user at a time.
    twice = admin.alter_user_scram_credentials([strong, weak])
    assert "DUPLICATE_RESOURCE" in str(twice["bob"])
    assert "RESOURCE_NOT_FOUND" in str(altered["carol"])
    assert "UNACCEPTABLE_CREDENTIAL" in str(altered["dave"])
    found = eventually(
        admin.describe_user_scram_credentials,
        lambda found: "bob" in found and len(found["bob"].credential_infos) == 2,
    )
    assert found["bob"] == {
        "error": None,
        "credential_infos": [
            {"mechanism": ScramMechanism.SCRAM_SHA_256, "iterations": 8192},
            {"mechanism": ScramMechanism.SCRAM_SHA_512, "iterations": 4096},
        ],
    }
    assert "carol" in str(admin.describe_user_scram_credentials(["carol"])["carol"].error)
    for mechanism in ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512:
        gone = UserScramCredentialDeletion("bob", mechanism)
        assert admin.alter_user_scram_credentials([gone]) == {"bob": None}
    eventually(admin.describe_user_scram_credentials, lambda found: "bob" not in found)


def test_quotas_are_set_described_and_removed(admin: KafkaAdminClient) -> None:
    bob, everybody = {"user": "bob", "client-id": "till"}, {"user": None}
    altered = admin.alter_client_quotas(
        [
            ClientQuotaAlteration(bob, {"producer_byte_rate": 5000, "request_percentage": 50}),
            ClientQuotaAlteration(everybody, {"consumer_byte_rate": 7000}),
            ClientQuotaAlteration({"user": "bob"}, {"happiness": 5}),
        ]
    )
    errors = [one.error for one in altered]
    assert errors[:2] == [None, None]
    assert "INVALID_REQUEST" in str(errors[2])
    (found,) = eventually(
        lambda: admin.describe_client_quotas({"user": "bob", "client-id": ANY}), bool
    )
    assert found == {
        "entity": bob,
        "quotas": {"producer_byte_rate": 5000.0, "request_percentage": 50.0},
    }
    (default,) = admin.describe_client_quotas(everybody, strict=True)
    assert (default.entity, default.quotas) == (everybody, {"consumer_byte_rate": 7000.0})
    assert admin.describe_client_quotas({"user": "bob"}, strict=True) == []
    admin.alter_client_quotas([ClientQuotaAlteration(everybody, {"consumer_byte_rate": 1})], True)
    assert admin.describe_client_quotas(everybody)[0].quotas == {"consumer_byte_rate": 7000.0}
    admin.alter_client_quotas(
        [
            ClientQuotaAlteration(bob, {"producer_byte_rate": None, "request_percentage": None}),
            ClientQuotaAlteration(everybody, {"consumer_byte_rate": None}),
        ]
    )
    for entity in (bob, everybody):
        eventually(lambda: admin.describe_client_quotas(entity), lambda found: not found)  # noqa: B023


def test_authorized_operations_are_told(admin: KafkaAdminClient) -> None:
    assert "ALTER_CONFIGS" in (admin.describe_cluster().cluster_authorized_operations or ())
    (topic,) = admin.describe_topics(["orders"], include_authorized_operations=True)
    assert {"READ", "WRITE", "DELETE"} <= set(topic.topic_authorized_operations or ())
    assert admin.describe_topics(["orders"])[0].topic_authorized_operations is None
    group = admin.describe_groups(["nobody"], include_authorized_operations=True)["nobody"]
    # A group that does not exist is an error from version 6 on.
    assert (group.group_state, group.error is not None) == ("Dead", True)


def test_replicas_move_between_log_directories(
    admin: KafkaAdminClient, secured: ApacheKafka
) -> None:
    replica = TopicPartitionReplica("orders", 0, 1)

    def where() -> list[str]:
        (disks,) = admin.describe_log_dirs({"orders": [0]})
        return [
            one.log_dir.rsplit("/", 1)[1]
            for one in disks.log_dirs
            for topic in one.topics
            if not any(partition.is_future_key for partition in topic.partitions)
        ]

    (now,) = where()
    other = {"first": "second", "second": "first"}[now]
    moved = admin.alter_replica_log_dirs({replica: f"{secured.folder}/{other}"})
    assert moved == {replica: NoError}
    eventually(where, lambda found: found == [other])
    nowhere = TopicPartitionReplica("nowhere", 0, 1)
    assert admin.alter_replica_log_dirs(
        {replica: "/nowhere", nowhere: f"{secured.folder}/first"}
    ) == {replica: LogDirNotFoundError, nowhere: UnknownTopicOrPartitionError}


def test_features_are_updated(admin: KafkaAdminClient) -> None:
    lowest, highest = admin.describe_features()["group.version"]["supported"]
    assert (lowest, highest) == (0, 1)
    assert admin.update_features({"group.version": ("safe_downgrade", 0)}, validate_only=True) == {
        "group.version": "OK"
    }
    assert admin.describe_features()["group.version"]["finalized"] == (1, 1)
    admin.update_features({"group.version": ("safe_downgrade", 0)})
    eventually(admin.describe_features, lambda found: "finalized" not in found["group.version"])
    assert admin.update_features({"group.version": 1}) == {"group.version": "OK"}
    eventually(admin.describe_features, lambda found: "finalized" in found["group.version"])
    with pytest.raises(InvalidUpdateVersionError, match=r"group\.version"):
        admin.update_features({"group.version": 99})


def test_versions_are_told(admin: KafkaAdminClient) -> None:
    served = admin.api_versions()
    assert served[InitProducerIdRequest.api_key or 0].highest >= 5
    data = admin.get_broker_version_data(1)
    assert (data.broker_version, data.api_versions) == ((4, 3), served)
    assert data.api_version(InitProducerIdRequest) == 5


def test_transactions_are_listed_and_described(
    admin: KafkaAdminClient, secured: ApacheKafka
) -> None:
    producer = TransactionalProducer(
        bootstrap_servers=secured.bootstrap_servers, transactional_id="till-1"
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"x", partition=0).get(timeout=30)
        (listed,) = admin.list_transactions(state_filters=["Ongoing"])[1]
        assert (listed.transactional_id, listed.state) == ("till-1", TransactionState.ONGOING)
        assert admin.list_transactions([1], transactional_id_pattern="till-.*")[1] == [listed]
        assert admin.list_transactions(duration_filter_ms=3_600_000) == {1: []}
        assert admin.list_transactions(producer_id_filters=[listed.producer_id + 1]) == {1: []}
        with pytest.raises(ValueError, match="no such transaction states: Asleep"):
            admin.list_transactions(state_filters=["Asleep"])
        described = admin.describe_transactions(["till-1"])["till-1"]
        assert (described.coordinator_id, described.state) == (1, TransactionState.ONGOING)
        assert described.topic_partitions == {ORDERS}
        (open_one,) = [
            one
            for one in admin.describe_producers([ORDERS])[ORDERS].active_producers
            if one.producer_id == described.producer_id
        ]
        assert open_one.current_transaction_start_offset >= 0
        # Five minutes are added, so this is a limit of no time at all.
        (hanging,) = admin.find_hanging_transactions(max_transaction_timeout_ms=-300_000)
        assert (hanging.transactional_id, hanging["state"]) == ("till-1", "Ongoing")
        assert admin.find_hanging_transactions() == []
        producer.commit_transaction()
    finally:
        producer.close()
    with pytest.raises(TransactionalIdNotFoundError, match="transactional id 'nobody'"):
        admin.describe_transactions(["nobody", "till-1"])


def test_a_transaction_that_no_coordinator_knows_is_found_and_aborted(
    admin: KafkaAdminClient, secured: ApacheKafka
) -> None:
    admin.create_topics([NewTopic("stuck", 1, 1)], wait_for_metadata=True)
    stuck = TopicPartition("stuck", 0)
    with RawClient(secured.port) as client:
        producer = eventually(  # a new broker has to get a block of ids first
            lambda: client.ask(InitProducerIdRequest(transactional_id=None), 4),
            lambda answer: answer.error_code == 0,
        )
        batch = build_batch(
            numbered_records(3),
            transactional=True,
            producer_id=producer.producer_id,
            producer_epoch=3,
            base_sequence=0,
        )
        data = PartitionProduceData(index=0, records=batch)
        request = ProduceRequest(
            transactional_id="ghost",
            acks=-1,
            timeout_ms=5000,
            topic_data=[TopicProduceData(name="stuck", partition_data=[data])],
        )
        assert client.ask(request, 9).responses[0].partition_responses[0].error_code == 0

    def stable_end() -> int:
        return admin.list_partition_offsets({stuck: OffsetSpec.LATEST}, "read_committed")[
            stuck
        ].offset

    assert stable_end() == 0
    (hanging,) = admin.find_hanging_transactions(max_transaction_timeout_ms=-300_000)
    assert (hanging.transactional_id, hanging.coordinator_id) == (None, None)
    assert hanging.topic_partitions == [stuck]
    stale = AbortTransactionSpec(stuck, hanging.producer_id, hanging.producer_epoch - 1)
    with pytest.raises(InvalidProducerEpochError, match="stuck-0"):
        admin.abort_transaction(stale)
    admin.abort_transaction(stale._replace(producer_epoch=hanging.producer_epoch))
    assert stable_end() == 4  # three records and the marker
    assert admin.find_hanging_transactions(max_transaction_timeout_ms=-300_000) == []


def test_results_serialize_as_dicts(admin: KafkaAdminClient) -> None:
    described = admin.describe_cluster()
    assert json.loads(json.dumps(described))["brokers"][0]["broker_id"] == 1
    with pytest.raises(UnknownTopicOrPartitionError, match="topic 'nowhere'"):
        admin.describe_producers([ORDERS, TopicPartition("nowhere", 0)])
