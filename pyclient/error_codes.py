"""Kafka's wire error codes: one class per code, and the families they belong to.

A leaf: client and broker share it. The flags of a class drive retries and refreshes
(`if error.retriable`), so no caller needs a chain of isinstance checks. Programs import these
names from `pyclient.errors`, which adds the client's own errors and kafka-python's names.
"""

import re
from typing import Any, ClassVar

NONE = 0
"""The code of success. It has no class in Kafka; `NoError` stands for it here."""


class KafkaError(Exception):
    """The base of all errors of this library.

    Attributes:
        code: the wire code, None for an error that never travels.
        retriable: the same request may succeed later.
        refresh_metadata: the client's picture of the cluster is out of date.
        refresh_coordinator: the client asked a broker that is not the coordinator.
        abortable: the transaction has failed, and aborting it makes the producer usable again.
        application_recoverable: this client has lost its place: a new one takes over.
        invalid_configuration: only a change of configuration, rights or versions helps.
    """

    code: ClassVar[int | None] = None
    retriable: ClassVar[bool] = False
    refresh_metadata: ClassVar[bool] = False
    refresh_coordinator: ClassVar[bool] = False
    abortable: ClassVar[bool] = False
    application_recoverable: ClassVar[bool] = False
    invalid_configuration: ClassVar[bool] = False
    invalid_metadata: ClassVar[bool] = False  # kafka-python's name of refresh_metadata

    def __str__(self) -> str:
        return super().__str__() if self.args else summary(type(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.args == getattr(other, "args", None)

    def __hash__(self) -> int:
        return hash((type(self), repr(self.args)))


def summary(error_class: type[KafkaError]) -> str:
    """The first line of the class's docstring: what the error means, for a message."""
    return (error_class.__doc__ or error_class.__name__).partition("\n")[0]


class RetriableError(KafkaError):
    """The same request may succeed when it is sent again."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """The client's metadata is out of date: refresh it, then try again."""

    refresh_metadata = True
    invalid_metadata = True


class BrokerResponseError(KafkaError):
    """A broker answered with an error code.

    Attributes:
        name: Kafka's name of the code, as in `NOT_LEADER_OR_FOLLOWER`.
        errno, message, description: kafka-python's names for the code, its name and its meaning.
    """

    code: ClassVar[int]
    name: ClassVar[str]
    errno: ClassVar[int]
    message: ClassVar[str]
    description: ClassVar[str]

    def __init_subclass__(cls, code: int | None = None, name: str | None = None) -> None:
        super().__init_subclass__()
        if code is None:
            return  # a family, or a narrower case of the code that its parent stands for
        if code in _CLASSES:
            raise TypeError(
                f"error code {code} is both {_CLASSES[code].__name__} and {cls.__name__}"
            )
        cls.code = cls.errno = code
        cls.name = cls.message = name or _constant_name(cls.__name__)
        cls.description = summary(cls)
        _CLASSES[code] = cls

    def __str__(self) -> str:
        if not hasattr(self, "name"):  # a family, raised as such
            return super().__str__()
        return f"{super().__str__()} ({self.name}, error {self.code})"


_CLASSES: dict[int, type[BrokerResponseError]] = {}


def _constant_name(class_name: str) -> str:
    """Convert `NotLeaderOrFollowerError` to `NOT_LEADER_OR_FOLLOWER`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", class_name.removesuffix("Error")).upper()


def classes() -> dict[int, type[BrokerResponseError]]:
    """The classes of all codes that are known so far, by code."""
    return dict(_CLASSES)


def for_code(code: int) -> type[BrokerResponseError]:
    """The class of a wire code; a code from a newer broker gets a class that keeps the number."""
    return _CLASSES.get(code) or _unrecognized(code)


def code_of(error: KafkaError) -> int:
    """The wire code of an error; UNKNOWN_SERVER_ERROR if it has none."""
    return -1 if error.code is None else error.code


def _unrecognized(code: int) -> type[BrokerResponseError]:
    """Create the class of an unknown code, once."""
    namespace = {
        "__doc__": f"The broker answered with error code {code}, which this client does not know.",
        "__module__": __name__,
        # No module has the class under its name, so its instances pickle by the code.
        "__reduce__": lambda self: (_rebuild, (code, self.args)),
    }
    made: type[BrokerResponseError] = type(
        f"UnrecognizedError{code}", (UnknownServerError,), namespace
    )
    made.code = made.errno = code
    made.name = made.message = f"UNRECOGNIZED_{code}"
    made.description = summary(made)
    # setdefault: two threads that meet the same new code get the same class.
    return _CLASSES.setdefault(code, made)


def _rebuild(code: int, args: tuple[Any, ...]) -> BrokerResponseError:
    return for_code(code)(*args)


class AuthorizationError(BrokerResponseError):
    """The principal may not do this."""

    invalid_configuration = True


class AuthenticationError(BrokerResponseError):
    """The client could not prove who it is."""

    invalid_configuration = True


# Codes whose errors carry facts.


class CorruptRecordError(RetriableError, BrokerResponseError, code=2, name="CORRUPT_MESSAGE"):
    """Record bytes failed their checksum, have an invalid size, or are otherwise corrupt.

    Attributes:
        base_offset: the base offset of the batch, where it could be read.
        position: the byte where the fault was found, counted from the start of the input.
    """

    def __init__(
        self, *args: object, base_offset: int | None = None, position: int | None = None
    ) -> None:
        super().__init__(*args)
        self.base_offset = base_offset
        self.position = position

    def __str__(self) -> str:
        facts = (("base offset", self.base_offset), ("position", self.position))
        where = ", ".join(f"{label} {value}" for label, value in facts if value is not None)
        return f"{super().__str__()} at {where}" if where else super().__str__()


class RecordTooLargeError(BrokerResponseError, code=10, name="MESSAGE_TOO_LARGE"):
    """A record, or a batch of them, is larger than the topic or the producer allows.

    Attributes:
        size: the size in bytes, where it is known.
        limit: the largest size allowed, where it is known.
    """

    def __init__(self, *args: object, size: int | None = None, limit: int | None = None) -> None:
        super().__init__(*args)
        self.size = size
        self.limit = limit


# One row per code; the flags come from the families.
# fmt: off
class NoError(BrokerResponseError, code=NONE, name="NONE"):
    """No error: it worked."""
class UnknownServerError(BrokerResponseError, code=-1, name="UNKNOWN_SERVER_ERROR"):
    """The broker met an error that it did not expect; its log has the cause."""
class OffsetOutOfRangeError(BrokerResponseError, code=1):
    """The offset is outside the range that the partition keeps."""
class UnknownTopicOrPartitionError(InvalidMetadataError, BrokerResponseError, code=3):
    """The broker does not have this topic or partition."""
class InvalidFetchSizeError(BrokerResponseError, code=4):
    """The fetch size is not valid."""
class LeaderNotAvailableError(InvalidMetadataError, BrokerResponseError, code=5):
    """The partition has no leader for the moment: an election is under way."""
class NotLeaderOrFollowerError(InvalidMetadataError, BrokerResponseError, code=6):
    """The broker is not the leader of the partition, or holds no replica of it."""
class RequestTimedOutError(RetriableError, BrokerResponseError, code=7):
    """The broker could not finish the request in the time that the request allowed."""
class BrokerNotAvailableError(BrokerResponseError, code=8):
    """The broker is not available."""
class ReplicaNotAvailableError(InvalidMetadataError, BrokerResponseError, code=9):
    """The broker has no replica of the partition."""
class ControllerMovedError(BrokerResponseError, code=11, name="STALE_CONTROLLER_EPOCH"):
    """The controller moved to another broker."""
class OffsetMetadataTooLargeError(BrokerResponseError, code=12):
    """The metadata string of a committed offset is too large."""
class NetworkError(InvalidMetadataError, BrokerResponseError, code=13, name="NETWORK_EXCEPTION"):
    """The connection broke before a response was received."""
class CoordinatorLoadInProgressError(RetriableError, BrokerResponseError, code=14):
    """The coordinator is still loading its state."""
class CoordinatorNotAvailableError(RetriableError, BrokerResponseError, code=15):
    """The coordinator is not available."""
    refresh_coordinator = True
class NotCoordinatorError(RetriableError, BrokerResponseError, code=16):
    """The broker is not the coordinator."""
    refresh_coordinator = True
class InvalidTopicError(BrokerResponseError, code=17, name="INVALID_TOPIC_EXCEPTION"):
    """The topic's name is not valid, or the request may not use this topic."""
    invalid_configuration = True
class RecordBatchTooLargeError(BrokerResponseError, code=18, name="RECORD_LIST_TOO_LARGE"):
    """The request holds a record batch larger than a segment of the log."""
    invalid_configuration = True
class NotEnoughReplicasError(RetriableError, BrokerResponseError, code=19):
    """Too few replicas are in sync; nothing was written."""
class NotEnoughReplicasAfterAppendError(RetriableError, BrokerResponseError, code=20):
    """Too few replicas are in sync; the leader alone has the records."""
class InvalidRequiredAcksError(BrokerResponseError, code=21):
    """Acks must be 0, 1 or -1 (all)."""
    invalid_configuration = True
class IllegalGenerationError(BrokerResponseError, code=22):
    """The generation of the group is not the current one."""
    application_recoverable = True
class InconsistentGroupProtocolError(BrokerResponseError, code=23):
    """No assignment protocol of this member suits the group's other members."""
class InvalidGroupIdError(BrokerResponseError, code=24):
    """The group id is not valid."""
class UnknownMemberIdError(BrokerResponseError, code=25):
    """The coordinator does not know this member."""
    application_recoverable = True
class InvalidSessionTimeoutError(BrokerResponseError, code=26):
    """The session timeout is outside the range that the broker allows."""
class RebalanceInProgressError(BrokerResponseError, code=27):
    """The group is rebalancing: the member has to join again."""
class InvalidCommitOffsetSizeError(BrokerResponseError, code=28):
    """The offset commit is too large."""
class TopicAuthorizationError(AuthorizationError, code=29, name="TOPIC_AUTHORIZATION_FAILED"):
    """The principal may not use this topic."""
class GroupAuthorizationError(AuthorizationError, code=30, name="GROUP_AUTHORIZATION_FAILED"):
    """The principal may not use this group."""
class ClusterAuthorizationError(AuthorizationError, code=31, name="CLUSTER_AUTHORIZATION_FAILED"):
    """The principal may not do this to the cluster."""
class InvalidTimestampError(BrokerResponseError, code=32):
    """A record's timestamp is out of the range that the topic allows."""
class UnsupportedSaslMechanismError(AuthenticationError, code=33):
    """The broker does not support this SASL mechanism."""
class IllegalSaslStateError(AuthenticationError, code=34):
    """The request does not belong in this state of the SASL exchange."""
class UnsupportedVersionError(BrokerResponseError, code=35):
    """The broker does not support this version of the API."""
    invalid_configuration = True
class TopicExistsError(BrokerResponseError, code=36, name="TOPIC_ALREADY_EXISTS"):
    """A topic of this name exists already."""
class InvalidPartitionsError(BrokerResponseError, code=37):
    """The number of partitions is not valid."""
class InvalidReplicationFactorError(BrokerResponseError, code=38):
    """The replication factor is below 1 or above the number of brokers."""
    invalid_configuration = True
class InvalidReplicaAssignmentError(BrokerResponseError, code=39):
    """The replica assignment is not valid."""
class InvalidConfigurationError(BrokerResponseError, code=40, name="INVALID_CONFIG"):
    """The configuration is not valid."""
    invalid_configuration = True
class NotControllerError(RetriableError, BrokerResponseError, code=41):
    """The broker is not the controller."""
class InvalidRequestError(BrokerResponseError, code=42):
    """The request contradicts the protocol; the broker's log may say how."""
class UnsupportedForMessageFormatError(BrokerResponseError, code=43):
    """The broker's message format cannot do this."""
    invalid_configuration = True
class PolicyViolationError(BrokerResponseError, code=44):
    """The request violates a policy of the cluster."""
class OutOfOrderSequenceError(BrokerResponseError, code=45, name="OUT_OF_ORDER_SEQUENCE_NUMBER"):
    """The batch's sequence number does not follow the last one of its producer."""
class DuplicateSequenceError(BrokerResponseError, code=46, name="DUPLICATE_SEQUENCE_NUMBER"):
    """The broker has a batch of this sequence number already."""
class InvalidProducerEpochError(BrokerResponseError, code=47):
    """The producer's epoch is older than the one that the broker knows."""
    application_recoverable = True
class InvalidTxnStateError(BrokerResponseError, code=48):
    """The transaction is not in a state that allows this."""
class InvalidPidMappingError(BrokerResponseError, code=49, name="INVALID_PRODUCER_ID_MAPPING"):
    """The producer id does not belong to this transactional id."""
    application_recoverable = True
class InvalidTxnTimeoutError(BrokerResponseError, code=50, name="INVALID_TRANSACTION_TIMEOUT"):
    """The transaction timeout is larger than the broker allows."""
class ConcurrentTransactionsError(RetriableError, BrokerResponseError, code=51):
    """The transactional id has another operation under way."""
class TransactionCoordinatorFencedError(BrokerResponseError, code=52):
    """The transaction coordinator that wrote this is no longer the current one."""
class TransactionalIdAuthorizationError(
    AuthorizationError, code=53, name="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
):
    """The principal may not use this transactional id."""
class SecurityDisabledError(BrokerResponseError, code=54):
    """The broker has its security features turned off."""
class OperationNotAttemptedError(BrokerResponseError, code=55):
    """Not attempted, because another part of the same request failed."""
class KafkaStorageError(
    InvalidMetadataError, BrokerResponseError, code=56, name="KAFKA_STORAGE_ERROR"
):
    """The broker cannot reach the log's disk."""
class LogDirNotFoundError(BrokerResponseError, code=57):
    """The broker has no such log folder."""
class SaslAuthenticationError(AuthenticationError, code=58, name="SASL_AUTHENTICATION_FAILED"):
    """SASL authentication failed."""
class UnknownProducerIdError(BrokerResponseError, code=59):
    """The broker has no state of this producer id: its last records are gone, or never came."""
class ReassignmentInProgressError(BrokerResponseError, code=60):
    """The partition is being reassigned."""
class DelegationTokenDisabledError(
    BrokerResponseError, code=61, name="DELEGATION_TOKEN_AUTH_DISABLED"
):
    """Delegation tokens are turned off."""
class DelegationTokenNotFoundError(BrokerResponseError, code=62):
    """The broker does not have this delegation token."""
class DelegationTokenOwnerMismatchError(BrokerResponseError, code=63):
    """The principal is neither owner nor renewer of this delegation token."""
class UnsupportedByAuthenticationError(
    BrokerResponseError, code=64, name="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"
):
    """Delegation tokens cannot be requested over this kind of connection."""
class DelegationTokenAuthorizationError(
    AuthorizationError, code=65, name="DELEGATION_TOKEN_AUTHORIZATION_FAILED"
):
    """The principal may not use this delegation token."""
class DelegationTokenExpiredError(BrokerResponseError, code=66):
    """The delegation token has expired."""
class InvalidPrincipalTypeError(BrokerResponseError, code=67):
    """The type of the principal is not supported."""
class GroupNotEmptyError(BrokerResponseError, code=68, name="NON_EMPTY_GROUP"):
    """The group has members."""
class GroupIdNotFoundError(BrokerResponseError, code=69):
    """The group does not exist."""
class FetchSessionIdNotFoundError(RetriableError, BrokerResponseError, code=70):
    """The broker does not have this fetch session."""
class InvalidFetchSessionEpochError(RetriableError, BrokerResponseError, code=71):
    """The epoch of the fetch session is not the expected one."""
class ListenerNotFoundError(InvalidMetadataError, BrokerResponseError, code=72):
    """The leader has no listener of the name that the request came in by."""
class TopicDeletionDisabledError(BrokerResponseError, code=73):
    """The broker does not allow topics to be deleted."""
class FencedLeaderEpochError(InvalidMetadataError, BrokerResponseError, code=74):
    """The leader epoch of the request is older than the broker's."""
class UnknownLeaderEpochError(RetriableError, BrokerResponseError, code=75):
    """The leader epoch of the request is newer than the broker's."""
class UnsupportedCompressionTypeError(BrokerResponseError, code=76):
    """The compression type is not supported."""
class StaleBrokerEpochError(BrokerResponseError, code=77):
    """The broker has registered again since."""
class OffsetNotAvailableError(RetriableError, BrokerResponseError, code=78):
    """The new leader does not know the high watermark yet."""
class MemberIdRequiredError(BrokerResponseError, code=79):
    """The coordinator gave out a member id: the member has to join again with it."""
class PreferredLeaderNotAvailableError(InvalidMetadataError, BrokerResponseError, code=80):
    """The preferred leader is not available."""
class GroupMaxSizeReachedError(BrokerResponseError, code=81):
    """The group has as many members as the broker allows."""
class FencedInstanceIdError(BrokerResponseError, code=82):
    """Another member has taken this group.instance.id."""
    application_recoverable = True
class EligibleLeadersNotAvailableError(InvalidMetadataError, BrokerResponseError, code=83):
    """No replica that may become leader is available."""
class ElectionNotNeededError(InvalidMetadataError, BrokerResponseError, code=84):
    """The partition needs no election: its leader is the preferred one."""
class NoReassignmentInProgressError(BrokerResponseError, code=85):
    """The partition is not being reassigned."""
class GroupSubscribedToTopicError(BrokerResponseError, code=86):
    """The group is subscribed to the topic, so its offsets cannot be deleted."""
class InvalidRecordError(BrokerResponseError, code=87):
    """The broker refused a record: it breaks a rule of its topic."""
class UnstableOffsetCommitError(RetriableError, BrokerResponseError, code=88):
    """A transaction that commits this offset is still open."""
class ThrottlingQuotaExceededError(RetriableError, BrokerResponseError, code=89):
    """The client exceeded its quota."""
class ProducerFencedError(BrokerResponseError, code=90):
    """A newer producer with the same transactional id has taken over."""
    application_recoverable = True
class ResourceNotFoundError(BrokerResponseError, code=91):
    """The resource does not exist."""
class DuplicateResourceError(BrokerResponseError, code=92):
    """The request names the same resource twice."""
class UnacceptableCredentialError(BrokerResponseError, code=93):
    """The credential does not meet the broker's rules."""
class InconsistentVoterSetError(BrokerResponseError, code=94):
    """Sender or receiver is not one of the quorum's voters."""
class InvalidUpdateVersionError(BrokerResponseError, code=95):
    """The update's version is not valid."""
class FeatureUpdateFailedError(BrokerResponseError, code=96):
    """The finalized features could not be updated."""
class PrincipalDeserializationError(
    BrokerResponseError, code=97, name="PRINCIPAL_DESERIALIZATION_FAILURE"
):
    """The principal of a forwarded request could not be read."""
class SnapshotNotFoundError(BrokerResponseError, code=98):
    """The broker does not have this snapshot."""
class PositionOutOfRangeError(BrokerResponseError, code=99):
    """The position is outside the snapshot."""
class UnknownTopicIdError(InvalidMetadataError, BrokerResponseError, code=100):
    """The broker does not have a topic of this id."""
class DuplicateBrokerRegistrationError(BrokerResponseError, code=101):
    """Another broker uses this broker id."""
class BrokerIdNotRegisteredError(BrokerResponseError, code=102):
    """No broker of this id is registered."""
class InconsistentTopicIdError(InvalidMetadataError, BrokerResponseError, code=103):
    """The topic id of the request is not the one of the log."""
class InconsistentClusterIdError(BrokerResponseError, code=104):
    """The cluster id of the request is not the broker's."""
class TransactionalIdNotFoundError(BrokerResponseError, code=105):
    """The transactional id does not exist."""
class FetchSessionTopicIdError(
    RetriableError, BrokerResponseError, code=106, name="FETCH_SESSION_TOPIC_ID_ERROR"
):
    """The fetch session mixes topic ids and topic names."""
class IneligibleReplicaError(BrokerResponseError, code=107):
    """The new in-sync replicas contain one that may not be in sync."""
class NewLeaderElectedError(BrokerResponseError, code=108):
    """The partition changed as asked, and its leader changed too."""
class OffsetMovedToTieredStorageError(BrokerResponseError, code=109):
    """The offset is in tiered storage."""
class FencedMemberEpochError(BrokerResponseError, code=110):
    """The coordinator fenced this member: it gives up its partitions and joins again."""
class UnreleasedInstanceIdError(BrokerResponseError, code=111):
    """Another member of the group still holds this instance id."""
class UnsupportedAssignorError(BrokerResponseError, code=112):
    """The group does not support this assignor."""
class StaleMemberEpochError(BrokerResponseError, code=113):
    """The member's epoch is old; its next heartbeat brings the new one."""
class MismatchedEndpointTypeError(BrokerResponseError, code=114):
    """The request was sent to the wrong kind of endpoint."""
class UnsupportedEndpointTypeError(BrokerResponseError, code=115):
    """This kind of endpoint is not supported."""
class UnknownControllerIdError(BrokerResponseError, code=116):
    """No controller of this id is known."""
class UnknownSubscriptionIdError(BrokerResponseError, code=117):
    """The telemetry subscription id is not valid, or no longer."""
class TelemetryTooLargeError(BrokerResponseError, code=118):
    """The telemetry push is larger than the broker accepts."""
class InvalidRegistrationError(BrokerResponseError, code=119):
    """The controller refused the broker's registration."""
class TransactionAbortableError(BrokerResponseError, code=120):
    """The transaction failed; aborting it makes the producer usable again."""
    abortable = True
class InvalidRecordStateError(BrokerResponseError, code=121):
    """The record is not in a state that allows this acknowledgement."""
class ShareSessionNotFoundError(RetriableError, BrokerResponseError, code=122):
    """The broker does not have this share session."""
class InvalidShareSessionEpochError(RetriableError, BrokerResponseError, code=123):
    """The epoch of the share session is not the expected one."""
class FencedStateEpochError(BrokerResponseError, code=124):
    """The state epoch of the share group is not the expected one."""
class InvalidVoterKeyError(BrokerResponseError, code=125):
    """The voter's key is not the one of the receiving replica."""
class DuplicateVoterError(BrokerResponseError, code=126):
    """The voter is one of the quorum's voters already."""
class VoterNotFoundError(BrokerResponseError, code=127):
    """The voter is not one of the quorum's voters."""
class InvalidRegularExpressionError(BrokerResponseError, code=128):
    """The regular expression is not valid."""
class RebootstrapRequiredError(BrokerResponseError, code=129):
    """The client has to start again from its bootstrap addresses."""
class StreamsInvalidTopologyError(BrokerResponseError, code=130):
    """The streams topology is not valid."""
class StreamsInvalidTopologyEpochError(BrokerResponseError, code=131):
    """The epoch of the streams topology is not valid."""
class StreamsTopologyFencedError(BrokerResponseError, code=132):
    """The streams topology is older than the group's."""
class ShareSessionLimitReachedError(RetriableError, BrokerResponseError, code=133):
    """The broker has as many share sessions as it allows."""
# fmt: on
