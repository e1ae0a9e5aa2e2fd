"""Streaming reads of the Spark source, planned and read without Spark, on our broker."""

import pytest

from broker_stub import Broker
from pyclient import KafkaAdminClient, TopicPartition
from pyclient.clock import ManualClock
from tests.integration.spark_connector.miniature_spark import StreamQuery, offsets_of
from tests.integration.spark_connector.topics import delete_records, fill

EARLIEST = {"subscribe": "t", "startingOffsets": "earliest"}


def add_partitions(broker: Broker, topic: str, total: int) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({topic: total})
        admin.wait_for_topics([topic])


def recreate(broker: Broker, topic: str) -> None:
    broker.delete_topic(topic)
    broker.create_topic(topic)


# --- topics that change --------------------------------------------------------------------------


def test_a_topic_recreated_under_a_query_fails_it(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 100)
    with StreamQuery(kafka_broker, **EARLIEST) as query:
        query.step()
        recreate(kafka_broker, "t")
        fill(kafka_broker, "t", 40)
        with pytest.raises(RuntimeError, match=r"KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED.*t "):
            query.step()


def test_a_topic_recreated_with_overlapping_offsets_fails_the_query(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 100)
    with StreamQuery(kafka_broker, **EARLIEST) as query:
        query.step()
        recreate(kafka_broker, "t")
        fill(kafka_broker, "t", 150)
        with pytest.raises(RuntimeError, match="Topic t was deleted and created again"):
            query.step()


def test_a_topic_recreated_with_the_same_offsets_fails_the_query(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 100)
    with StreamQuery(kafka_broker, **EARLIEST) as query:
        query.step()
        recreate(kafka_broker, "t")
        fill(kafka_broker, "t", 100)
        with pytest.raises(RuntimeError, match="Topic t was deleted and created again"):
            query.step()


def test_a_topic_recreated_while_the_query_was_down_fails_its_last_batch(
    kafka_broker: Broker,
) -> None:
    fill(kafka_broker, "t", 100)
    with StreamQuery(kafka_broker, **EARLIEST) as query:
        query.step()
        fill(kafka_broker, "t", 10)
        end = query.next_end()  # planned, written down, and not run
    recreate(kafka_broker, "t")
    fill(kafka_broker, "t", 150)
    with (
        StreamQuery(kafka_broker, query.checkpoint, **EARLIEST) as again,
        pytest.raises(RuntimeError, match="Topic t was deleted and created again"),
    ):
        again.run_batch(end)


def test_with_data_loss_allowed_a_recreated_topic_is_read_on_as_the_jvm_connector_does(
    kafka_broker: Broker,
) -> None:
    fill(kafka_broker, "t", 100)
    with StreamQuery(kafka_broker, **EARLIEST, failOnDataLoss="false") as query:
        query.step()
        recreate(kafka_broker, "t")
        fill(kafka_broker, "t", 40)
        assert query.step() == []
        fill(kafka_broker, "t", 110)
        assert offsets_of(query.step()) == [(0, offset) for offset in range(40, 150)]
        assert query.step() is None


def test_new_partitions_are_seen_with_the_next_batch(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 5)
    with StreamQuery(kafka_broker, **EARLIEST) as query:
        assert len(query.step()) == 5
        assert query.step() is None
        add_partitions(kafka_broker, "t", 2)
        fill(kafka_broker, "t", 3, (1,))
        assert offsets_of(query.step()) == [(1, 0), (1, 1), (1, 2)]
        assert query.step() is None


def test_new_partitions_are_seen_late_if_they_may_be_cached(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 5)
    ttl = {"partition.metadata.cache.ttl.ms": 600_000}
    with StreamQuery(kafka_broker, **EARLIEST, **ttl) as query:
        assert len(query.step()) == 5
        add_partitions(kafka_broker, "t", 2)
        fill(kafka_broker, "t", 3, (1,))
        assert query.step() is None


@pytest.mark.parametrize("fail_on_data_loss", ["true", "false"])
def test_a_topic_deleted_under_a_query_fails_it_and_stays_deleted(
    kafka_broker: Broker, fail_on_data_loss: str
) -> None:
    fill(kafka_broker, "t", 10)
    with StreamQuery(kafka_broker, **EARLIEST, failOnDataLoss=fail_on_data_loss) as query:
        query.step()
        kafka_broker.delete_topic("t")
        with pytest.raises(ValueError, match="topic 't' does not exist"):
            query.step()
    kafka_broker.create_topic("t")  # raises if it existed


def test_a_topic_of_a_pattern_that_is_deleted_is_data_loss(kafka_broker: Broker) -> None:
    pattern = {"subscribePattern": "^t", "startingOffsets": "earliest"}
    for allowed in (False, True):
        fill(kafka_broker, "t1", 5)
        fill(kafka_broker, "t2", 5)
        with StreamQuery(kafka_broker, **pattern, failOnDataLoss=str(not allowed)) as query:
            query.step()
            kafka_broker.delete_topic("t2")
            if allowed:
                assert query.step() == []
            else:
                with pytest.raises(RuntimeError, match="Partitions t2-0 have been deleted"):
                    query.step()
        kafka_broker.delete_topic("t1")


def test_a_new_topic_of_a_pattern_is_read_from_its_beginning(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t1", 5)
    with StreamQuery(kafka_broker, subscribePattern="^t", startingOffsets="latest") as query:
        assert query.step() == []
        fill(kafka_broker, "t2", 3)
        assert len(query.step()) == 3


def test_retention_that_passes_a_query_is_data_loss(kafka_broker: Broker) -> None:
    for allowed in (False, True):
        fill(kafka_broker, "t", 20)
        with StreamQuery(kafka_broker, **EARLIEST, failOnDataLoss=str(not allowed)) as query:
            query.step()
            fill(kafka_broker, "t", 20)
            delete_records(kafka_broker, "t", before=30)
            if allowed:
                assert offsets_of(query.step()) == [(0, offset) for offset in range(30, 40)]
            else:
                with pytest.raises(RuntimeError, match=r"\[20, 30\) for topic partition t-0"):
                    query.step()
        kafka_broker.delete_topic("t")


# --- the checkpoint ------------------------------------------------------------------------------


def test_what_is_beside_the_offsets_makes_no_batch_of_its_own(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 10)
    with StreamQuery(kafka_broker, **EARLIEST) as query:
        assert [len(rows) for rows in query.drain()] == [10]
        fill(kafka_broker, "t", 10)
        assert [len(rows) for rows in query.drain()] == [10]
    with StreamQuery(kafka_broker, query.checkpoint, **EARLIEST) as query:
        assert query.drain() == []


def test_a_first_batch_that_is_repeated_starts_where_it_started(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 10)
    latest = {"subscribe": "t", "startingOffsets": "latest"}
    with StreamQuery(kafka_broker, **latest) as query:
        query.start_of_next()
        fill(kafka_broker, "t", 5)
        end = query.next_end()
    fill(kafka_broker, "t", 3)
    with StreamQuery(kafka_broker, **latest) as again:
        assert offsets_of(again.run_batch(end)) == [(0, offset) for offset in range(10, 15)]
        assert offsets_of(again.step()) == [(0, 15), (0, 16), (0, 17)]


def test_a_checkpoint_of_the_jvm_connector_is_taken_over(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t", partitions=2)
    fill(kafka_broker, "t", 10, (0, 1))
    with StreamQuery(kafka_broker, ['{"t":{"1":7,"0":4}}'], **EARLIEST) as query:
        assert offsets_of(query.step()) == (
            [(0, offset) for offset in range(4, 10)] + [(1, offset) for offset in range(7, 10)]
        )


# --- how much a batch takes ----------------------------------------------------------------------


def test_the_limit_is_shared_by_lag(kafka_broker: Broker) -> None:
    kafka_broker.create_topic("t", partitions=3)
    fill(kafka_broker, "t", 90, (0,))
    fill(kafka_broker, "t", 10, (1,))
    with StreamQuery(kafka_broker, **EARLIEST, maxOffsetsPerTrigger=50) as query:
        first = offsets_of(query.step())
        assert (sum(p == 0 for p, _ in first), sum(p == 1 for p, _ in first)) == (45, 5)
        assert [len(rows) for rows in query.drain()] == [50]


def with_clock(query: StreamQuery) -> ManualClock:
    clock = ManualClock()
    query.reader._clock = clock
    return clock


def test_a_batch_waits_for_enough_records_or_for_the_delay(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 3)
    least = {"minOffsetsPerTrigger": 10, "maxTriggerDelay": "10s"}
    with StreamQuery(kafka_broker, **EARLIEST, **least) as query:
        clock = with_clock(query)
        assert len(query.step()) == 3  # the first batch does not wait
        fill(kafka_broker, "t", 9)
        clock.advance(9_999)
        assert query.step() is None
        fill(kafka_broker, "t", 1)
        assert len(query.step()) == 10
        fill(kafka_broker, "t", 1)
        clock.advance(9_999)
        assert query.step() is None
        clock.advance(1)
        assert len(query.step()) == 1


def test_minimum_and_maximum_together(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 5)
    both = {"minOffsetsPerTrigger": 10, "maxOffsetsPerTrigger": 12, "maxTriggerDelay": "1h"}
    with StreamQuery(kafka_broker, **EARLIEST, **both) as query:
        with_clock(query)
        assert len(query.step()) == 5
        fill(kafka_broker, "t", 30)
        assert [len(rows) for rows in query.drain()] == [12, 12]  # 6 wait for the delay


def test_available_now_reads_what_was_there_and_all_of_it(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 25)
    limits = {"minOffsetsPerTrigger": 10, "maxOffsetsPerTrigger": 10}
    with StreamQuery(kafka_broker, **EARLIEST, **limits).available_now() as query:
        assert len(query.step()) == 10
        fill(kafka_broker, "t", 10)
        assert [len(rows) for rows in query.drain()] == [10, 5]


def test_available_now_fails_when_partitions_are_lost(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t1", 5)
    fill(kafka_broker, "t2", 5)
    options = {"subscribePattern": "^t", "startingOffsets": "earliest", "failOnDataLoss": "false"}
    with StreamQuery(kafka_broker, **options).available_now() as query:
        end = query.next_end()
        kafka_broker.delete_topic("t2")
        with pytest.raises(RuntimeError, match=r"LOST_TOPIC_PARTITIONS.*t2-0"):
            query.run_batch(end)


# --- the group -----------------------------------------------------------------------------------


def test_offsets_are_committed_to_a_group_for_lag_tools(kafka_broker: Broker) -> None:
    fill(kafka_broker, "t", 10)
    with (
        StreamQuery(kafka_broker, **EARLIEST, commitOffsetsToGroup="lag").available_now() as query,
        KafkaAdminClient(bootstrap_servers=kafka_broker.bootstrap_servers) as admin,
    ):
        query.drain()  # Spark asks once more when the last batch is done
        committed = admin.list_consumer_group_offsets("lag")
        assert {one: at.offset for one, at in committed.items()} == {TopicPartition("t", 0): 10}


def test_a_group_that_cannot_be_committed_to_does_not_stop_the_query(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    from pyclient.errors import GroupAuthorizationFailedError
    from pyclient.protocol.messages.offset_commit import OffsetCommitRequest

    fill(kafka_broker, "t", 10)
    kafka_broker.faults.fail_next(OffsetCommitRequest, GroupAuthorizationFailedError, count=100)
    with StreamQuery(kafka_broker, **EARLIEST, commitOffsetsToGroup="lag").available_now() as query:
        assert [len(rows) for rows in query.drain()] == [10]
    assert "not committed to group 'lag'" in caplog.text


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": "t", "endingOffsets": "latest"}, "ending offset not valid in streaming"),
        ({"subscribe": "t", "endingOffsetsByTimestamp": "{}"}, "ending timestamp not valid in"),
        ({"subscribe": "t", "maxTriggerDelay": "soon"}, "is a time such as 15m or 10s, not 'soon'"),
        (
            {"subscribe": "t", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "higher than the maxOffsetsPerTrigger",
        ),
    ],
)
def test_wrong_options_of_a_stream_are_told_by_its_first_call(
    kafka_broker: Broker, options: dict[str, str], words: str
) -> None:
    # PySpark's worker hides what `streamReader` itself raises behind an UnboundLocalError.
    query = StreamQuery(kafka_broker, **options)
    with pytest.raises(ValueError, match=words):
        query.reader.initialOffset()
    query.reader.stop()
