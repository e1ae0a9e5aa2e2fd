"""`KafkaProducer`: publish records, with kafka-python's arguments and Kafka's behaviour."""

from __future__ import annotations

import itertools
import logging
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, NoReturn, Self, Unpack, overload

from pyclient import _twin
from pyclient.config import plugins
from pyclient.config import producer as producer_config
from pyclient.config.common import default_config
from pyclient.errors import IllegalStateError
from pyclient.metrics import KafkaMetric, MetricName, Reporters
from pyclient.net.pickling import not_picklable
from pyclient.net.refusals import refuse_missing, refuse_positional
from pyclient.producer.bulk_intake import BulkIntake
from pyclient.producer.core import ProducerCore
from pyclient.producer.delivery import FutureRecordMetadata
from pyclient.producer.interceptors import ProducerInterceptors
from pyclient.producer.record_intake import RecordIntake
from pyclient.producer.sent_records import SentRecords

if TYPE_CHECKING:
    import pyarrow

    from pyclient.config.definition import Config
    from pyclient.config.options import ProducerOptions
    from pyclient.net.environment import Environment
    from pyclient.producer.transactions.calls import Transactions
    from pyclient.types import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
        PreparedTransaction,
        TopicPartition,
    )

log = logging.getLogger(__name__)

_NOT_THERE = {
    # confluent-kafka's
    "list_topics": "partitions_for(topic) tells a topic's partitions, the admin client the topics",
    "poll": "callbacks run on the producer's own thread",
    "produce": "use send(topic, value, key), which returns a future",
    "purge": "close(timeout=0) drops what is not sent",
}
"""Methods of other clients that producers do not have, and why."""

_client_ids = itertools.count(1)


class KafkaProducer(_twin.FastSend[FutureRecordMetadata]):
    """Publishes records to a Kafka cluster. Any number of threads may share one.

    `send` hands a record over and returns a future at once; a thread of the producer's own sends
    batches, retries, and runs callbacks. By default every record is acknowledged by all in-sync
    replicas and written once and in order (`acks="all"`, `enable_idempotence=True`).

        with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
            future = producer.send("orders", b"espresso", key=b"table-7")
            print(future.get(timeout=10).offset)

    The options are kafka-python's and Java's. `pyclient.config.options.ProducerOptions` lists them
    with their types, docs/configuration.md also with their defaults.

    Attributes:
        DEFAULT_CONFIG: the options and their defaults.
        config: the options in use, by either spelling of their names.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = default_config(producer_config.DEFINITION)

    def __init__(
        self, *refused: Never, environment: Any = None, **configs: Unpack[ProducerOptions]
    ) -> None:
        """Connect to the cluster.

        Args:
            refused: there are no positional arguments.
            environment: an `Environment`: clock, network and threads, for tests and simulation.
            configs: options, as in `linger_ms=20` or `**{"linger.ms": 20}`.

        Raises:
            KafkaConfigurationError: an option is unknown, wrong, or contradicts another.
            NoBrokersAvailable: no broker answered within `bootstrap_timeout_ms`.
        """
        refuse_positional(self, refused)
        config = producer_config.parse(configs)
        client_id = config["client.id"] or f"pyclient-producer-{next(_client_ids)}"
        self.config = config = config.derive({"client.id": client_id})
        serializers = (config["key.serializer"], config["value.serializer"])
        closers = (getattr(one, "close", None) for one in serializers)
        # Closed with the producer, in reverse order.
        self._closers: deque[Callable[[], object]] = deque(filter(callable, closers))
        try:
            self._set_up(config, environment)
        except BaseException:
            self._close_plugins()
            raise

    def _set_up(self, config: Config, environment: Environment | None) -> None:
        client_id = config["client.id"]
        made = plugins.create("interceptor.classes", config["interceptor.classes"], config)
        self._interceptors = ProducerInterceptors(made) if made else None
        if self._interceptors is not None:
            self._closers.append(self._interceptors.close)
        self._core = core = ProducerCore(config, client_id, environment)
        try:
            reporters = config["metric.reporters"] if config["metrics.enabled"] else None
            reporters = plugins.create("metric.reporters", reporters, config)
            figures = core.metrics.metrics(client_id).values()
            self._closers.append(Reporters(reporters, figures).close)
            self._intake = intake = RecordIntake(config, core)
            self._bulk = self._choose_send(intake)
            core.start()
            if config["api.version"] is None:
                core.engine.bootstrap(config["bootstrap.timeout.ms"])
        except BaseException:
            core.close(1)  # nothing is under way but attempts to connect
            raise

    def _choose_send(self, intake: RecordIntake) -> BulkIntake:
        """Choose the fastest path for `send` and the bulk sends that the configuration allows."""
        # No reference back to the producer, so that it is collected when the program drops it.
        slow_send: Callable[..., FutureRecordMetadata] = intake.send
        if self._interceptors is not None:
            slow_send = partial(self._interceptors.send, intake.send)
        is_plain = intake.is_plain and self._interceptors is None
        slots = self._core.accumulator.slots if is_plain else None
        one_by_one = _twin.FastSend[FutureRecordMetadata]()
        for sends in (self, one_by_one):
            sends._set_up_send(slots, self._core.engine.clock, slow_send, FutureRecordMetadata)
        return BulkIntake(intake, one_by_one.send, is_plain)

    def send_many(
        self,
        topic: str,
        values: Sequence[Any],
        keys: Sequence[Any] | None = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> SentRecords:
        """Publish many records in one call, which costs a fraction of as many calls of `send`.

        Records of a partition keep their order. A record that cannot be taken (it is too large,
        or there is no memory for `max_block_ms`) fails its future; those before it are sent.

        Args:
            topic: where to.
            values: as `send` takes them.
            keys: as many, if there are any.
            partition: for all of them; by default by key, or the sticky one.
            timestamp_ms: for all of them; by default now.

        Returns:
            Their futures, as a sequence; its `get()` waits for all.

        Raises:
            As `send` does, before any record is taken.
        """
        return self._bulk.send_many(topic, values, keys, partition, timestamp_ms)

    def send_arrow(
        self,
        topic: str | None,
        data: pyarrow.Table | pyarrow.RecordBatch | pyarrow.Array,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        allow_null: bool = False,
    ) -> SentRecords:
        """Publish Arrow columns, a record a row, without an object a row.

        The column `value` holds bytes or text. Further columns, each if wanted: `key`; `topic`;
        `partition` (integers, null where the key decides); `headers` (lists of structs of a name
        and bytes); `timestamp` (timestamps, or milliseconds since 1970; null for the default).

        Args:
            topic: where to; None if there is a column `topic`.
            data: the columns, or an array of values.
            partition: for all of them; by default by key, or the sticky one.
            timestamp_ms: for those without one; by default now.
            allow_null: also send rows with neither a key nor a value, as Java's producer does.

        Returns:
            The futures, as `send_many` does; `failures()` tells which rows failed.

        Raises:
            As `send` does, before any record is taken; TypeError and ValueError also for columns
            of other types or names.
        """
        return self._bulk.send_arrow(topic, data, partition, timestamp_ms, allow_null)

    # --- transactions ------------------------------------------------------------------------

    def init_transactions(self) -> None:
        """Get ready for transactions. Once, before the first one.

        Fences an earlier producer with the same `transactional_id`, and aborts a transaction that
        it has left open. Calling it again after success does nothing.

        Raises:
            KafkaTimeoutError: it takes longer than `max_block_ms`; call it again to go on waiting.
            TransactionalIdAuthorizationError: the id is not allowed; it can be called again.
            IllegalStateError: there is no `transactional_id`, or this is a callback.
            KafkaError: the producer cannot be used; says what to do.
        """
        self._transactions("init_transactions()").init()

    def begin_transaction(self) -> None:
        """Begin a transaction. Everything that is sent until its end is part of it.

        Raises:
            IllegalStateError: it is not its turn; says what to call first.
            ProducerFencedError: another producer has taken over this `transactional_id`.
            KafkaError: the producer, or the transaction before, has failed; says what to do.
        """
        self._transactions("begin_transaction()").begin()

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: ConsumerGroupMetadata | str,
    ) -> None:
        """Commit a consumer's offsets if, and only if, the transaction is committed.

        Args:
            offsets: the next offset to read of each partition, as for `consumer.commit`.
            group_metadata: `consumer.group_metadata()`, which lets the coordinator refuse a member
                that has lost its partitions; or a group id, without that check.

        Raises:
            CommitFailedError: the consumer has lost its partitions: abort the transaction.
            KafkaTimeoutError: it takes longer than `max_block_ms`; call it again.
            As `begin_transaction`.
        """
        transactions = self._transactions("send_offsets_to_transaction()")
        transactions.send_offsets(offsets, group_metadata)

    def prepare_transaction(self) -> PreparedTransaction:
        """Flush the transaction and leave it open, for another process to end it.

        `KafkaAdminClient.end_transaction` takes the result. `close` leaves a prepared transaction
        open, until the coordinator aborts it after `transaction_timeout_ms`; until the close,
        `commit_transaction` and `abort_transaction` work too.

        Raises:
            KafkaTimeoutError: it takes longer than `max_block_ms`; call it again to go on waiting.
            As `commit_transaction`.
        """
        return self._transactions("prepare_transaction()").prepare()

    def commit_transaction(self) -> None:
        """Flush, and make the transaction's records and offsets visible, all at once.

        Raises:
            KafkaTimeoutError: it takes longer than `max_block_ms`. It may be committed or not:
                call it again until it returns.
            TransactionAbortableError: records could not be written: call `abort_transaction`.
            ProducerFencedError: another producer has taken over, or the transaction has timed out.
            IllegalStateError: no transaction is open, or this is a callback.
            KafkaError: the producer cannot be used; says what to do.
        """
        self._transactions("commit_transaction()").commit()

    def abort_transaction(self) -> None:
        """End the transaction without effect. Records that were not sent yet fail.

        Raises:
            KafkaTimeoutError: it takes longer than `max_block_ms`; call it again to go on waiting.
            IllegalStateError: no transaction is open, or this is a callback.
            KafkaError: the producer cannot be used; says what to do.
        """
        self._transactions("abort_transaction()").abort()

    def transaction(self) -> AbstractContextManager[None]:
        """A transaction as a `with` block: committed at its end, aborted if the block raises.

            with producer.transaction():
                producer.send("orders", b"espresso")

        A commit that fails is aborted, too; one that times out is not: `commit_transaction` tells
        what became of it.
        """
        return self._transactions("transaction()").scope()

    def _transactions(self, call: str) -> Transactions:
        found = self._core.transactions
        if found is None:
            raise IllegalStateError(
                f"{call}: this producer is not transactional: give it a transactional_id"
            )
        return found

    # --- the end -----------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> None:
        """Block until every record sent before this call is delivered or has failed.

        Their callbacks have run, too. Records that other threads send meanwhile are not waited
        for. Without a timeout this ends at the latest when `delivery_timeout_ms` is over.

        Raises:
            KafkaTimeoutError: records were still in flight after `timeout` seconds.
            IllegalStateError: called in a callback, or in a forked child.
        """
        self._core.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Send what was handed over, at most for `timeout` seconds, then end.

        Records that are not acknowledged by then fail. Without a timeout this ends at the latest
        when `delivery_timeout_ms` is over. Closing twice does no harm, nor do several threads at
        once: each returns when all is over, and a shorter timeout counts for all. An open
        transaction is aborted, unless it is prepared.

        Raises:
            IllegalStateError: called in a callback.
            ValueError: the timeout is negative.
        """
        self._core.close(timeout)
        self._close_plugins()

    def _close_plugins(self) -> None:
        while self._closers:
            with suppress(IndexError):  # another thread closes, too
                closer = self._closers.pop()
                try:
                    closer()
                except Exception:
                    log.warning("%r failed", closer, exc_info=True)

    def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic; waits for its metadata, at most `max_block_ms`.

        Raises:
            KafkaTimeoutError: there is no metadata; says why.
            IllegalStateError: the producer cannot be used, or this is a callback.
            TypeError, ValueError: not a topic's name.
        """
        return self._intake.partitions_for(topic)

    @overload
    def metrics(self, raw: Literal[False] = False) -> dict[str, dict[str, float]]: ...

    @overload
    def metrics(self, raw: Literal[True]) -> dict[MetricName, KafkaMetric]: ...

    def metrics(
        self, raw: bool = False
    ) -> dict[str, dict[str, float]] | dict[MetricName, KafkaMetric]:
        """The metrics, by Kafka's groups and names; `raw` returns a `KafkaMetric` for each."""
        metrics = self._core.metrics
        return metrics.metrics(self._core.client_id) if raw else metrics.snapshot()

    def bootstrap_connected(self) -> bool:
        """Whether a broker has answered so far."""
        return self._core.engine.metadata.snapshot.version > 0

    @classmethod
    def max_usable_produce_magic(cls, api_version: object) -> int:
        """The version of the record format: 2, whatever the broker's version is."""
        del api_version
        return 2

    if not TYPE_CHECKING:  # a type checker would take every name

        def __getattr__(self, name: str) -> NoReturn:
            refuse_missing(self, name, _NOT_THERE)

    def __reduce__(self) -> NoReturn:
        raise not_picklable(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)  # not if the configuration was refused
        if core is not None and core.is_usable:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self, stacklevel=2)
            core.close_in_background()

    def __repr__(self) -> str:
        return f"<KafkaProducer client_id={self._core.client_id}>"
