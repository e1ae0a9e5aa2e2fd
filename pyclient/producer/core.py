"""Wires the producer's parts, and owns their lifecycle: start, flush, close.

`KafkaProducer` and `RecordIntake` serialize, partition and append. Any thread may call.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from pyclient import _twin
from pyclient.errors import KafkaConfigurationError, KafkaTimeoutError, UnsupportedCodecError
from pyclient.net import lifetime
from pyclient.net.engine import Engine
from pyclient.producer.batch_sizing import Limits
from pyclient.producer.buffer_pool import BufferPool
from pyclient.producer.metrics import producer_metrics
from pyclient.producer.outcomes import BatchOutcomes, RetryRules
from pyclient.producer.producer_batch import BuilderFactory
from pyclient.producer.producer_id import ProducerIdManager
from pyclient.producer.record_accumulator import RecordAccumulator
from pyclient.producer.sender import Sender, SenderSettings
from pyclient.producer.sequences import Sequences
from pyclient.producer.transactions.calls import Transactions
from pyclient.producer.transactions.manager import TransactionManager
from pyclient.producer.transactions.states import TransactionStatus
from pyclient.records.compression import Codec, compress
from pyclient.timers import Deadline, ExponentialBackoff

if TYPE_CHECKING:
    from pyclient.config.definition import Config
    from pyclient.net.environment import Environment

log = logging.getLogger(__name__)

_CALLBACKS_MS: Final = 10_000
"""How much longer than any delivery can take an unbounded flush waits for callbacks."""
_EXIT_MS: Final = 10_000
"""How long the interpreter's exit waits for records that were not flushed."""
_CONCURRENT_BACKOFF_MS: Final = 20
"""The first pause while the brokers still write the end of the last transaction."""
_END_MS: Final = 1_000
"""How long the I/O thread may take to end, once it is told to."""

_LEVELS: Final = {
    Codec.GZIP: "compression.gzip.level",
    Codec.LZ4: "compression.lz4.level",
    Codec.ZSTD: "compression.zstd.level",
}


class ProducerCore:
    """One producer's parts.

    Attributes:
        is_usable: a hint that is cheap to read: while it is set, `check_usable` would not raise.
        transactions: the calls of a transactional producer; None if it is not one.
    """

    def __init__(self, config: Config, client_id: str, environment: Environment | None) -> None:
        self.client_id = client_id
        self.engine = engine = Engine(
            config,
            client_id=client_id,
            allow_auto_create_topics=config["allow.auto.create.topics"],
            environment=environment,
        )
        batch_size = min(config["batch.size"], config["max.request.size"], config["buffer.memory"])
        self._delivery_timeout_ms: int = config["delivery.timeout.ms"]
        new_builder = _builder_factory(config)
        self.pool = BufferPool(
            config["buffer.memory"],
            batch_size,
            clock=engine.clock,
            waiter=engine.waiter,
            on_exhausted=engine.wake,
        )
        self.accumulator = RecordAccumulator(
            Limits(
                batch_size=batch_size,
                batch_max_size=config["batch.max.size"],
                max_request_size=config["max.request.size"],
                linger_ms=config["linger.ms"],
                delivery_timeout_ms=self._delivery_timeout_ms,
            ),
            self.pool,
            engine,
            new_builder,
            compresses=config["compression.type"] != "none",
        )
        self.metrics = producer_metrics(config, engine.clock, self.pool)
        self.transactions: Transactions | None = None
        self._add_managers(config, batch_size, new_builder)
        engine.metadata.add_listener(self.accumulator.update_metadata)
        engine.metadata.last_used_ms = self.accumulator.last_used_ms
        engine.on_unusable(self._note_unusable)
        engine.add_wait_check(self.accumulator.check_not_interrupted)
        self.is_usable = True
        self._is_closed = False
        self._is_forked = False

    def _add_managers(self, config: Config, batch_size: int, new_builder: BuilderFactory) -> None:
        engine = self.engine
        in_flight_max = config["max.in.flight.requests.per.connection"]
        backoff = ExponentialBackoff(
            engine.entropy, config["retry.backoff.ms"], config["retry.backoff.max.ms"]
        )
        short_backoff = ExponentialBackoff(
            engine.entropy,
            min(_CONCURRENT_BACKOFF_MS, config["retry.backoff.ms"]),
            config["retry.backoff.ms"],
        )
        transactional_id: str | None = config["transactional.id"]
        sequences = None
        if config["enable.idempotence"]:
            sequences = Sequences(in_flight_max, is_transactional=transactional_id is not None)
        self.outcomes = outcomes = BatchOutcomes(
            RetryRules(
                config["retries"], self._delivery_timeout_ms, backoff, batch_size, short_backoff
            ),
            self.accumulator,
            self.pool,
            sequences,
            engine.metadata,
            self.metrics,
            new_builder,
            engine.network.troubles,
        )
        manager = None
        if transactional_id is not None:
            assert sequences is not None, "transactions need idempotence"
            status = TransactionStatus(transactional_id, engine.waiter)
            manager = TransactionManager(
                status,
                config["transaction.timeout.ms"],
                sequences,
                self.accumulator,
                outcomes,
                engine.network,
                backoff,
                short_backoff,
            )
            outcomes.tell_failures(manager.batch_failed)
            self.transactions = Transactions(
                status, manager, self.accumulator, engine, config["max.block.ms"]
            )
        elif sequences is not None:
            engine.add_manager(ProducerIdManager(sequences, self.accumulator, outcomes, backoff))
        settings = SenderSettings(
            acks=config["acks"],
            request_timeout_ms=config["request.timeout.ms"],
            max_request_size=config["max.request.size"],
            in_flight_max=in_flight_max,
            transactional_id=transactional_id,
        )
        engine.add_manager(
            Sender(
                settings,
                self.accumulator,
                self.pool,
                sequences,
                outcomes,
                engine.network,
                engine.metadata,
                self.metrics,
                manager,
            )
        )
        if manager is not None:
            # After the sender, which tells it the partitions to add and completes batches.
            engine.add_manager(manager)

    def start(self) -> None:
        """Start the I/O thread."""
        self.engine.start()
        # At exit the producer closes the engine: it sends its records first.
        lifetime.unwatch(self.engine)
        lifetime.watch(self)

    def check_usable(self, call: str) -> None:
        """Raise if the producer is closed, in a forked child, or broken.

        Raises:
            IllegalStateError: it is; says why.
        """
        self.engine.check_usable(call)

    def flush(self, timeout: float | None) -> None:
        """Send everything that was appended, and wait for the outcomes.

        Raises:
            KafkaTimeoutError: some were not known in time.
            IllegalStateError: called in a callback, or the producer cannot be used.
        """
        if self._is_closed:
            return  # close() has left nothing behind
        self.engine.check_may_wait("flush()")
        self.engine.check_usable("flush()")
        deadline = self._deadline(timeout)
        results = self.accumulator.seal_all()
        self.engine.wake()
        for result in results:
            if not result.wait_finished(deadline):
                seconds = f"{deadline.timeout_ms / 1000:.1f} s"
                if result.is_done:
                    raise KafkaTimeoutError(
                        f"callbacks of finished records were still running after {seconds}"
                    )
                raise KafkaTimeoutError(
                    f"{self.accumulator.incomplete_count} batches are not acknowledged after"
                    f" {seconds}: {self.why_waiting()}"
                )

    def close(self, timeout: float | None) -> None:
        """Send what was appended, at most for `timeout` seconds; fail the rest, and end.

        Several threads may close at once: each waits until all is over, or its own time is, and
        the first whose time is over ends it for all. A close that was interrupted can be called
        again.

        Raises:
            IllegalStateError: called in a callback.
            ValueError: the timeout is negative.
        """
        if self._is_closed or self._is_forked:
            return  # in a forked child, locks and sockets are the parent's
        deadline = self._deadline(timeout)
        self.engine.check_may_wait("close()")
        if self.transactions is not None and self.is_usable:
            self.transactions.close(deadline)
        self.is_usable = False
        results = self.accumulator.close()
        self.pool.close()
        self.engine.wake()
        if not all(result.wait_finished(deadline) for result in results):
            log.warning(
                "%s: closing with %d unacknowledged batches after %.1f s; their records fail: %s",
                self.client_id,
                self.accumulator.incomplete_count,
                deadline.timeout_ms / 1000,
                self.why_waiting(),
            )
        self.engine.close(max(deadline.remaining_ms(), _END_MS))
        self._is_closed = True
        lifetime.unwatch(self)

    def close_in_background(self) -> None:
        """The producer was garbage collected: send its records and end, on a thread of its own."""
        self.engine.run_beside(partial(self.close, None), f"{self.client_id}-close")

    def close_at_exit(self) -> None:
        """Close a producer that is still open when the interpreter exits."""
        self.close(_EXIT_MS / 1000)

    def after_fork_in_child(self) -> None:
        """Mark the producer as unusable: this process is a forked child, without the I/O thread."""
        self._is_forked = True
        self.engine.after_fork_in_child()

    def why_waiting(self) -> str:
        """Describe what keeps records from being acknowledged."""
        troubles = self.engine.network.troubles(self.engine.clock.monotonic_ms())
        return "; ".join(troubles) or "the brokers are reachable, but slower than the records come"

    def _deadline(self, timeout: float | None) -> Deadline:
        """Without a timeout, as long as a delivery can take: every wait is bounded."""
        if timeout is None:
            return Deadline(self.engine.clock, self._delivery_timeout_ms + _CALLBACKS_MS)
        return Deadline(self.engine.clock, timeout * 1000)

    def _note_unusable(self) -> None:
        self.is_usable = False
        self.accumulator.slots.clear()  # no short way past the check


def _builder_factory(config: Config) -> BuilderFactory:
    codec = Codec[config["compression.type"].upper()]
    level = config[_LEVELS[codec]] if codec in _LEVELS else None
    if codec is not Codec.NONE:
        try:
            compress(codec, [b""], level)  # here, and not when the first batch is sent
        except UnsupportedCodecError as error:
            raise KafkaConfigurationError(
                f"compression_type={config['compression.type']!r} cannot be used: {error}",
                key="compression.type",
                value=config["compression.type"],
            ) from error
    return partial(
        _twin.BatchBuilder,
        codec=int(codec),
        level=level,
        transactional=config["transactional.id"] is not None,
    )
