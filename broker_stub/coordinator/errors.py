"""What a group's client is told when the log of its coordinator refuses a record.

Clients of groups know the coordinator's errors, not those of a partition: after NOT_COORDINATOR
they look for the coordinator again, which with several brokers is another one, and repeat. Apache
Kafka translates just so.
"""

from __future__ import annotations

from typing import Final

from pyclient.error_codes import (
    BrokerResponseError,
    CoordinatorNotAvailableError,
    InvalidFetchSizeError,
    KafkaStorageError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)

_TRANSLATED: Final[dict[type[BrokerResponseError], type[BrokerResponseError]]] = {
    UnknownTopicOrPartitionError: CoordinatorNotAvailableError,
    NotEnoughReplicasError: CoordinatorNotAvailableError,
    RequestTimedOutError: CoordinatorNotAvailableError,
    NotLeaderOrFollowerError: NotCoordinatorError,
    KafkaStorageError: NotCoordinatorError,
    RecordTooLargeError: UnknownServerError,
    RecordBatchTooLargeError: UnknownServerError,
    InvalidFetchSizeError: UnknownServerError,
}


def as_coordinator(error: BrokerResponseError) -> BrokerResponseError:
    """The coordinator's word for an error of its log; itself where there is none."""
    for refused, told in _TRANSLATED.items():
        if isinstance(error, refused):
            return told(str(error))
    return error
