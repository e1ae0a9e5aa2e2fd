"""Exit codes, and the one line that an error becomes: what happened, and what to do about it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyclient import error_codes as codes
from pyclient import errors

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
NOT_FOUND: Final = 4
DENIED: Final = 5
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

MEANINGS: Final = {
    OK: "success",
    FAILED: "the operation failed, or a part of it did",
    USAGE: "a wrong option, argument or configuration",
    UNREACHABLE: "the cluster could not be reached, or did not answer in time",
    NOT_FOUND: "a topic, group, user or other object does not exist",
    DENIED: "not authenticated, or not authorized",
    INTERRUPTED: "interrupted (Ctrl-C)",
    BROKEN_PIPE: "the reader of the output went away",
}

_CODES: Final[tuple[tuple[tuple[type[Exception], ...], int], ...]] = (
    ((errors.KafkaConfigurationError,), USAGE),
    ((codes.AuthorizationError, codes.AuthenticationError, errors.SslAuthenticationError), DENIED),
    (
        (
            codes.UnknownTopicOrPartitionError,
            codes.UnknownTopicIdError,
            codes.GroupIdNotFoundError,
            codes.ResourceNotFoundError,
            codes.TransactionalIdNotFoundError,
            codes.LogDirNotFoundError,
            codes.BrokerIdNotRegisteredError,
            errors.UnknownBrokerIdError,
            FileNotFoundError,
        ),
        NOT_FOUND,
    ),
    (
        (
            errors.KafkaConnectionError,
            errors.KafkaTimeoutError,
            codes.NetworkError,
            codes.RequestTimedOutError,
            errors.NodeNotReadyError,
        ),
        UNREACHABLE,
    ),
)

_HINTS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (errors.NoBrokersAvailable, "name the cluster with --bootstrap-server or --profile"),
    (codes.UnknownTopicOrPartitionError, "`pyclient topics list` shows the topics"),
    (codes.GroupNotEmptyError, "stop the group's members first"),
    (codes.GroupIdNotFoundError, "`pyclient groups list` shows the groups"),
    (codes.UnknownMemberIdError, "stop the group's members first"),
    (codes.TransactionalIdNotFoundError, "`pyclient transactions list` shows the transactions"),
    (codes.ResourceNotFoundError, "`pyclient users list` shows the users"),
    (
        codes.UnsupportedVersionError,
        "the brokers do not have this feature; see `pyclient cluster api-versions`",
    ),
    (codes.TopicExistsError, "--if-not-exists makes this a success"),
    (codes.GroupSubscribedToTopicError, "stop the members that read the topic first"),
    (codes.SecurityDisabledError, "the cluster has no authorizer, so there are no ACLs"),
    (codes.AuthorizationError, "an administrator can allow it with an ACL"),
    (codes.TopicDeletionDisabledError, "the brokers have delete.topic.enable=false"),
    (codes.RecordTooLargeError, "raise max.message.bytes of the topic and max.request.size"),
)


def exit_code(error: BaseException) -> int:
    """The exit code for an error that ended a command."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    for classes, code in _CODES:
        if isinstance(error, classes):
            return code
    return FAILED


def describe(error: BaseException) -> str:
    """What happened and what to do about it, on one line."""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    return with_hint(" ".join(text.split()), hint_for(error))


def with_hint(text: str, hint: str | None) -> str:
    """The text as a sentence, and the hint behind it."""
    if hint is None:
        return text
    return f"{text if text.endswith('?') else text.rstrip('.') + '.'} Hint: {hint}"


def hint_for(error: BaseException) -> str | None:
    """What the user can do about an error, if anything is known."""
    return next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)


@contextmanager
def refused_values() -> Iterator[None]:
    """Within it, a ValueError of the admin client is the user's mistake, as a wrong option is."""
    try:
        yield
    except ValueError as error:
        if isinstance(error, errors.KafkaError):
            raise
        raise errors.KafkaConfigurationError(str(error)) from error


def complain(text: str) -> None:
    """Write an error, as one line, to standard error."""
    print(f"pyclient: {text}", file=sys.stderr)


def abandon_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter exits without complaint."""
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, sys.stdout.fileno())
    except (OSError, ValueError):  # replaced by an object without a descriptor
        pass
    finally:
        os.close(sink)
