"""Our public surface against the installed kafka-python's, by inspection.

What kafka-python has and we have not is listed in docs/drop-in.md, under "What is not there", and
nowhere else: the list is read from there.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import kafka
import kafka.admin
import kafka.errors
import pytest

import pyclient
import pyclient.errors
from pyclient.config import admin, consumer, producer
from pyclient.config.definition import ConfigDefinition
from tests.support.source_tree import ROOT

GUIDE = (ROOT / "docs" / "drop-in.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("\n## What is not there\n")[2].partition("\n## ")[0]
LISTED = {
    name
    for row in re.findall(r"^\| (.+?) \| .+ \|$", SECTION, re.MULTILINE)
    for name in re.findall(r"`([\w.()=]+)`", row)
}

CLIENTS = ("KafkaProducer", "KafkaConsumer", "KafkaAdminClient")
CLASSES = (
    *CLIENTS,
    "ConsumerRebalanceListener",
    "DefaultSerializer",
    "Deserializer",
    "JsonSerializer",
    "Serializer",
    "cluster.ClusterMetadata",
    "coordinator.assignors.abstract.AbstractPartitionAssignor",
    "future.Future",
    "metrics.KafkaMetric",
    "metrics.MetricName",
    "partitioner.DefaultPartitioner",
    "partitioner.Partitioner",
    "partitioner.StickyPartitioner",
    "producer.future.FutureRecordMetadata",
    "serializer.DeserializeWrapper",
    "serializer.SerializeWrapper",
)
TUPLES = (
    "ConsumerGroupMetadata",
    "OffsetAndMetadata",
    "TopicPartition",
    "TopicPartitionReplica",
    "consumer.fetcher.ConsumerRecord",
    "producer.future.RecordMetadata",
    "structs.OffsetAndTimestamp",
)


def found(package: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"{package}.{module}".rstrip(".")), name)


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def missing_members(path: str) -> Iterator[str]:
    """Members and parameters of a class of kafka-python's that ours has not, or elsewhere."""
    theirs, ours = found("kafka", path), found("pyclient", path)
    owner = path.rpartition(".")[2]
    for name in dir(theirs):
        if name[0] == "_":
            continue
        if not hasattr(ours, name):
            yield f"{owner}.{name}"
        elif inspect.isroutine(member := getattr(theirs, name)):
            wanted, given = parameters(member), parameters(getattr(ours, name))
            lacking = [one for one in wanted if one not in given]
            yield from (f"{owner}.{name}({one}=)" for one in lacking)
            # Arguments may be given by position: the common ones stand in the same order.
            common = [one for one in wanted if one in given]
            assert given[: len(common)] == common, f"{owner}.{name}{given}, not {wanted}"


ATTRIBUTES_OF_INSTANCES = {"Future.exception", "Future.is_done", "Future.value"}


def test_every_name_of_the_package_is_there_or_listed() -> None:
    missing = {name for name in kafka.__all__ if not hasattr(pyclient, name)}
    assert missing <= LISTED


@pytest.mark.parametrize("path", CLASSES)
def test_every_method_and_parameter_is_there_or_listed(path: str) -> None:
    assert set(missing_members(path)) - ATTRIBUTES_OF_INSTANCES <= LISTED


@pytest.mark.parametrize("path", TUPLES)
def test_a_tuple_has_the_same_fields(path: str) -> None:
    theirs, ours = found("kafka", path), found("pyclient", path)
    assert ours._fields[: len(theirs._fields)] == theirs._fields


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("KafkaProducer", producer.DEFINITION),
        ("KafkaConsumer", consumer.DEFINITION),
        ("KafkaAdminClient", admin.DEFINITION),
    ],
)
def test_every_constructor_argument_is_taken_or_refused_by_name(
    name: str, definition: ConfigDefinition
) -> None:
    theirs = getattr(kafka, name).DEFAULT_CONFIG
    assert len(theirs) > 30
    assert not [option for option in theirs if not definition.knows(option)]


@pytest.mark.parametrize(
    ("name", "parse"),
    [
        ("KafkaProducer", producer.parse),
        ("KafkaConsumer", consumer.parse),
        ("KafkaAdminClient", admin.parse),
    ],
)
def test_the_default_configuration_can_be_given_back(name: str, parse: Any) -> None:
    defaults = getattr(pyclient, name).DEFAULT_CONFIG
    assert dict(parse(defaults)) == dict(parse({}))


def test_every_type_of_the_admin_package_is_there_or_listed() -> None:
    missing = {f"admin.{name}" for name in kafka.admin.__all__ if not hasattr(pyclient.admin, name)}
    assert missing <= LISTED


def test_every_error_is_there_with_its_number_flags_and_bases_or_listed() -> None:
    different = set()
    for name, theirs in vars(kafka.errors).items():
        if not (inspect.isclass(theirs) and issubclass(theirs, Exception)):
            continue
        ours = getattr(pyclient.errors, name, None)
        bases = [one.__name__ for one in theirs.__mro__ if one.__module__ == "kafka.errors"]
        if ours is None or not all(issubclass(ours, getattr(pyclient.errors, b)) for b in bases):
            different.add(f"errors.{name}")
            continue
        flags = ("errno", "retriable")
        if any(getattr(theirs, one, None) != getattr(ours, one, None) for one in flags):
            different.add(f"errors.{name}")
    assert different <= LISTED


def test_the_list_names_nothing_that_is_there() -> None:
    missing = {one for path in CLASSES for one in missing_members(path)}
    extra = {one for one in LISTED if one[0].isupper() and "." in one} - missing
    assert not extra


@pytest.mark.parametrize(
    "name", sorted(one for one in LISTED if one.startswith(("KafkaProducer.", "KafkaConsumer.")))
)
def test_a_method_that_is_not_there_is_refused_by_name(name: str) -> None:
    owner, _, member = name.partition(".")
    client = object.__new__ if owner == "KafkaConsumer" else pyclient.KafkaProducer.__new__
    made = client(getattr(pyclient, owner))
    if not member.islower() or "(" in member:
        return  # a constant, or a parameter: Python refuses it by name
    with pytest.raises(AttributeError, match=rf"{owner} has no method {member}\(\): .+drop-in"):
        getattr(made, member)
