"""The error a client gets when the log of its coordinator refuses a record.

Clients of a coordinator understand its errors, not those of a partition: after
NOT_COORDINATOR they look up the coordinator again and retry. The mapping is Apache Kafka's.
"""

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
    """Translate an error of the log; other errors stay as they are."""
    for refused, told in _TRANSLATED.items():
        if isinstance(error, refused):
            return told(str(error))
    return error
