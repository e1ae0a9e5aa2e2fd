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
        (pa.table({"key": [b"k"]}), ValueError, "the columns 'value' and.*not \\['key'\\]"),
        (pa.table({"value": [b"v"], "topic": ["t"]}), ValueError, "not \\['value', 'topic'\\]"),
        (pa.array([b"a", None]), ValueError, "record 1 has neither a key nor a value"),
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
