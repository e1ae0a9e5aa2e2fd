"""`send_many` and `send_arrow` on a scripted network: what arrives is what `send` would send."""

import pyarrow as pa
import pytest

from pyclient.errors import BufferExhaustedError, RecordTooLargeError
from pyclient.producer.partitioner import partition_for_key
from pyclient.protocol.messages.produce import ProduceRequest

VALUES = [b"value-%d" % number for number in range(500)]
KEYS = [None if number % 7 == 0 else b"key-%d" % (number % 23) for number in range(500)]


def arrived(log):
    return [
        [(record.key, record.value) for record in log.partitions["orders", number].records]
        if ("orders", number) in log.partitions
        else []
        for number in (0, 1)
    ]


@pytest.fixture(params=["list", "arrow"])
def send(request):
    """Send values and keys in one of the two ways."""

    def as_list(producer, values, keys=None, **options):
        return producer.send_many("orders", values, keys, **options)

    def as_arrow(producer, values, keys=None, **options):
        columns = {"value": pa.array(values, pa.binary())}
        if keys is not None:
            columns["key"] = pa.array(keys, pa.binary())
        return producer.send_arrow("orders", pa.table(columns), **options)

    return as_list if request.param == "list" else as_arrow


def test_every_record_arrives_once_and_in_order(log, new_producer, send, twin):
    producer = new_producer(batch_size=2000, partitioner=None)
    assert send(producer, VALUES).get(5) == len(VALUES)
    first, second = arrived(log)
    assert sorted(first + second) == sorted((None, value) for value in VALUES)
    for records in (first, second):
        numbers = [VALUES.index(value) for _, value in records]
        assert numbers == sorted(numbers)


def test_keys_go_where_send_would_send_them_in_their_order(log, new_producer, send, twin):
    producer = new_producer(batch_size=2000)
    sent = send(producer, VALUES, KEYS)
    assert sent.get(5) == len(VALUES)
    for number, records in enumerate(arrived(log)):
        with_key = [pair for pair in records if pair[0] is not None]
        assert with_key == [
            (key, value)
            for key, value in zip(KEYS, VALUES, strict=True)
            if key is not None and partition_for_key(key, 2) == number
        ]


def test_rows_of_a_partition_keep_their_order_with_and_without_a_key(log, producer, send, twin):
    for _ in range(4):  # until the sticky partition was one of each
        send(producer, VALUES, KEYS).get(5)
    for records in arrived(log):
        numbers = [VALUES.index(value) for _, value in records]
        starts = [
            place for place, number in enumerate(numbers) if place and number < numbers[place - 1]
        ]
        assert len(starts) == 3


def test_each_row_has_the_future_of_its_record(log, new_producer, send, twin):
    producer = new_producer(batch_size=2000)
    sent = send(producer, VALUES, KEYS, timestamp_ms=77)
    producer.flush()
    assert len(sent) == len(VALUES)
    for row, future in enumerate(sent):
        metadata = future.get(5)
        record = log.partitions["orders", metadata.partition].records[metadata.offset]
        assert (record.key, record.value) == (KEYS[row], VALUES[row])
        assert metadata.timestamp == record.timestamp == 77
        assert metadata.serialized_value_size == len(VALUES[row])
        assert metadata.serialized_key_size == (-1 if KEYS[row] is None else len(KEYS[row]))
    assert sent[-1].value == sent[len(sent) - 1].value
    assert [one.value for one in sent[2:4]] == [sent[2].value, sent[3].value]
    with pytest.raises(IndexError, match="record 500 of 500 records"):
        sent[500]


def test_one_partition_may_be_named(log, new_producer, send, twin):
    send(new_producer(), VALUES, KEYS, partition=1).get(5)
    assert arrived(log) == [[], list(zip(KEYS, VALUES, strict=True))]


def test_nothing_is_nothing(log, producer, send):
    sent = send(producer, [], [])
    assert (sent.get(5), list(sent)) == (0, [])


def test_a_record_that_is_too_large_fails_alone(log, new_producer, send, twin):
    producer = new_producer(max_request_size=1000)
    sent = send(producer, [b"a", b"x" * 2000, b"b"], partition=0)
    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
        sent.get(5)
    assert [future.failed() for future in sent] == [False, True, False]
    assert log.values("orders", 0) == [b"a", b"b"]


def test_without_memory_the_rest_fails_and_what_came_before_goes_on(network, log, new_producer):
    producer = new_producer(buffer_memory=40_000, max_block_ms=1_000)
    producer.send("orders", b"v").get(5)
    network.brokers[1].on(ProduceRequest, None)  # it answers no more
    sent = producer.send_many("orders", [b"x" * 1000] * 100, partition=0)
    failed = [future.failed() for future in sent]
    assert failed == sorted(failed)
    assert (failed[0], failed[-1]) == (False, True)
    with pytest.raises(BufferExhaustedError, match=r"of the 40000 bytes of buffer\.memory"):
        sent[-1].get(0)


def test_serializers_partitioner_and_interceptors_see_every_record(log, new_producer, send):
    producer = new_producer(
        value_serializer=lambda value: value.upper(),
        partitioner=lambda key, everything, available: everything[-1],
    )
    send(producer, [b"a", b"b"], [b"k", None]).get(5)
    assert arrived(log)[1] == [(b"k", b"A"), (None, b"B")]


def test_one_by_one_a_record_that_is_too_large_fails_alone_too(log, new_producer, send):
    producer = new_producer(max_request_size=1000, value_serializer=lambda value: value)
    sent = send(producer, [b"a", b"x" * 2000, b"b"], partition=0)
    producer.flush()
    assert [future.failed() for future in sent] == [False, True, False]
    assert log.values("orders", 0) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("values", "keys", "error", "words"),
    [
        ([b"a", "text"], None, TypeError, "a value is a str, not bytes.*value_serializer"),
        ([b"a"], [1], TypeError, "a key is a int, not bytes.*key_serializer"),
        ([b"a"], [b"k", b"l"], ValueError, "1 values, but 2 keys"),
        ([b"a", None], None, ValueError, "record 1 has neither a key nor a value"),
        ([None, None], [b"k", None], ValueError, "record 1 has neither a key nor a value"),
    ],
)
def test_wrong_lists_are_refused_before_anything_is_sent(log, producer, values, keys, error, words):
    with pytest.raises(error, match=words):
        producer.send_many("orders", values, keys)
    producer.flush()
    assert arrived(log) == [[], []]


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([b"a"], TypeError, "takes a pyarrow Table or RecordBatch.*, not list"),
        (pa.table({"value": [1]}), TypeError, "column 'value' is of int64: cast it"),
        (pa.table({"key": [b"k"]}), ValueError, "the column 'value' and.*not \\['key'\\]"),
        (pa.table({"value": [b"v"], "v": ["t"]}), ValueError, "not \\['value', 'v'\\]"),
        (pa.table({"value": [b"v"], "topic": ["t"]}), ValueError, "is 'orders', and there is a"),
        (pa.array([b"a", None]), ValueError, "record 1 has neither a key nor a value"),
        (pa.table({"value": [b"v"], "partition": [2]}), ValueError, "there is no partition 2"),
        (pa.table({"value": [b"v"], "partition": ["2"]}), TypeError, "string, not of int32"),
        (pa.table({"value": [b"v"], "timestamp": [1.5]}), TypeError, "double, not of timestamp"),
        (pa.table({"value": [b"v"], "timestamp": [-1]}), ValueError, "record 0: a timestamp"),
        (pa.table({"value": [b"v"], "headers": [["a"]]}), TypeError, "not of list<struct"),
    ],
)
def test_wrong_columns_are_refused_before_anything_is_sent(log, producer, data, error, words):
    with pytest.raises(error, match=words):
        producer.send_arrow("orders", data)
    producer.flush()
    assert arrived(log) == [[], []]


def test_arrow_comes_as_batches_chunks_slices_and_text(log, producer, twin):
    producer.send_arrow("orders", pa.array(["x", "text", "y"]).slice(1, 1), partition=0)
    chunked = pa.chunked_array([pa.array([b"a"]), pa.array([b"b", b"c"])])
    producer.send_arrow("orders", chunked, partition=0)
    batch = pa.record_batch({"value": pa.array([b"d"], pa.large_binary()), "key": ["k"]})
    producer.send_arrow("orders", batch, partition=0)
    producer.flush()
    assert arrived(log)[0] == [
        (None, b"text"),
        (None, b"a"),
        (None, b"b"),
        (None, b"c"),
        (b"k", b"d"),
    ]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["ab", "cd", "ab"]).dictionary_encode(),
        pa.chunked_array(
            [pa.array(["ab"]).dictionary_encode(), pa.array(["cd", "ab"]).dictionary_encode()]
        ),
        pa.array([b"ab", b"cd", b"ab"], pa.binary(2)),
        pa.array([b"ab", b"cd", b"ab"], pa.binary_view()),
        pa.array(["ab", "cd", "ab"], pa.string_view()),
    ],
    ids=lambda values: str(values.type),
)
def test_other_columns_of_bytes_and_text_are_converted(log, producer, values):
    keys = values.slice(1, 2)
    producer.send_arrow("orders", values, partition=0).get(5)
    table = pa.table({"value": keys, "key": keys})
    producer.send_arrow("orders", table, partition=1).get(5)
    assert arrived(log) == [
        [(None, b"ab"), (None, b"cd"), (None, b"ab")],
        [(b"cd", b"cd"), (b"ab", b"ab")],
    ]


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def everything(log, topic):
    return {
        number: [
            (record.key, record.value, record.timestamp, list(record.headers))
            for record in part.records
        ]
        for (name, number), part in sorted(log.partitions.items())
        if name == topic
    }


def test_each_row_may_have_topic_partition_headers_and_timestamp(network, log, producer, twin):
    network.add_topic("payments", partitions=2)
    table = pa.table(
        {
            "value": ["a", "b", None, "d", "e"],
            "key": pa.array([b"k", b"k", b"k", None, b"k"]),
            "topic": pa.array(["orders", "payments", "orders", "payments", "orders"]),
            "partition": pa.array([0, 1, None, 1, 1], pa.int64()),
            "timestamp": pa.array([10_999, 20_000, None, 40_000, 50_000], pa.timestamp("us")),
            "headers": pa.array(
                [None, [("h", b"1"), ("i", None)], [], None, [("j", b"")]], HEADERS
            ),
        }
    )
    sent = producer.send_arrow(None, table, timestamp_ms=7)
    assert sent.get(5) == 5
    by_key = partition_for_key(b"k", 2)
    orders = {0: [(b"k", b"a", 10, [])], 1: [(b"k", b"e", 50, [("j", b"")])]}
    orders[by_key].insert(1 - by_key, (b"k", None, 7, []))
    assert everything(log, "orders") == orders
    assert everything(log, "payments") == {
        1: [(b"k", b"b", 20, [("h", b"1"), ("i", None)]), (None, b"d", 40, [])]
    }
    metadata = [future.get(0) for future in sent]
    assert [(one.topic, one.partition, one.timestamp) for one in metadata] == [
        ("orders", 0, 10),
        ("payments", 1, 20),
        ("orders", by_key, 7),
        ("payments", 1, 40),
        ("orders", 1, 50),
    ]
    assert [one.serialized_header_size for one in metadata] == [-1, 3, -1, -1, 1]


def test_columns_for_each_row_reach_serializers_too(network, log, new_producer):
    network.add_topic("payments", partitions=2)
    producer = new_producer(value_serializer=lambda value: value.upper().encode())
    table = pa.table(
        {
            "value": ["a", "b"],
            "topic": ["orders", "payments"],
            "partition": pa.array([1, 0], pa.int32()),
            "timestamp": pa.array([10, None], pa.timestamp("ms", "UTC")),
            "headers": pa.array([[("h", b"1")], None], HEADERS),
        }
    )
    producer.send_arrow(None, table, timestamp_ms=7).get(5)
    assert everything(log, "orders") == {1: [(None, b"A", 10, [("h", b"1")])]}
    assert everything(log, "payments") == {0: [(None, b"B", 7, [])]}


def test_rows_without_key_and_value_are_sent_on_demand(log, producer, twin):
    producer.send_arrow("orders", pa.array([None, b"a"]), partition=0, allow_null=True).get(5)
    assert arrived(log)[0] == [(None, None), (None, b"a")]


def test_failures_name_the_rows(log, new_producer, twin):
    producer = new_producer(max_request_size=1000)
    table = pa.table(
        {
            "value": [b"x" * 2000, b"a", b"x" * 3000, b"b"],
            "partition": pa.array([1, 1, 0, 0], pa.int32()),
        }
    )
    sent = producer.send_arrow("orders", table)
    failures = sent.failures(5)
    assert list(failures) == [0, 2]
    assert failures[2].size > 3000
    with pytest.raises(RecordTooLargeError) as caught:
        sent.get(5)
    assert (caught.value.size, caught.value.__notes__) == (failures[0].size, ["record 0 of 4"])
    assert arrived(log) == [[(None, b"b")], [(None, b"a")]]
    assert sent.is_done
    assert producer.send_many("orders", [b"c"]).failures(5) == {}


def test_without_memory_rows_of_later_partitions_fail_without_waiting_again(
    network, log, new_producer, monkeypatch
):
    producer = new_producer(buffer_memory=40_000, max_block_ms=1_000)
    producer.send("orders", b"v").get(5)
    network.brokers[1].on(ProduceRequest, None)  # it answers no more
    allocate = producer._core.accumulator._pool.allocate
    waits = []

    def counted(*arguments):
        waits.append(arguments)
        return allocate(*arguments)

    monkeypatch.setattr(producer._core.accumulator._pool, "allocate", counted)
    table = pa.table(
        {"value": [b"x" * 1000] * 200, "partition": pa.array([0, 1] * 100, pa.int32())}
    )
    sent = producer.send_arrow("orders", table)
    taken = len(waits)
    assert sent[198].failed()
    assert sent[199].failed()
    with pytest.raises(BufferExhaustedError):
        producer.send("orders", b"x" * 1000, partition=0)
    assert len(waits) == taken + 1
    assert taken < 4
