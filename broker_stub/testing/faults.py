"""`broker.faults`: the faults that a test injects.

A fault applies to one API, optionally to one topic, partition or client; a `When` selects the
requests. It fails the request with an error code, delays the response, closes the connection, or
cuts the response off. Hiding APIs and versions emulates an older broker.

A test's threads add faults, the serving thread applies them (`fault_injector`). Both read immutable
tuples and mappings; `_lock` serializes their replacement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple, TypeAlias, TypedDict, Unpack

from broker_stub.handlers import SERVED
from broker_stub.testing.arguments import api_key_of, real_number, whole_number, yes_or_no
from broker_stub.testing.when import Always, Next, Nth, Randomly, When
from pyclient.error_codes import BrokerResponseError, for_code
from pyclient.protocol.registry import ApiVersionRange
from pyclient.protocol.schema import Message

# The protocol's ranges: codes have 16 bits, times 32.
CODE_MIN: Final = -(2**15)
CODE_MAX: Final = 2**15 - 1
DELAY_MS_MAX: Final = 2**31 - 1

Api: TypeAlias = type[Message]
"""The request class of an API, such as `ProduceRequest`."""
Error: TypeAlias = type[BrokerResponseError] | BrokerResponseError | int
"""The error to respond with: a class, an instance with its own message, or a wire code."""


class Scope(TypedDict, total=False):
    """Limits a fault; by default it applies to all requests of its API."""

    topic: str
    """Only requests about this topic, and only its part of the response."""
    partition: int
    """The same for one partition of the topic."""
    client_id: str
    """Only requests of the client with this id."""
    group: str
    """Only requests about this consumer group, and only its part of the response."""
    member: str
    """Only requests about the member with this member id or instance id."""


class Target(NamedTuple):
    """A topic, or one partition of it."""

    topic: str
    partition: int | None


class Fail(NamedTuple):
    """Respond with an error."""

    error: BrokerResponseError
    after: bool


class Delay(NamedTuple):
    """Delay the response."""

    milliseconds: float


class Drop(NamedTuple):
    """Close the connection instead of responding."""

    after: bool


class Cut(NamedTuple):
    """Close the connection in the middle of the response."""

    after_bytes: int


Effect: TypeAlias = Fail | Delay | Drop | Cut


@dataclass(eq=False, slots=True)
class Fault:
    """A fault that was injected. `hits` counts the requests it was applied to."""

    _faults: Faults
    api_key: int
    effect: Effect
    when: When
    target: Target | None
    client_id: str | None
    group: str | None
    member: str | None
    hits: int = field(default=0, init=False)

    def cancel(self) -> None:
        """Stop applying the fault. Thread-safe, and may be called again."""
        self._faults.discard(self)


class Faults:
    """The faults of one broker. They survive its restarts. Thread-safe."""

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
        """Fail the `number`-th request from now on; the next is number 1. See `fail`."""
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
        """Respond to requests with an error.

        If several faults would fail, drop or cut a request, the oldest one gets it, and the others
        wait for the next. With a topic (and partition), only its part of the response has the
        error; the rest of the request is served. Errors stand where Kafka puts them: without a
        topic, an error of partitions fails every partition of a fetch. A produce request with
        acks=0 has no response, so the connection is closed, as in Kafka.

        A fault that could never be applied is refused, here and by the other methods.

        Args:
            api: the request's class, as in `ProduceRequest`.
            error: a class of `pyclient.errors`, an instance (its text goes along where the
                protocol has a place for it), or a wire code.
            when: which requests: `Next`, `Nth`, `Randomly` or `Always`.
            after: carry the request out first; by default it has no effect.
            scope: limits the fault: `topic`, `partition`, `client_id`, `group`, `member`.

        Raises:
            TypeError, ValueError: an argument is wrong; says what is allowed.
        """
        return self._order(api, Fail(_error(error), yes_or_no("after", after)), when, scope)

    def delay(
        self,
        api: Api,
        milliseconds: float,
        when: When | None = None,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Delay responses, by default all from now on.

        The request is carried out at once; later requests of its connection wait for it.
        """
        delay_ms = real_number("a delay in milliseconds", milliseconds)
        if delay_ms < 0:
            raise ValueError(f"an answer can't come {-milliseconds} ms early")
        if delay_ms > DELAY_MS_MAX:
            raise ValueError(f"a delay is {DELAY_MS_MAX} ms or less, not {milliseconds}")
        return self._order(api, Delay(delay_ms), Always() if when is None else when, scope)

    def drop(
        self,
        api: Api,
        when: When | None = None,
        *,
        after: bool = False,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Close the connection instead of responding, by default to the next request only.

        With `after`, the request is carried out first; its client cannot know.
        """
        effect = Drop(yes_or_no("after", after))
        return self._order(api, effect, Next() if when is None else when, scope)

    def cut(
        self,
        api: Api,
        after_bytes: int,
        when: When | None = None,
        **scope: Unpack[Scope],
    ) -> Fault:
        """Send `after_bytes` bytes of a response, then close the connection; by default only once.

        The count includes the frame's four-byte length. A shorter response arrives whole.
        """
        sent = whole_number("the count of bytes", after_bytes)
        if sent < 0:
            raise ValueError(f"there is nothing before byte 0: {after_bytes}")
        return self._order(api, Cut(sent), Next() if when is None else when, scope)

    def hide(self, api: Api, *, above: int | None = None, below: int | None = None) -> None:
        """Neither advertise nor serve an API, or its versions above or below a bound.

        Emulates an older broker. Another call hides more; `clear` shows everything again.
        Clients request the versions once per connection: a connected client that uses a hidden
        version is disconnected.
        """
        api_key = _api_key(api)
        lowest = None if below is None else whole_number("a version", below)
        highest = None if above is None else whole_number("a version", above)
        with self._lock:
            served = self.hidden.get(api_key, SERVED[api_key])
            self.hidden = {**self.hidden, api_key: _left_over(served, lowest, highest)}

    def clear(self) -> None:
        """Cancel all faults, and show all hidden APIs again."""
        with self._lock:
            self.standing = ()
            self.hidden = {}

    def discard(self, fault: Fault) -> None:
        """Remove a fault that is cancelled or used up."""
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
        client_id = scope.get("client_id")
        if not isinstance(client_id, str | None):
            raise TypeError(f"a client calls itself by a str, not by {client_id!r}")
        group, member = _group_and_member(api, scope.get("group"), scope.get("member"))
        fault = Fault(self, api_key, effect, when, target, client_id, group, member)
        with self._lock:
            self.standing = (*self.standing, fault)
        return fault


def _left_over(
    served: ApiVersionRange | None, lowest: int | None, highest: int | None
) -> ApiVersionRange | None:
    """The versions that are still served within these bounds; None if there are none."""
    if served is None or (lowest is None and highest is None):
        return None
    left = ApiVersionRange(
        served.lowest if lowest is None else max(lowest, served.lowest),
        served.highest if highest is None else min(highest, served.highest),
    )
    return left if left.lowest <= left.highest else None


def _error(error: Error) -> BrokerResponseError:
    is_code = isinstance(error, int) and not isinstance(error, bool)
    made: object = for_code(error)() if is_code else error  # type: ignore[arg-type]
    if isinstance(made, type) and issubclass(made, BrokerResponseError):
        made = made()
    code = getattr(made, "code", None)  # a family of errors, as BrokerResponseError, has none
    if not isinstance(made, BrokerResponseError) or code is None:
        raise TypeError(
            f"{error!r} is nothing that a broker answers: give an error that has a wire code, as"
            " NotLeaderOrFollowerError has, or the code"
        )
    if code == 0:
        raise ValueError("code 0 is no error")
    if not CODE_MIN <= code <= CODE_MAX:
        raise ValueError(f"{code} is no wire code: {CODE_MIN} to {CODE_MAX} are")
    return made


def _api_key(api: Api) -> int:
    api_key = api_key_of(api)
    if api_key not in SERVED:
        raise ValueError(f"this broker does not serve {api.__name__}")
    return api_key


def _group_and_member(
    api: Api, group: str | None, member: str | None
) -> tuple[str | None, str | None]:
    if group is None and member is None:
        return None, None
    for name, value in (("group", group), ("member", member)):
        if not isinstance(value, str | None):
            raise TypeError(f"a {name} is named by a str, not by {value!r}")
    from broker_stub.testing.group_parts import has_groups, has_members  # only where needed

    api_key = api.api_key or 0
    if group is not None and not has_groups(api_key):
        raise ValueError(f"{api.__name__} can't be limited to one group")
    if member is not None and not has_members(api_key):
        raise ValueError(f"{api.__name__} can't be limited to one member")
    if member == "":
        raise ValueError("the member has no id")
    return group, member


def _target(api: Api, topic: str | None, partition: int | None) -> Target | None:
    if topic is None:
        if partition is not None:
            raise ValueError(f"partition {partition} of which topic?")
        return None
    if not isinstance(topic, str):
        raise TypeError(f"a topic is named by a str, not by {topic!r}")
    if not topic:
        raise ValueError("the topic has no name")
    if partition is not None and whole_number("the number of a partition", partition) < 0:
        raise ValueError(f"there is no partition {partition}: the first one is 0")
    from broker_stub.testing.topic_layouts import LAYOUTS  # only for those who name a topic

    layout = LAYOUTS.get(api.api_key or 0)
    if layout is None:
        raise ValueError(f"{api.__name__} can't be limited to one topic")
    if partition is not None and layout.responses[0].partitions is None:
        raise ValueError(f"{api.__name__} can't be limited to one partition")
    return Target(topic, partition)
