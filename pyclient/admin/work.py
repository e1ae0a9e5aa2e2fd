"""What an admin call wants done to named things, and how far that is.

A thing is a topic, a partition, a group, a resource with a configuration. Nothing here waits or
sends: `AdminRequests.settle` does. Each piece of work belongs to the thread of its call.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar

from pyclient.admin.results import AnyResult, Outcome, error_of
from pyclient.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    LeaderNotAvailableError,
    NotControllerError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    ProtocolError,
    ThrottlingQuotaExceededError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")

Route: TypeAlias = Callable[[Sequence[Key], Deadline], Mapping[int | None, Sequence[Key]]]
"""Which node has to serve which of the things named; None stands for any node."""

# Of the errors that a result can tell, these and no others say that nothing was tried: the same
# request may work soon, perhaps at another node.
_NOT_TRIED: Final = (
    NotControllerError,
    ThrottlingQuotaExceededError,
    LeaderNotAvailableError,
    NotLeaderOrFollowerError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
# Retriable by their flag, since metadata may be late; to an admin's caller they are the answer.
_ANSWERS: Final = (UnknownTopicOrPartitionError, UnknownTopicIdError)
_DOUBT: Final = (
    "an earlier attempt of this call got no answer; it may have been carried out, and this may be"
    " its effect"
)


class Work(Generic[Key, Item, AnyResult]):
    """Named things for brokers to deal with: see `AdminRequests.settle`.

    Attributes:
        items: what a request says of each thing, by its key.
        make_request: the request for some of the items.
        results_of: what a response says of each thing.
        name_of: what errors call a thing.
        route: where each thing is dealt with.
        deadline: when all must be done.
        repeatable: doing it twice does no harm, so that another attempt may follow any passing
            error, and not only those that say that nothing was tried.
    """

    def __init__(
        self,
        items: Mapping[Key, Item],
        make_request: Callable[[list[Item]], Message],
        results_of: Callable[[Any], Iterable[tuple[Key, AnyResult]]],
        name_of: Callable[[Key], str],
        route: Route[Key],
        deadline: Deadline,
        *,
        repeatable: bool = False,
    ) -> None:
        self.items = items
        self.make_request = make_request
        self.results_of = results_of
        self.name_of = name_of
        self.route = route
        self.deadline = deadline
        self.repeatable = repeatable

    def is_settled(self, error: KafkaError) -> bool:
        """Whether this error is what became of a thing, and not a reason to try again."""
        if isinstance(error, _NOT_TRIED):
            return False
        return not (self.repeatable and is_passing(error))


class Settling(Generic[Key, Item, AnyResult]):
    """How far one piece of work is."""

    def __init__(self, work: Work[Key, Item, AnyResult]) -> None:
        self._work = work
        self.pending = dict(work.items)
        self.in_doubt: set[Key] = set()
        self.outcomes: dict[Key, Outcome[AnyResult]] = {}

    def request(self, keys: Sequence[Key]) -> Message:
        """The request for some of what is pending."""
        return self._work.make_request([self.pending[key] for key in keys])

    def unknown(self) -> list[str]:
        """The names of what may have been changed, or may be yet: nobody has told."""
        if self._work.repeatable:
            return []
        return [self._work.name_of(key) for key in self.pending if key in self.in_doubt]

    def take_in(self, asked: Sequence[Key], response: Message) -> KafkaError | None:
        """Note what a response says; the reason to try again, if there is one."""
        trouble: KafkaError | None = None
        results = dict(self._work.results_of(response))
        for key in asked:
            name = self._work.name_of(key)
            if key not in results:
                raise ProtocolError(f"{type(response).__name__} does not mention {name}")
            error = error_of(name, results[key], _DOUBT if key in self.in_doubt else "")
            if error is not None and not self._work.is_settled(error):
                trouble = error
                continue
            self.outcomes[key] = Outcome(results[key], error)
            del self.pending[key]
        return trouble


def is_passing(error: KafkaError) -> bool:
    """Whether another attempt may go better."""
    return error.retriable and not isinstance(error, _ANSWERS)


def raise_first_error(outcomes: Mapping[Key, Outcome[AnyResult]]) -> None:
    """Raise what went wrong first, in the order of the request."""
    for outcome in outcomes.values():
        if outcome.error is not None:
            raise outcome.error
