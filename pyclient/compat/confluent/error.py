"""confluent-kafka's `KafkaError` and `KafkaException`, and how this package's errors map to them.

Codes below zero are librdkafka's own; the others are Kafka's, under librdkafka's names.
"""

from typing import Any, TypeAlias

from pyclient import error_codes, errors

Text: TypeAlias = str
"""`str`, which is the name of a method in `KafkaError`."""

_BROKER_NAMES = {
    -1: "UNKNOWN",
    0: "NO_ERROR",
    2: "INVALID_MSG",
    3: "UNKNOWN_TOPIC_OR_PART",
    4: "INVALID_MSG_SIZE",
    6: "NOT_LEADER_FOR_PARTITION",
    10: "MSG_SIZE_TOO_LARGE",
    11: "STALE_CTRL_EPOCH",
    17: "TOPIC_EXCEPTION",
}
"""Where librdkafka's name of a code is not Kafka's."""

_LOCAL: dict[int, tuple[str, str]] = {
    -199: ("_BAD_MSG", "the message cannot be read"),
    -198: ("_BAD_COMPRESSION", "the data cannot be decompressed"),
    -197: ("_DESTROY", "the client is closing"),
    -196: ("_FAIL", "communication with the broker failed"),
    -195: ("_TRANSPORT", "the connection to the broker failed"),
    -194: ("_CRIT_SYS_RESOURCE", "a system resource is exhausted"),
    -193: ("_RESOLVE", "the host name cannot be resolved"),
    -192: ("_MSG_TIMED_OUT", "the message was not delivered in time"),
    -191: ("_PARTITION_EOF", "the end of the partition is reached"),
    -190: ("_UNKNOWN_PARTITION", "there is no such partition"),
    -189: ("_FS", "a file operation failed"),
    -188: ("_UNKNOWN_TOPIC", "there is no such topic"),
    -187: ("_ALL_BROKERS_DOWN", "no broker can be reached"),
    -186: ("_INVALID_ARG", "an argument or option is not valid"),
    -185: ("_TIMED_OUT", "the operation timed out"),
    -184: ("_QUEUE_FULL", "the producer's queue is full"),
    -183: ("_ISR_INSUFF", "too few replicas are in sync"),
    -182: ("_NODE_UPDATE", "a broker's address changed"),
    -181: ("_SSL", "TLS failed"),
    -180: ("_WAIT_COORD", "the coordinator is not known yet"),
    -179: ("_UNKNOWN_GROUP", "there is no such group"),
    -178: ("_IN_PROGRESS", "the operation is in progress"),
    -177: ("_PREV_IN_PROGRESS", "an earlier operation is in progress"),
    -176: ("_EXISTING_SUBSCRIPTION", "there is a subscription already"),
    -175: ("_ASSIGN_PARTITIONS", "partitions are being assigned"),
    -174: ("_REVOKE_PARTITIONS", "partitions are being revoked"),
    -173: ("_CONFLICT", "the call conflicts with another use"),
    -172: ("_STATE", "the client is in the wrong state for this"),
    -171: ("_UNKNOWN_PROTOCOL", "the protocol is not known"),
    -170: ("_NOT_IMPLEMENTED", "this is not implemented"),
    -169: ("_AUTHENTICATION", "authentication failed"),
    -168: ("_NO_OFFSET", "there is no offset to commit"),
    -167: ("_OUTDATED", "this is out of date"),
    -166: ("_TIMED_OUT_QUEUE", "the operation timed out before it was sent"),
    -165: ("_UNSUPPORTED_FEATURE", "the broker does not support this"),
    -164: ("_WAIT_CACHE", "waiting for metadata"),
    -163: ("_INTR", "the operation was interrupted"),
    -162: ("_KEY_SERIALIZATION", "the key cannot be serialized"),
    -161: ("_VALUE_SERIALIZATION", "the value cannot be serialized"),
    -160: ("_KEY_DESERIALIZATION", "the key cannot be deserialized"),
    -159: ("_VALUE_DESERIALIZATION", "the value cannot be deserialized"),
    -158: ("_PARTIAL", "the response is incomplete"),
    -157: ("_READ_ONLY", "this cannot be changed"),
    -156: ("_NOENT", "there is no such entry"),
    -155: ("_UNDERFLOW", "the data ends too early"),
    -154: ("_INVALID_TYPE", "the type is not valid"),
    -153: ("_RETRY", "the operation should be retried"),
    -152: ("_PURGE_QUEUE", "the message was purged before it was sent"),
    -151: ("_PURGE_INFLIGHT", "the message was purged after it was sent"),
    -150: ("_FATAL", "the client cannot be used any more"),
    -149: ("_INCONSISTENT", "the state is inconsistent"),
    -148: ("_GAPLESS_GUARANTEE", "messages would be left out"),
    -147: ("_MAX_POLL_EXCEEDED", "max.poll.interval.ms passed without a poll"),
    -146: ("_UNKNOWN_BROKER", "the broker is not known"),
    -145: ("_NOT_CONFIGURED", "the client is not configured for this"),
    -144: ("_FENCED", "another instance with the same id took over"),
    -143: ("_APPLICATION", "the application raised an error"),
    -142: ("_ASSIGNMENT_LOST", "the partitions were lost to other members"),
    -141: ("_NOOP", "nothing was done"),
    -140: ("_AUTO_OFFSET_RESET", "there is no offset to start from"),
    -139: ("_LOG_TRUNCATION", "the log was truncated"),
    -138: ("_INVALID_DIFFERENT_RECORD", "another record of the batch is not valid"),
    -137: ("_DESTROY_BROKER", "the broker was removed"),
}


def _names() -> dict[int, str]:
    names = {code: one.name for code, one in error_codes.classes().items()}
    return names | {code: name for code, (name, _) in _LOCAL.items()} | _BROKER_NAMES


_NAMES = _names()


class KafkaError:
    """An error as confluent-kafka shows it: a code with a text; equal to another by its code.

    Every code is an attribute: `KafkaError._PARTITION_EOF`, `KafkaError.UNKNOWN_TOPIC_OR_PART`.
    """

    __slots__ = ("_code", "_is_fatal", "_is_retriable", "_reason", "_requires_abort")

    def __init__(
        self,
        error: int,
        reason: Text | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = error
        self._reason = reason
        self._is_fatal = fatal
        self._is_retriable = retriable
        self._requires_abort = txn_requires_abort

    def code(self) -> int:
        """The code, to compare with the constants of this class."""
        return self._code

    def name(self) -> Text:
        """The name of the code."""
        return _NAMES.get(self._code, f"ERR_{self._code}?")

    def str(self) -> Text:
        """What happened."""
        return self._reason if self._reason is not None else _text(self._code)

    def fatal(self) -> bool:
        """Whether the client cannot be used any more."""
        return self._is_fatal

    def retriable(self) -> bool:
        """Whether the same call may succeed later."""
        return self._is_retriable

    def txn_requires_abort(self) -> bool:
        """Whether the transaction must be aborted."""
        return self._requires_abort

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KafkaError):
            return self._code == other._code
        return self._code == other

    def __hash__(self) -> int:
        return hash(self._code)

    def __reduce__(self) -> tuple[Any, ...]:
        flags = (self._is_fatal, self._is_retriable, self._requires_abort)
        return KafkaError, (self._code, self._reason, *flags)

    def __repr__(self) -> Text:
        return f'KafkaError{{code={self.name()},val={self._code},str="{self.str()}"}}'


class KafkaException(Exception):
    """Raised by every call that fails; `args[0]` is the `KafkaError`."""


def _text(code: int) -> str:
    if code in _LOCAL:
        return _LOCAL[code][1]
    known = error_codes.classes().get(code)
    if known is None:
        return "success" if code == 0 else "an error that this client does not know"
    return error_codes.summary(known)


for _code, _name in _NAMES.items():
    setattr(KafkaError, _name, _code)


def _local(name: str) -> int:
    return next(code for code, (known, _) in _LOCAL.items() if known == name)


TIMED_OUT = _local("_TIMED_OUT")
MSG_TIMED_OUT = _local("_MSG_TIMED_OUT")
PARTITION_EOF = _local("_PARTITION_EOF")
INVALID_ARG = _local("_INVALID_ARG")
STATE = _local("_STATE")
UNKNOWN_PARTITION = _local("_UNKNOWN_PARTITION")
NO_OFFSET = _local("_NO_OFFSET")
NOT_IMPLEMENTED = _local("_NOT_IMPLEMENTED")
PURGE_QUEUE = _local("_PURGE_QUEUE")
QUEUE_FULL = _local("_QUEUE_FULL")
TRANSPORT = _local("_TRANSPORT")
ALL_BROKERS_DOWN = _local("_ALL_BROKERS_DOWN")
APPLICATION = _local("_APPLICATION")
MSG_SIZE_TOO_LARGE = error_codes.RecordTooLargeError.code

# The first class that an error is an instance of decides.
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.KafkaConfigurationError, INVALID_ARG),
    (errors.RecordDeserializationError, _local("_VALUE_DESERIALIZATION")),
    (errors.NoOffsetForPartitionError, _local("_AUTO_OFFSET_RESET")),
    (errors.NoBrokersAvailable, ALL_BROKERS_DOWN),
    (errors.KafkaTimeoutError, TIMED_OUT),
    (errors.SslAuthenticationError, _local("_SSL")),
    (errors.UnsupportedVersionError, _local("_UNSUPPORTED_FEATURE")),
    (errors.CommitFailedError, error_codes.IllegalGenerationError.code),
    (errors.KafkaConnectionError, TRANSPORT),
    (errors.IllegalStateError, STATE),
    (errors.ProtocolError, _local("_BAD_MSG")),
)


def convert(error: Exception, timed_out: int = TIMED_OUT) -> KafkaError:
    """This package's error as confluent-kafka's; `timed_out` is the code of a timeout."""
    code = getattr(error, "code", None)
    if code is None:
        code = next((code for kind, code in _CODES if isinstance(error, kind)), APPLICATION)
    if code == TIMED_OUT:
        code = timed_out
    return KafkaError(
        code,
        str(error),
        fatal=isinstance(error, errors.FencedInstanceIdError | errors.ProducerFencedError),
        retriable=bool(getattr(error, "retriable", False)),
        txn_requires_abort=bool(getattr(error, "abortable", False)),
    )


def exception(error: Exception) -> KafkaException:
    """The exception to raise instead of this package's error."""
    return KafkaException(convert(error))


class PurgedError(errors.KafkaError):
    """The message was purged before it was sent."""

    code = PURGE_QUEUE


def failure(code: int, reason: str) -> KafkaException:
    """An exception with one of librdkafka's codes."""
    return KafkaException(KafkaError(code, reason))
