"""Every error a program can meet: the brokers' (from `error_codes`) and the client's own.

Kafka's name is the class; kafka-python's name, where it differs, is an alias at the end. Errors
carry their facts as attributes, and survive pickling with them.
"""

from pyclient.error_codes import *  # noqa: F403  every class of the table is public here too
from pyclient.error_codes import (
    ClusterAuthorizationError,
    ControllerMovedError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    CorruptRecordError,
    DelegationTokenAuthorizationError,
    DelegationTokenDisabledError,
    DuplicateSequenceError,
    GroupAuthorizationError,
    GroupNotEmptyError,
    InvalidFetchSizeError,
    InvalidMetadataError,
    InvalidPidMappingError,
    InvalidReplicaAssignmentError,
    InvalidTxnTimeoutError,
    KafkaError,
    NetworkError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    PrincipalDeserializationError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    RetriableError,
    SaslAuthenticationError,
    TopicAuthorizationError,
    TopicExistsError,
    TransactionalIdAuthorizationError,
    UnknownServerError,
    UnsupportedByAuthenticationError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from pyclient.types import OffsetAndMetadata, TopicPartition


class ProtocolError(KafkaError):
    """Bytes that do not follow Kafka's protocol, or a value that the protocol cannot carry.

    Attributes:
        message_name: the message being read or written, as in `ProduceRequest`.
        version: its version.
        path: the field, as in `topic_data[2].partition_data[0].records`.
        offset: the byte where the fault was found, counted from the start of the message.
    """

    def __init__(
        self,
        *args: object,
        message_name: str | None = None,
        version: int | None = None,
        path: str | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(*args)
        self.message_name = message_name
        self.version = version
        self.path = path
        self.offset = offset

    def __str__(self) -> str:
        parts = []
        if self.message_name is not None:
            version = "" if self.version is None else f" v{self.version}"
            parts.append(f"{self.message_name}{version}")
        if self.path:
            parts.append(f"field {self.path}")
        if self.offset is not None:
            parts.append(f"byte {self.offset}")
        where = ", ".join(parts)
        return f"{where}: {super().__str__()}" if where else super().__str__()


class CorrelationIdError(RetriableError, ProtocolError):
    """A response carries another correlation id than the oldest request in flight."""


class InvalidReceiveError(ProtocolError):
    """A frame announces a negative length, or one above the limit."""


class KafkaConfigurationError(KafkaError, ValueError):
    """An option is unknown, has a value that is not allowed, or contradicts another.

    Attributes:
        key: the option, as in `linger.ms`.
        value: the value that was given.
    """

    def __init__(self, *args: object, key: str | None = None, value: object = None) -> None:
        super().__init__(*args)
        self.key = key
        self.value = value


class KafkaConnectionError(InvalidMetadataError):
    """A connection to a broker could not be made, or broke."""


class SslAuthenticationError(KafkaConnectionError):
    """The TLS handshake failed: one side does not accept the other's certificate or version.

    Waiting does not help; but since an operator's change may, it counts as retriable.
    """


class NodeNotReadyError(RetriableError):
    """There is no connection to the broker yet that could take a request."""


class TooManyInFlightRequests(RetriableError):
    """The connection has as many requests in flight as it may have."""


class KafkaTimeoutError(RetriableError):
    """The time that the caller allowed has passed."""


class BufferExhaustedError(KafkaTimeoutError):
    """The producer's memory is full, and stayed so for `max.block.ms`.

    Attributes:
        buffered: bytes held by records that are not acknowledged yet.
        limit: `buffer.memory`.
    """

    def __init__(
        self, *args: object, buffered: int | None = None, limit: int | None = None
    ) -> None:
        super().__init__(*args)
        self.buffered = buffered
        self.limit = limit


# kafka-python 2 raises this class, kafka-python 3 a timeout: a program may catch either.
class NoBrokersAvailable(KafkaConnectionError, KafkaTimeoutError):
    """None of the bootstrap addresses could be reached."""


class Cancelled(RetriableError):
    """The operation was given up before it finished."""


class StaleMetadata(InvalidMetadataError):
    """The metadata that a decision was made on has been replaced since."""


class MetadataEmptyBrokerList(RetriableError):
    """A metadata response names no broker."""


class UnknownBrokerIdError(KafkaError):
    """The metadata has no broker of this id."""


class IncompatibleBrokerVersion(UnsupportedVersionError):
    """The broker does not have the API, or no version of it, that this needs."""


class UnrecognizedBrokerVersion(KafkaError):
    """The broker's release could not be told from the versions it supports."""


class UnsupportedCodecError(KafkaError):
    """The compression codec is unknown, or its library is not installed."""


class QuotaViolationError(KafkaError):
    """A metric went over the bound that was set for it."""


class IllegalArgumentError(KafkaError):
    """An argument has a value that is not allowed."""


class IllegalStateError(KafkaError):
    """The object is not in a state that allows this call: closed, say, or not subscribed."""


class WakeupError(KafkaError):
    """`wakeup()` was called while the consumer waited."""


class CommitFailedError(KafkaError):
    """The commit failed: the group rebalanced, and the partitions went to another member."""


class NoOffsetForPartitionError(KafkaError):
    """A partition has no committed offset, and `auto.offset.reset` is none."""


class RecordDeserializationError(KafkaError):
    """A deserializer refused a record. The position stays there; to go on, seek past it.

    `__cause__` is what the deserializer raised.

    Attributes:
        topic_partition, offset, timestamp: the record's.
        key, value, headers: as they were sent, in bytes.
        origin: "key" or "value", whichever was refused.
    """

    def __init__(
        self,
        *args: object,
        topic_partition: TopicPartition | None = None,
        offset: int = -1,
        timestamp: int = -1,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: list[tuple[str, bytes | None]] | None = None,
        origin: str = "value",
    ) -> None:
        super().__init__(*args)
        self.topic_partition = topic_partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers or []
        self.origin = origin


class LogTruncationError(OffsetOutOfRangeError):
    """The leader's log ends before the consumer's position: records it has read are gone.

    Raised with `auto.offset.reset=none` only. To go on, seek: to the divergent offset, say.

    Attributes:
        divergent_offsets: per partition the first offset that differs from what was read, None
            where the leader does not know the consumer's epoch.
    """

    code = errno = None  # type: ignore[assignment]  # no broker answers with it

    def __init__(
        self,
        divergent_offsets: dict[TopicPartition, OffsetAndMetadata | None],
        *args: object,
    ) -> None:
        super().__init__(divergent_offsets, *args)
        self.divergent_offsets = divergent_offsets

    def __str__(self) -> str:
        found = ", ".join(
            f"{topic}-{partition} {f'at {point.offset}' if point else '(no common point known)'}"
            for (topic, partition), point in self.divergent_offsets.items()
        )
        return f"the leader's log was truncated below the position: {found}"


class TransactionAbortedError(KafkaError):
    """The record was not sent: its transaction was aborted."""


# kafka-python's names, 3.x and then 2.x, where they are not Kafka's.
KafkaProtocolError = ProtocolError
ClusterAuthorizationFailedError = ClusterAuthorizationError
CorruptRecordException = CorruptRecordError
DelegationTokenAuthDisabledError = DelegationTokenDisabledError
DelegationTokenAuthorizationFailedError = DelegationTokenAuthorizationError
DelegationTokenRequestNotAllowedError = UnsupportedByAuthenticationError
DuplicateSequenceNumberError = DuplicateSequenceError
GroupAuthorizationFailedError = GroupAuthorizationError
InvalidFetchRequestError = InvalidFetchSizeError
InvalidProducerIdMappingError = InvalidPidMappingError
InvalidReplicationAssignmentError = InvalidReplicaAssignmentError
InvalidTransactionTimeoutError = InvalidTxnTimeoutError
MessageSizeTooLargeError = RecordTooLargeError
NetworkExceptionError = NetworkError
NonEmptyGroupError = GroupNotEmptyError
NotLeaderForPartitionError = NotLeaderOrFollowerError
OutOfOrderSequenceNumberError = OutOfOrderSequenceError
PrincipalDeserializationFailureError = PrincipalDeserializationError
RecordListTooLargeError = RecordBatchTooLargeError
SaslAuthenticationFailedError = SaslAuthenticationError
StaleControllerEpochError = ControllerMovedError
TopicAlreadyExistsError = TopicExistsError
TopicAuthorizationFailedError = TopicAuthorizationError
TransactionalIdAuthorizationFailedError = TransactionalIdAuthorizationError
UnknownError = UnknownServerError

AuthenticationFailedError = SaslAuthenticationError
AuthenticationMethodNotSupported = UnsupportedSaslMechanismError
GroupCoordinatorNotAvailableError = CoordinatorNotAvailableError
GroupLoadInProgressError = CoordinatorLoadInProgressError
KafkaUnavailableError = NoBrokersAvailable
NotCoordinatorForGroupError = NotCoordinatorError
