"""An admin program written for kafka-python, run with nothing but its import changed.

It runs twice, with `kafka` and with `pyclient`, each on a broker of its own; what it returns must
be the same, but for the forms that docs/drop-in.md names.
"""

from typing import Any

from broker_stub import Broker

PROGRAM = """
from {package} import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from {package} import OffsetAndMetadata
from {package}.admin import AlterConfigOp, ConfigResource, ConfigResourceType, NewTopic
from {package}.admin import MemberToRemove, NewPartitions, OffsetSpec, OffsetTimestamp
from {package}.errors import (
    InvalidPartitionsError, OffsetOutOfRangeError, TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)


def fails(error, function, *arguments):
    try:
        function(*arguments)
    except error:
        return True


def run(servers):
    seen = []
    admin = KafkaAdminClient(bootstrap_servers=[servers], client_id="the-admin")
    first = TopicPartition("orders", 0)

    topic = NewTopic("orders", num_partitions=2, replication_factor=1,
                     topic_configs={{"retention.ms": "60000"}})
    (made,) = admin.create_topics([topic], timeout_ms=10000)["topics"]
    seen.append((made["name"], made["error_code"], made["num_partitions"],
                 made["configs"]["retention.ms"]))
    admin.create_topics({{"payments": {{"num_partitions": 1}}}}, wait_for_metadata=True)
    admin.wait_for_topics(["orders", "payments"])
    seen.append(fails(TopicAlreadyExistsError, admin.create_topics, ["orders"]))
    seen.append(admin.create_topics(["orders"], raise_errors=False)["topics"][0]["error_code"])
    admin.create_partitions({{"orders": NewPartitions(3)}})
    admin.create_partitions({{"payments": 2}})
    seen.append(fails(InvalidPartitionsError, admin.create_partitions, {{"orders": 1}}))
    seen.append(sorted(admin.list_topics()))
    (described,) = admin.describe_topics(["orders"])
    seen.append([(one["partition_index"], one["leader_id"], one["replica_nodes"], one["isr_nodes"])
                 for one in described["partitions"]])
    seen.append(admin.describe_topics(["nowhere"])[0]["error_code"])

    orders = lambda configs=None: ConfigResource(ConfigResourceType.TOPIC, "orders", configs)
    seen.append(admin.alter_configs([orders({{"retention.ms": "5"}})]))
    seen.append(admin.alter_configs(
        [orders({{"cleanup.policy": (AlterConfigOp.APPEND, "compact")}})]))
    seen.append(admin.alter_configs([orders({{"segment.bytes": "1000000"}})], incremental=False))
    seen.append(admin.describe_configs([orders()]))
    seen.append(admin.describe_configs([orders({{"retention.ms": None}})], config_filter="all"))
    found = admin.describe_configs([orders()], config_filter="dynamic")
    seen.append(sorted(found["topic"]["orders"]))
    seen.append(admin.reset_configs([orders(["retention.ms"])]))
    seen.append(sorted(admin.describe_configs([orders()])["topic"]["orders"]))
    seen.append(fails(ValueError, admin.alter_configs, [orders({{"retention.m": "5"}})]))
    broker = ConfigResource("broker", "1")
    seen.append(admin.describe_configs([broker], config_filter="static"))

    producer = KafkaProducer(bootstrap_servers=servers)
    for number in range(10):
        producer.send("orders", b"x", key=b"k", partition=0, timestamp_ms=1000 + number)
    producer.flush()
    producer.close()
    seen.append(admin.delete_records({{first: 4}}))
    seen.append(admin.list_partition_offsets({{first: OffsetSpec.EARLIEST}}))
    seen.append(admin.list_partition_offsets({{first: 1006}}))
    seen.append(fails(OffsetOutOfRangeError, admin.delete_records, {{first: 99}}))

    consumer = KafkaConsumer("orders", bootstrap_servers=servers, group_id="billing",
                             auto_offset_reset="earliest")
    while not consumer.poll(timeout_ms=1000):
        pass
    consumer.commit()
    consumer.close()
    seen.append([(one["group_id"], one["protocol_type"]) for one in admin.list_groups()])
    group = admin.describe_groups(["billing"])["billing"]
    seen.append((group["group_state"], group["members"], group["error"]))
    plain = lambda offsets: {{key: (one.offset, one.metadata) for key, one in offsets.items()}}
    seen.append(plain(admin.list_group_offsets("billing")["billing"]))
    second = TopicPartition("orders", 1)
    wanted = {{first: OffsetAndMetadata(6, "note", -1), second: OffsetAndMetadata(0, "", -1)}}
    altered = admin.alter_group_offsets("billing", wanted)
    seen.append([(key, error.__name__) for key, error in altered.items()])
    seen.append(plain(admin.list_group_offsets({{"billing": [first, second]}})["billing"]))
    for target in (OffsetSpec.EARLIEST, OffsetTimestamp(1007), OffsetTimestamp(5000), 0, 8, 99):
        reset = admin.reset_group_offsets("billing", {{first: target}})
        seen.append([(key, one["error"].__name__, one["offset"]) for key, one in reset.items()])
        seen.append(plain(admin.list_group_offsets("billing")["billing"])[first])
    removed = admin.remove_group_members("billing", [MemberToRemove("nobody")])
    seen.append([(key, error.__name__) for key, error in removed.items()])
    deleted = admin.delete_group_offsets("billing", [second])
    seen.append([(key, error.__name__) for key, error in deleted.items()])
    seen.append(sorted(plain(admin.list_group_offsets("billing")["billing"])))
    seen.append(admin.delete_groups(["billing", "nobody"]))
    seen.append(sorted(admin.describe_features()))
    seen.append({{int(key): tuple(one) for key, one in admin.api_versions().items()}})
    seen.append(admin.get_broker_version_data(1).broker_version)

    cluster = admin.describe_cluster()
    seen.append((cluster["controller_id"], [one["broker_id"] for one in cluster["brokers"]]))
    (disks,) = admin.describe_log_dirs(["payments"])
    seen.append((disks["broker"], disks["log_dirs"][0]["topics"]))
    page = admin.describe_topic_partitions(["orders"], response_partition_limit=2)
    seen.append(([one["partition_index"] for one in page["topics"][0]["partitions"]],
                 page["next_cursor"]))
    deleted = admin.delete_topics(["orders", "payments"])["topics"]
    seen.append([one["error_code"] for one in deleted])
    seen.append(fails(UnknownTopicOrPartitionError, admin.delete_topics, ["orders"]))
    admin.close()
    return seen
"""


def run(package: str) -> Any:
    names: dict[str, Any] = {}
    exec(PROGRAM.format(package=package), names)
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        return names["run"](broker.bootstrap_servers)


def test_an_admin_program_for_kafka_python_gives_the_same_with_its_import_changed() -> None:
    theirs, ours = run("kafka"), run("pyclient")
    for their_step, our_step in zip(theirs, ours, strict=True):
        assert our_step == their_step
