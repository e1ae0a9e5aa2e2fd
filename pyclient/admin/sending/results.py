"""What brokers answer about each named thing: a result, perhaps with an error."""

from typing import Generic, NamedTuple, Protocol, TypeVar

from pyclient.errors import KafkaError, for_code


class Result(Protocol):
    """A response's part about one thing that the request named."""

    error_code: int


AnyResult = TypeVar("AnyResult", bound=Result)


class Outcome(NamedTuple, Generic[AnyResult]):
    """The outcome for one thing: the broker's result, and its error, if any."""

    result: AnyResult
    error: KafkaError | None


def error_of(name: str, result: Result, remark: str = "") -> KafkaError | None:
    """The error in a result, with the thing's name; None for success."""
    if not result.error_code:
        return None
    message = getattr(result, "error_message", None)  # few have a place for it
    text = ": ".join(part for part in (name, message) if part)
    return for_code(result.error_code)(f"{text} ({remark})" if remark else text)
