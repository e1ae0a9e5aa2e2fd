"""Requests about partitions, grouped by topic: a result or an error for each.

Pure functions.
"""

from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

from pyclient.error_codes import BrokerResponseError

Asked = TypeVar("Asked")
Result = TypeVar("Result")
TopicResult = TypeVar("TopicResult")


def result_of_each(
    topic: str,
    partitions: Iterable[Asked],
    act: Callable[[str, Asked], Result],
    failed: Callable[[Asked, BrokerResponseError], Result],
) -> list[Result]:
    """`act(topic, asked)` for each partition of a topic; `failed(asked, error)` if that raises."""
    results = []
    for asked in partitions:
        try:
            results.append(act(topic, asked))
        except BrokerResponseError as error:
            results.append(failed(asked, error))
    return results


def topic_results(
    kind: Callable[..., TopicResult],
    topics: Iterable[Any],
    act: Callable[[str, Any], object],
    failed: Callable[[Any, BrokerResponseError], object],
) -> list[TopicResult]:
    """`result_of_each` for requests and responses whose topics have a `name` and `partitions`."""
    return [
        kind(name=one.name, partitions=result_of_each(one.name, one.partitions, act, failed))
        for one in topics
    ]


def always_fail(error: BrokerResponseError) -> Callable[[str, object], NoReturn]:
    """An `act` for `result_of_each` that fails every partition."""

    def fail(_topic: str, _asked: object) -> NoReturn:
        raise error

    return fail
