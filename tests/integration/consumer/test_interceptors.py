"""Interceptors of consumers: they see records and commits, and may change the former."""

import pytest

from pyclient import ConsumerInterceptor, TopicPartition
from pyclient.errors import KafkaConfigurationError
from tests.integration.consumer.test_groups import poll_until

P0 = TopicPartition("orders", 0)


class Witness(ConsumerInterceptor):
    """Notes what it sees, and leaves out odd numbers."""

    def __init__(self):
        self.configs = None
        self.consumed = []
        self.committed = []
        self.closed = 0

    def configure(self, configs):
        self.configs = configs

    def on_consume(self, records):
        self.consumed += [int(one.value) for found in records.values() for one in found]
        return {
            at: [one for one in found if int(one.value) % 2 == 0] for at, found in records.items()
        }

    def on_commit(self, offsets):
        self.committed.append(offsets[P0].offset)

    def close(self):
        self.closed += 1


class Broken:
    def on_consume(self, records):
        raise ValueError("consume")

    def on_commit(self, offsets):
        raise ValueError("commit")

    def close(self):
        raise ValueError("close")


def test_an_interceptor_sees_records_and_commits(new_consumer, fill):
    fill("orders", count=6)
    witness = Witness()
    consumer = new_consumer(
        "orders", group_id="g", interceptors=[witness], enable_auto_commit=False
    )
    found = poll_until(lambda found: len(found) == 3, consumer)
    assert [number for _, number in found] == [0, 2, 4]
    assert witness.consumed == [0, 1, 2, 3, 4, 5]
    assert witness.configs["group.id"] == "g"
    consumer.commit()
    assert witness.committed == [6]
    done = consumer.commit_async()
    poll_until(lambda _: done.is_done and len(witness.committed) == 2, consumer)
    consumer.close()
    assert witness.closed == 1


def test_automatic_commits_are_told_too(new_consumer, fill):
    fill("orders", count=2)
    witness = Witness()
    consumer = new_consumer("orders", group_id="g", interceptors=[witness])
    poll_until(lambda _: witness.consumed, consumer)
    consumer.close()
    assert witness.committed[-1] == 2


def test_an_iteration_passes_records_one_by_one(new_consumer, fill):
    fill("orders", count=6)
    witness = Witness()
    consumer = new_consumer("orders", interceptors=[witness], consumer_timeout_ms=500)
    assert int(next(consumer).value) == 0
    assert [int(record.value) for record in consumer] == [2, 4]
    assert witness.consumed == [0, 1, 2, 3, 4, 5]


def test_what_an_interceptor_raises_goes_nowhere(new_consumer, fill, caplog):
    fill("orders", count=2)
    witness = Witness()
    consumer = new_consumer("orders", group_id="g", interceptors=[Broken, witness])
    poll_until(lambda found: len(found) == 1, consumer)
    consumer.commit()
    consumer.close()
    assert witness.closed == 1
    for method in ("on_consume", "on_commit", "close"):
        assert f"failed in {method}()" in caplog.text


def test_a_class_that_does_not_exist_is_refused(new_consumer):
    with pytest.raises(KafkaConfigurationError, match="cannot be used"):
        new_consumer("orders", interceptors=["nowhere.Nothing"])


def test_arrow_tables_pass_interceptors_by_and_their_commits_do_not(new_consumer, fill):
    fill("orders", count=6)
    witness = Witness()
    consumer = new_consumer(group_id="kitchen", enable_auto_commit=False, interceptors=[witness])
    consumer.assign([P0])
    assert consumer.poll_arrow(timeout_ms=20_000, max_records=6).num_rows == 6
    consumer.commit()
    assert witness.consumed == []
    assert witness.committed == [6]
