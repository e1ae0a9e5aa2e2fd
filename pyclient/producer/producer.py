"""`KafkaProducer`: publish records, with kafka-python's arguments and Kafka's behaviour."""

from __future__ import annotations

import itertools
import logging
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Never, NoReturn, Self, Unpack, overload

from pyclient import _twin
from pyclient.config import plugins
from pyclient.config import producer as producer_config
from pyclient.config.common import default_config
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

log = logging.getLogger(__name__)

_TRANSACTIONS = "transactions are not supported yet"
_NOT_THERE = {
    "abort_transaction": _TRANSACTIONS,
    "begin_transaction": _TRANSACTIONS,
    "commit_transaction": _TRANSACTIONS,
    "init_transactions": _TRANSACTIONS,
    "send_offsets_to_transaction": _TRANSACTIONS,
    "max_usable_produce_magic": "the record format is always version 2",
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
        topic: str,
        data: pyarrow.Table | pyarrow.RecordBatch | pyarrow.Array,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> SentRecords:
        """Publish Arrow columns of bytes or text, a record a row, without an object a row.

        Args:
            topic: where to.
            data: the columns `value` and, if there are keys, `key`; or an array of values.
            partition: for all of them; by default by key, or the sticky one.
            timestamp_ms: for all of them; by default now.

        Returns:
            The futures, as `send_many` does.

        Raises:
            As `send` does, before any record is taken; TypeError and ValueError also for columns
            of other types or names.
        """
        return self._bulk.send_arrow(topic, data, partition, timestamp_ms)

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
        once: each returns when all is over, and a shorter timeout counts for all.

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
