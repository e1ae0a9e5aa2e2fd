"""kafka-python's module paths: `s/kafka/pyclient/` on a program's import lines is enough."""

import ast
import importlib
import pkgutil

import kafka
import pytest

from pyclient.compat.kafka_python import MODULES
from tests.support.source_tree import ROOT, Source, sources

IMPORT_LINES = """
import kafka
import kafka.errors
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from kafka import ConsumerGroupMetadata, IsolationLevel, OffsetSpec, TopicPartitionReplica
from kafka import DefaultSerializer, Deserializer, JsonSerializer, Serializer
from kafka import __version__
from kafka import errors
from kafka import errors as Errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.admin import NewPartitions, NewTopic
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.admin import MemberToRemove, OffsetTimestamp, UserScramCredentialUpsertion
from kafka.admin.acl_resource import ACL, ACLFilter, ResourcePatternFilter
from kafka.admin import ACL, ACLFilter, ACLOperation, ACLPermissionType, ResourcePattern
from kafka.admin.acl_resource import ACL, ACLFilter, ACLOperation, ResourcePattern, ResourceType
from kafka.admin.client import KafkaAdminClient
from kafka.admin.config_resource import ConfigResource, ConfigResourceType
from kafka.admin.new_partitions import NewPartitions
from kafka.admin.new_topic import NewTopic
from kafka.cluster import ClusterMetadata
from kafka.codec import has_gzip, has_lz4, has_snappy, has_zstd
from kafka.codec import gzip_decode, gzip_encode, snappy_decode, snappy_encode
from kafka.consumer import KafkaConsumer
from kafka.consumer.fetcher import ConsumerRecord
from kafka.consumer.group import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from kafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from kafka.errors import KafkaError, KafkaTimeoutError, NoBrokersAvailable
from kafka.errors import CommitFailedError, IllegalStateError, OffsetOutOfRangeError
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError
from kafka.errors import NotLeaderForPartitionError, MessageSizeTooLargeError
from kafka.future import Future
from kafka.metrics import KafkaMetric, MetricName
from kafka.partitioner import DefaultPartitioner, Partitioner, StickyPartitioner
from kafka.partitioner import murmur2
from kafka.partitioner.default import DefaultPartitioner, murmur2
from kafka.producer import KafkaProducer
from kafka.producer.future import FutureRecordMetadata, RecordMetadata
from kafka.producer.kafka import KafkaProducer
from kafka.record.abc import ABCRecord
from kafka.serializer import Deserializer, Serializer
from kafka.serializer.abstract import Deserializer, Serializer
from kafka.structs import BrokerMetadata, PartitionMetadata
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from kafka.version import __version__
""".strip().splitlines()
"""What programs for kafka-python 2 and 3 import, from its documentation and its package tree."""

REAL_ROOMS = {
    "",
    "admin",
    "cluster",
    "consumer",
    "consumer.group",
    "consumer.subscription_state",
    "errors",
    "metrics",
    "producer",
    "version",
}
"""Modules that hold this package's own code, under the name that kafka-python uses, too."""

NO_COUNTERPART = {
    "__main__": "a command line of its own: `python -m pyclient`",
    "admin.__main__": "the same",
    "admin._acls": "private",
    "admin._cluster": "private",
    "admin._configs": "private",
    "admin._groups": "private",
    "admin._partitions": "private",
    "admin._topics": "private",
    "admin._transactions": "private",
    "admin._users": "private",
    "benchmarks": "its own benchmarks",
    "cli": "its command line",
    "consumer.__main__": "the same",
    "coordinator.assignors.sticky.partition_movements": "internal",
    "coordinator.assignors.sticky.sorted_set": "internal",
    "coordinator.assignors.sticky.user_data": "internal",
    "coordinator.base": "internal",
    "coordinator.consumer": "internal",
    "coordinator.heartbeat": "internal",
    "coordinator.subscription": "internal",
    "metrics.": "the parts of its metrics; `metrics()` and `KafkaMetric` are there",
    "net": "its network loop",
    "producer.__main__": "the same",
    "producer.producer_batch": "internal",
    "producer.record_accumulator": "internal",
    "producer.sender": "internal",
    "producer.transaction_manager": "internal",
    "protocol": "its wire messages; here `pyclient.protocol` has its own",
    "record.": "its record batches; here `pyclient.records` has its own",
    "util": "internal",
    "vendor": "what it carries along",
}
"""kafka-python's modules, or the start of their names, that programs do without here."""


@pytest.mark.parametrize("line", IMPORT_LINES)
def test_an_import_line_works_with_the_package_replaced(line: str) -> None:
    exec(line.replace("kafka", "pyclient", 1), {})


def face_name(source: Source) -> str:
    path = source.path.removeprefix("pyclient/").removesuffix(".py").replace("/", ".")
    return path.removesuffix(".__init__")


FACES = [one for one in sources("pyclient") if face_name(one) in MODULES - REAL_ROOMS]


def test_every_module_path_is_a_module() -> None:
    assert {face_name(one) for one in FACES} == MODULES - REAL_ROOMS
    assert all(importlib.import_module(f"pyclient.{name}".rstrip(".")) for name in MODULES)


@pytest.mark.parametrize("face", FACES, ids=face_name)
def test_a_module_path_is_a_file_of_re_exports(face: Source) -> None:
    assert ast.get_docstring(face.tree)
    kinds = (ast.ImportFrom, ast.Assign)
    body = face.tree.body[1:]
    assert all(isinstance(node, kinds) for node in body)
    imported = [one.name for node in body if isinstance(node, ast.ImportFrom) for one in node.names]
    module = importlib.import_module(f"pyclient.{face_name(face)}")
    assert sorted(getattr(module, "__all__", [])) == sorted(imported)


def test_every_module_of_kafka_python_is_there_or_has_a_reason() -> None:
    theirs = [
        one.name.removeprefix("kafka.")
        for one in pkgutil.walk_packages(kafka.__path__, "kafka.")
        if not one.name.startswith(("kafka.benchmarks.", "kafka.cli.", "kafka.protocol."))
    ]
    assert len(theirs) > 60
    unknown = [
        name
        for name in theirs
        if name not in MODULES and not name.startswith(tuple(NO_COUNTERPART))
    ]
    assert not unknown


def test_the_listing_in_the_docs_is_whole() -> None:
    guide = (ROOT / "docs" / "drop-in.md").read_text(encoding="utf-8")
    tops = {name.partition(".")[0] for name in MODULES} - {"", "version"}
    assert not [name for name in sorted(tops) if f"`kafka.{name}`" not in guide]
