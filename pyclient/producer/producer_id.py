"""Requests the idempotent producer's id: at the start, and when its epochs are used up.

A request manager of its own, on the I/O thread. Nothing is drained before there is an id; if the
brokers refuse one for good, the producer cannot go on, and everything fails with their reason.
"""

import logging
from typing import Final

from pyclient.error_codes import for_code
from pyclient.errors import KafkaError, UnsupportedVersionError
from pyclient.net.request_manager import NOTHING_TO_DO, Outcome, PollResult, UnsentRequest
from pyclient.producer.outcomes import BatchOutcomes
from pyclient.producer.record_accumulator import RecordAccumulator
from pyclient.producer.sequences import Sequences
from pyclient.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from pyclient.timers import ExponentialBackoff

log = logging.getLogger(__name__)

_NO_TRANSACTION_TIMEOUT_MS: Final = 2**31 - 1  # what Kafka's clients send without transactions


class ProducerIdManager:
    """Asks any broker for a producer id whenever there is none."""

    def __init__(
        self,
        sequences: Sequences,
        accumulator: RecordAccumulator,
        outcomes: BatchOutcomes,
        backoff: ExponentialBackoff,
    ) -> None:
        self._sequences = sequences
        self._accumulator = accumulator
        self._outcomes = outcomes
        self._backoff = backoff
        self._is_asking = False
        self._is_refused = False
        self._attempts = 0
        self._not_before_ms = 0.0

    def poll(self, now_ms: float) -> PollResult:
        """An InitProducerId request, if one is due."""
        if self._sequences.has_identity or self._is_asking or self._is_refused:
            return NOTHING_TO_DO
        if now_ms < self._not_before_ms:
            return PollResult(next_poll_ms=self._not_before_ms)
        self._is_asking = True
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS
        )
        return PollResult([UnsentRequest(request, None, self._on_done)])

    def close(self, error: KafkaError) -> None:
        """Nothing waits here; the sender fails the batches."""

    def _on_done(self, outcome: Outcome, now_ms: float) -> None:
        self._is_asking = False
        if isinstance(outcome, KafkaError):
            self._on_error(outcome, now_ms)
            return
        assert isinstance(outcome, InitProducerIdResponse)
        if outcome.error_code:
            self._on_error(for_code(outcome.error_code)(), now_ms)
            return
        self._attempts = 0
        log.info("The producer has id %d, epoch %d", outcome.producer_id, outcome.producer_epoch)
        self._sequences.set_identity(outcome.producer_id, outcome.producer_epoch)
        self._accumulator.reevaluate_all(now_ms)

    def _on_error(self, error: KafkaError, now_ms: float) -> None:
        if error.retriable:
            log.info("No producer id yet: %s", error)
            self._not_before_ms = now_ms + self._backoff.backoff_ms(self._attempts)
            self._attempts += 1
            return
        if isinstance(error, UnsupportedVersionError):
            error = UnsupportedVersionError(
                "the brokers are too old for idempotence: set enable_idempotence=False"
            )
        log.error("The brokers refuse a producer id: %s", error)
        self._is_refused = True
        self._outcomes.abort(error)
