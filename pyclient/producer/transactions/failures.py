"""Which errors end a transaction, which end the producer, and how they are explained.

KIP-1050's flags of the error classes decide where they can; these are the exceptions that Kafka's
own clients make for single requests.
"""

from typing import Final

from pyclient.error_codes import summary
from pyclient.errors import (
    ClusterAuthorizationError,
    IllegalGenerationError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    StaleMemberEpochError,
    TransactionalIdAuthorizationError,
    UnknownMemberIdError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)

FENCED: Final = (InvalidProducerEpochError, ProducerFencedError)
"""What coordinators answer to a producer that was replaced; the first is of older brokers."""

ADDING_FAILS_THE_PRODUCER: Final = (
    *FENCED,
    TransactionalIdAuthorizationError,
    InvalidTxnStateError,
    InvalidPidMappingError,
    UnknownProducerIdError,
)
"""The errors of adding a partition that are not about that partition."""

GROUP_MOVED_ON: Final = frozenset(
    (UnknownMemberIdError.code, IllegalGenerationError.code, StaleMemberEpochError.code)
)
"""The group has given the partitions to another member."""

_FATAL_FOR_BATCHES: Final = (
    ClusterAuthorizationError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)


def is_fatal_for_batches(error: KafkaError) -> bool:
    """Whether the producer cannot go on; all other errors of a batch end only its transaction.

    A leader's INVALID_PRODUCER_EPOCH does not tell why: the coordinator will, at the abort.
    """
    is_replaced = error.application_recoverable and not isinstance(error, InvalidProducerEpochError)
    return is_replaced or isinstance(error, _FATAL_FOR_BATCHES)


def explained(error: KafkaError, transactional_id: str, timeout_ms: int) -> KafkaError:
    """A fatal error, with what to do about it."""
    advice = "close this producer, and make a new one"
    if isinstance(error, FENCED):
        text = (
            f"another producer with transactional.id {transactional_id!r} has taken over, or the"
            f" coordinator has aborted the transaction after transaction.timeout.ms ({timeout_ms}"
            f" ms): {advice}"
        )
        return caused(ProducerFencedError(text), error)
    if isinstance(error, InvalidPidMappingError):
        text = (
            f"the coordinator has another producer id for {transactional_id!r}, or has forgotten"
            f" it: {advice}"
        )
        return caused(InvalidPidMappingError(text), error)
    if isinstance(error, InvalidTxnStateError):
        text = (
            f"the coordinator has no open transaction of {transactional_id!r}: it aborts those that"
            f" take longer than transaction.timeout.ms ({timeout_ms} ms): {advice}"
        )
        return caused(InvalidTxnStateError(text), error)
    if error.args:
        return error
    return type(error)(f"transactional.id {transactional_id!r}: {summary(type(error))}: {advice}")


def caused(error: KafkaError, cause: KafkaError) -> KafkaError:
    """The error, with its cause."""
    error.__cause__ = cause
    return error
