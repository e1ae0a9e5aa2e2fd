"""`broker.faults`: what goes wrong, ordered by a test.

A fault is for the requests of one API, if wished of one topic, partition or client, and a `When`
says which of those. What it does to them is one of: fail with an error code, delay the answer,
hang up, cut the answer off. Hidden APIs and versions play an older broker.

The test's threads order faults, the serving thread applies them (`fault_injector`). Both see
whole tuples and mappings, which `_lock` keeps from being replaced by two threads at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple, TypeAlias, TypedDict, Unpack

from broker_stub.handlers import SERVED
from broker_stub.testing.when import Always, Next, Nth, Randomly, When
from pyclient.error_codes import BrokerResponseError, for_code
from pyclient.protocol.registry import ApiVersionRange, request_class
from pyclient.protocol.schema import Message

Api: TypeAlias = type[Message]
"""The request of the API that is meant: `ProduceRequest`."""
Error: TypeAlias = type[BrokerResponseError] | BrokerResponseError | int
"""What to answer: a class, an error with a message of its own, or a wire code."""


class Scope(TypedDict, total=False):
    """What a fault is limited to; all requests of its API otherwise."""

    topic: str
    """Requests about this topic, and of their answers only its part."""
    partition: int
    """The same for one partition of the topic."""
    client_id: str
    """Requests of the client that calls itself so."""


class Target(NamedTuple):
    """A topic, or one partition of it."""

    topic: str
    partition: int | None


class Fail(NamedTuple):
    """Answer with an error."""

    error: BrokerResponseError
    after: bool


class Delay(NamedTuple):
    """Hold the answer back."""

    milliseconds: float


class Drop(NamedTuple):
    """Hang up without an answer."""

    after: bool


class Cut(NamedTuple):
    """Hang up within the answer."""

    after_bytes: int


Effect: TypeAlias = Fail | Delay | Drop | Cut


class Fault:
    """One order, as long as it stands. `hits` counts the requests it was applied to."""

    __slots__ = ("_faults", "api_key", "client_id", "effect", "hits", "target", "when")

    def __init__(
        self,
        faults: Faults,
        api_key: int,
        effect: Effect,
        when: When,
        target: Target | None,
        client_id: str | None,
    ) -> None:
        self._faults = faults
        self.api_key = api_key
        self.effect = effect
        self.when = when
        self.target = target
        self.client_id = client_id
        self.hits = 0

    def cancel(self) -> None:
        """Apply it to no more requests. Any thread, any number of times."""
        self._faults.discard(self)


class Faults:
    """The faults of one broker; they stand over its restarts. Any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.standing: tuple[Fault, ...] = ()
        self.hidden: Mapping[int, ApiVersionRange | None] = {}

    def fail_next(
        self,
        api: Api,
        error: Error,
        count: int = 1,
        *,
        after: bool = False,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Fail the next `count` requests; see `fail`."""
        return self.fail(api, error, Next(count), after=after, **scope)

    def fail_nth(
        self,
        api: Api,
        error: Error,
        number: int,
        *,
        after: bool = False,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Fail the `number`-th request from now on, the next being number 1; see `fail`."""
        return self.fail(api, error, Nth(number), after=after, **scope)

    def fail_randomly(
        self,
        api: Api,
        error: Error,
        probability: float,
        seed: int,
        *,
        after: bool = False,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Fail each request with a probability, the same ones for the same seed; see `fail`."""
        return self.fail(api, error, Randomly(probability, seed), after=after, **scope)

    def fail(
        self,
        api: Api,
        error: Error,
        when: When,
        *,
        after: bool = False,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Answer requests with an error.

        Of the faults that would fail, drop or cut a request, the first that was ordered gets it,
        and the others wait for the next. With a topic (and a partition of it), only its part of
        the answer has the error; what else is in the request is carried out and answered.
        A produce request with acks=0 gets no answer: there the connection is closed, as always.

        Args:
            api: the request's class, as in `ProduceRequest`.
            error: a class of `pyclient.errors`, an instance (its text goes along where the
                protocol has a place for it), or a wire code.
            when: which requests: `Next`, `Nth`, `Randomly` or `Always`.
            after: carry the request out first; by default nothing of it happens.
            scope: which requests it is about: `topic`, `partition`, `client_id`.
        """
        return self._order(api, Fail(_error(error), after), when, scope)

    def delay(
        self,
        api: Api,
        milliseconds: float,
        when: When | None = None,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Hold answers back, by default all of them from now on.

        The request is carried out at once; later requests of its connection wait behind it.
        """
        if milliseconds < 0:
            raise ValueError(f"an answer can't come {-milliseconds} ms early")
        return self._order(api, Delay(milliseconds), when or Always(), scope)

    def drop(
        self,
        api: Api,
        when: When | None = None,
        *,
        after: bool = False,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Hang up in place of an answer, by default to the next request only.

        With `after`, the request is carried out first: its client can't know.
        """
        return self._order(api, Drop(after), when or Next(), scope)

    def cut(
        self,
        api: Api,
        after_bytes: int,
        when: When | None = None,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Send so many bytes of an answer, then hang up; by default of the next one only.

        The bytes count from the frame's length on, which has four. An answer that is shorter
        arrives whole.
        """
        if after_bytes < 0:
            raise ValueError(f"there is nothing before byte 0: {after_bytes}")
        return self._order(api, Cut(after_bytes), when or Next(), scope)

    def hide(self, api: Api, *, above: int | None = None, below: int | None = None) -> None:
        """Neither advertise nor serve an API, or its versions above or below one.

        Plays an older broker. Clients ask for the versions once per connection: one that is
        connected already is hung up on when it uses a hidden one.
        """
        api_key = _api_key(api)
        served = SERVED[api_key]
        lowest = served.lowest if below is None else max(below, served.lowest)
        highest = served.highest if above is None else min(above, served.highest)
        gone = (above is None and below is None) or lowest > highest
        with self._lock:
            left = None if gone else ApiVersionRange(lowest, highest)
            self.hidden = {**self.hidden, api_key: left}

    def clear(self) -> None:
        """Cancel all faults, and hide nothing any more."""
        with self._lock:
            self.standing = ()
            self.hidden = {}

    def discard(self, fault: Fault) -> None:
        """Let a fault go that is cancelled or spent."""
        with self._lock:
            self.standing = tuple(one for one in self.standing if one is not fault)

    def _order(
        self,
        api: Api,
        effect: Effect,
        when: When,
        scope: Scope,
    ) -> Fault:
        if unknown := set(scope) - Scope.__optional_keys__:
            raise TypeError(f"a fault can't be limited by {', '.join(sorted(unknown))}")
        if not isinstance(when, When):
            raise TypeError(f"{when!r} does not say which requests: Next(3), say, or Always() does")
        api_key = _api_key(api)
        target = _target(api, scope.get("topic"), scope.get("partition"))
        fault = Fault(self, api_key, effect, when, target, scope.get("client_id"))
        with self._lock:
            self.standing = (*self.standing, fault)
        return fault


def _error(error: Error) -> BrokerResponseError:
    made: object = for_code(error)() if isinstance(error, int) else error
    if isinstance(made, type) and issubclass(made, BrokerResponseError):
        made = made()
    if not isinstance(made, BrokerResponseError):
        raise TypeError(
            f"{error!r} is nothing that a broker answers: give an error that has a wire code, as"
            " NotLeaderOrFollowerError has, or the code"
        )
    if made.code == 0:
        raise ValueError("code 0 is no error")
    return made


def _api_key(api: Api) -> int:
    # A fault that can't ever be applied is a mistake in the test: say so at once.
    api_key: int | None = getattr(api, "api_key", None)
    if api_key is None or request_class(api_key) is not api:
        raise ValueError(f"{api!r} is not the class of a request, as ProduceRequest is")
    if api_key not in SERVED:
        raise ValueError(f"this broker does not serve {api.__name__}")
    return api_key


def _target(api: Api, topic: str | None, partition: int | None) -> Target | None:
    if topic is None:
        if partition is not None:
            raise ValueError(f"partition {partition} of which topic?")
        return None
    if not isinstance(topic, str) or not isinstance(partition, int | None):
        raise TypeError(f"{topic!r} and {partition!r} are no topic and the number of a partition")
    from broker_stub.testing.topic_layouts import LAYOUTS  # only for those who name a topic

    layout = LAYOUTS.get(api.api_key or 0)
    if layout is None:
        raise ValueError(f"{api.__name__} can't be limited to one topic")
    if partition is not None and layout.responses[0].partitions is None:
        raise ValueError(f"{api.__name__} can't be limited to one partition")
    return Target(topic, partition)
