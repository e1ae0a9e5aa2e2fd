"""A hundred consumers in one process, on one broker: they join, settle and leave."""

import threading

import pytest

from pyclient import KafkaConsumer, TopicPartition

CONSUMERS = 100
PARTITIONS = 2 * CONSUMERS
WAIT_SECONDS = 90


class Crowd:
    """Consumers of one group, each on a thread of its own; knows who has what."""

    def __init__(self, servers: str, **options: object) -> None:
        self._servers = servers
        self._options = options
        self._changed = threading.Condition()
        self._shares: dict[int, frozenset[TopicPartition]] = {}
        self._failure: BaseException | None = None
        self._is_over = False
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(CONSUMERS)]

    def __enter__(self) -> "Crowd":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join(WAIT_SECONDS)
        assert not any(thread.is_alive() for thread in self._threads)

    def _run(self, number: int) -> None:
        try:
            with KafkaConsumer(
                "orders", bootstrap_servers=self._servers, group_id="crowd", **self._options
            ) as consumer:
                while not self._is_over:
                    consumer.poll(timeout_ms=500)
                    self._note(number, frozenset(consumer.assignment()))
        except BaseException as error:  # noqa: BLE001  raised again by `wait_until_settled`
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _note(self, number: int, share: frozenset[TopicPartition]) -> None:
        with self._changed:
            self._shares[number] = share
            self._changed.notify_all()

    def wait_until_settled(self) -> None:
        """Until each has two partitions, and no two the same."""
        with self._changed:
            settled = self._changed.wait_for(
                lambda: self._failure is not None or self._is_settled(), WAIT_SECONDS
            )
            if self._failure is not None:
                raise self._failure
            assert settled, sorted(map(len, self._shares.values()))

    def _is_settled(self) -> bool:
        shares = self._shares.values()
        return (
            len(shares) == CONSUMERS
            and all(len(share) == PARTITIONS // CONSUMERS for share in shares)
            and len(frozenset[TopicPartition]().union(*shares)) == PARTITIONS
        )


@pytest.mark.timeout(240)
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_hundred_consumers_in_one_process_join_and_settle(kafka_broker, strategy):
    kafka_broker.create_topic("orders", partitions=PARTITIONS)
    options = {"partition_assignment_strategy": [strategy], "heartbeat_interval_ms": 1_000}
    with Crowd(kafka_broker.bootstrap_servers, **options) as crowd:
        crowd.wait_until_settled()
