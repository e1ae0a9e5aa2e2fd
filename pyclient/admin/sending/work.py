"""The work of an admin call on named things, and its progress.

A thing is a topic, a partition, a group, or a resource with a configuration. Nothing here waits or
sends: `AdminRequests.settle` does. Work belongs to the calling thread.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from pyclient.admin.sending.results import AnyResult, Outcome, error_of
from pyclient.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    LeaderNotAvailableError,
    NotControllerError,
    NotCoordinatorError,
    NotLeaderOrFollowerError,
    ProtocolError,
    RebalanceInProgressError,
    ThrottlingQuotaExceededError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from pyclient.protocol.schema import Message
from pyclient.timers import Deadline

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class Routed(NamedTuple, Generic[Key]):
    """The things that each node has to serve, and why some have no node.

    The node None stands for any. A retriable error has the thing routed again later.
    """

    nodes: Mapping[int | None, Sequence[Key]]
    failed: Mapping[Key, KafkaError] = MappingProxyType({})


Route: TypeAlias = Callable[[Sequence[Key], Deadline], Routed[Key]]

# Only these errors mean that nothing was attempted: the same request may succeed later, perhaps at
# another node.
_NOT_TRIED: Final = (
    NotControllerError,
    ThrottlingQuotaExceededError,
    LeaderNotAvailableError,
    NotLeaderOrFollowerError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
    RebalanceInProgressError,  # of a group whose offsets are to be changed
)
# Retriable by their flag, since metadata may be late, but final for an admin call.
_ANSWERS: Final = (UnknownTopicOrPartitionError, UnknownTopicIdError)
_DOUBT: Final = (
    "an earlier attempt of this call got no answer; it may have been carried out, and this may be"
    " its effect"
)


class Work(Generic[Key, Item, AnyResult]):
    """Named things that brokers process: see `AdminRequests.settle`.

    Attributes:
        items: each thing's part of a request, by its key.
        make_request: creates the request for some of the items.
        results_of: each thing's part of a response.
        name_of: a thing's name in errors.
        route: which node processes each thing.
        deadline: when everything must be done.
        repeatable: it is safe to do twice, so any retriable error may be retried, not only those
            that mean that nothing was attempted.
        refusal: the result of a thing that no node can serve. Without it, such a thing fails the
            whole call.
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
        refusal: Callable[[Key, KafkaError], AnyResult] | None = None,
    ) -> None:
        self.items = items
        self.make_request = make_request
        self.results_of = results_of
        self.name_of = name_of
        self.route = route
        self.deadline = deadline
        self.repeatable = repeatable
        self.refusal = refusal

    def is_settled(self, error: KafkaError) -> bool:
        """Whether this error is final for a thing, not a reason to retry."""
        if isinstance(error, _NOT_TRIED):
            return False
        return not (self.repeatable and is_passing(error))


class Settling(Generic[Key, Item, AnyResult]):
    """The progress of some work."""

    def __init__(self, work: Work[Key, Item, AnyResult]) -> None:
        self._work = work
        self.pending = dict(work.items)
        self.in_doubt: set[Key] = set()
        self.outcomes: dict[Key, Outcome[AnyResult]] = {}

    def request(self, keys: Sequence[Key]) -> Message:
        """The request for some of the pending things."""
        return self._work.make_request([self.pending[key] for key in keys])

    def unknown(self) -> list[str]:
        """The names of things whose change has an unknown outcome."""
        if self._work.repeatable:
            return []
        return [self._work.name_of(key) for key in self.pending if key in self.in_doubt]

    def take_in_unrouted(self, failed: Mapping[Key, KafkaError]) -> KafkaError | None:
        """Process things without a node; returns the reason to retry, if any.

        Raises:
            KafkaError: one can't be served, and the work has no `refusal`.
        """
        trouble: KafkaError | None = None
        for key, error in failed.items():
            if is_passing(error):
                trouble = error
            elif self._work.refusal is None:
                raise error
            else:
                self.outcomes[key] = Outcome(self._work.refusal(key, error), error)
                del self.pending[key]
        return trouble

    def take_in(self, asked: Sequence[Key], response: Message) -> KafkaError | None:
        """Process a response; returns the reason to retry, if any."""
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
    """Whether a retry may succeed."""
    if isinstance(error, RebalanceInProgressError):
        return True
    return error.retriable and not isinstance(error, _ANSWERS)


def raise_first_error(outcomes: Mapping[Key, Outcome[AnyResult]]) -> None:
    """Raise the first error, in the order of the request."""
    for outcome in outcomes.values():
        if outcome.error is not None:
            raise outcome.error
