"""The consumer's record keeps kafka-python's contract, on both twins."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref
from types import ModuleType
from typing import Any

import pytest
from kafka.consumer.fetcher import ConsumerRecord as KafkaPythonRecord

from pyclient import _twin

FIELDS = (
    *("topic", 3, 4, 1 << 40, 1_700_000_000_000, 0, b"key", b"value"),
    *([("name", b"1"), ("none", None)], None, 3, 5, 9),
)


def test_it_has_kafka_pythons_fields_in_its_order(twin: ModuleType) -> None:
    assert twin.ConsumerRecord._fields == KafkaPythonRecord._fields
    record = twin.ConsumerRecord(*FIELDS)
    assert [getattr(record, name) for name in record._fields] == list(FIELDS)


def test_it_equals_and_prints_as_kafka_pythons(twin: ModuleType) -> None:
    record, theirs = twin.ConsumerRecord(*FIELDS), KafkaPythonRecord(*FIELDS)
    assert record == theirs
    assert theirs == record
    assert repr(record) == repr(theirs)
    assert record._asdict() == theirs._asdict()


def test_it_is_made_of_keywords_too(twin: ModuleType) -> None:
    names = twin.ConsumerRecord._fields
    assert twin.ConsumerRecord(**dict(zip(names, FIELDS, strict=True))) == FIELDS
    assert twin.ConsumerRecord._make(FIELDS) == FIELDS
    with pytest.raises(TypeError):
        twin.ConsumerRecord("topic")


def test_it_is_indexed_sliced_counted_and_unpacked(twin: ModuleType) -> None:
    record = twin.ConsumerRecord(*FIELDS)
    topic, partition, *_, header_size = record
    assert (topic, partition, header_size) == ("topic", 3, 9)
    assert (record[0], record[-1], record[6:8]) == ("topic", 9, (b"key", b"value"))
    assert len(record) == 13
    assert tuple(record) == FIELDS
    assert b"key" in record
    assert record.index(b"value") == 7
    assert record.count(3) == 2
    with pytest.raises(IndexError):
        record[13]


def test_it_matches_patterns(twin: ModuleType) -> None:
    match twin.ConsumerRecord(*FIELDS):
        case twin.ConsumerRecord(topic, key=key):
            assert (topic, key) == ("topic", b"key")
        case _:
            pytest.fail("the record did not match its own class")


def test_it_is_immutable(twin: ModuleType) -> None:
    record = twin.ConsumerRecord(*FIELDS)
    with pytest.raises(AttributeError):
        record.value = b"other"
    with pytest.raises(AttributeError):
        record.extra = 1
    with pytest.raises(TypeError):
        record[0] = "other"


def test_equal_records_hash_alike_and_order_as_tuples(twin: ModuleType) -> None:
    record = twin.ConsumerRecord(*FIELDS)
    later = record._replace(offset=record.offset + 1)
    assert record == twin.ConsumerRecord(*FIELDS)
    assert hash(record) == hash(twin.ConsumerRecord(*FIELDS))
    assert {record, later, twin.ConsumerRecord(*FIELDS)} == {record, later}
    assert record != later
    assert record != "text"
    assert record < later
    assert sorted([later, record]) == [record, later]


def test_replace_changes_what_it_is_told_to(twin: ModuleType) -> None:
    record = twin.ConsumerRecord(*FIELDS)
    changed = record._replace(value={"a": 1}, offset=5)
    assert (changed.value, changed.offset, changed.key) == ({"a": 1}, 5, b"key")
    assert record.value == b"value"


def test_replace_refuses_unknown_fields_as_a_named_tuple_of_this_python_does(
    twin: ModuleType,
) -> None:
    # ValueError up to Python 3.12, TypeError since 3.13.
    with pytest.raises((ValueError, TypeError), match="nonsense") as theirs:
        KafkaPythonRecord(*FIELDS)._replace(nonsense=1, offset=5, more=2)
    with pytest.raises((ValueError, TypeError)) as ours:
        twin.ConsumerRecord(*FIELDS)._replace(nonsense=1, offset=5, more=2)
    assert (ours.type, str(ours.value)) == (theirs.type, str(theirs.value))


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13")
def test_copy_replace_works_as_replace(twin: ModuleType) -> None:
    record = twin.ConsumerRecord(*FIELDS)
    replace = copy.replace  # type: ignore[attr-defined]
    assert replace(record, offset=5) == record._replace(offset=5)


@pytest.mark.parametrize("value", [b"bytes", None, {"deserialized": [1]}])
def test_it_survives_pickling_and_copying(value: Any, twin: ModuleType) -> None:
    record = twin.ConsumerRecord(*FIELDS)._replace(value=value)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        restored = pickle.loads(pickle.dumps(record, protocol))
        assert restored == record
        assert type(restored) is type(record)
    assert copy.copy(record) == record
    assert copy.deepcopy(record) == record


@pytest.mark.parametrize(("here", "there"), [("native", "python"), ("python", "native")])
def test_a_pickle_of_one_twin_loads_in_the_other(here: str, there: str) -> None:
    record = _twin.load(here)["batch"].ConsumerRecord(*FIELDS)
    script = (
        "import pickle, sys; record = pickle.load(sys.stdin.buffer);"
        "print(type(record).__module__); print(tuple(record))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps(record),
        env={**os.environ, "PYCLIENT_IMPL": there, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    module, fields = done.stdout.decode().splitlines()
    assert module.startswith(_twin.PACKAGES[there])
    assert fields == repr(FIELDS)


def test_twins_are_equal_to_each_other() -> None:
    native, pure = (_twin.load(name)["batch"].ConsumerRecord(*FIELDS) for name in _twin.PACKAGES)
    assert native == pure
    assert pure == native
    assert hash(native) == hash(pure)


def test_deserialized_swaps_key_and_value_and_keeps_the_serialized_sizes(
    twin: ModuleType,
) -> None:
    record = twin.ConsumerRecord(*FIELDS)
    swapped = twin.deserialized(record, "key", [1, 2])
    assert swapped == (*FIELDS[:6], "key", [1, 2], *FIELDS[8:])
    assert isinstance(swapped, twin.ConsumerRecord)


def test_a_native_record_of_bytes_stays_outside_of_the_garbage_collector() -> None:
    native = _twin.load("native")["batch"]
    assert not gc.is_tracked(native.ConsumerRecord(*FIELDS))
    assert gc.is_tracked(native.ConsumerRecord(*FIELDS)._replace(value=[]))
    assert gc.is_tracked(native.deserialized(native.ConsumerRecord(*FIELDS), {}, None))


class _Value:
    """Something that a deserializer may return and that can be watched."""

    record: Any


def test_a_record_in_a_reference_cycle_is_collected(twin: ModuleType) -> None:
    value = _Value()
    watched = weakref.ref(value)
    value.record = twin.deserialized(twin.ConsumerRecord(*FIELDS), None, value)
    del value
    gc.collect()
    assert watched() is None


def test_native_records_survive_churn() -> None:
    native = _twin.load("native")["batch"]
    for _ in range(3):
        records = [native.ConsumerRecord(*FIELDS)._replace(offset=n) for n in range(3000)]
        assert [record.offset for record in records] == list(range(3000))
        assert all(record.value == b"value" for record in records)
