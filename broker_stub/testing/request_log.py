"""`broker.requests`: the requests that a broker received.

Counts are exact. The last `KEPT` requests are kept, fewer if they are large, and without their
records: only the header of a record batch stays (61 bytes: producer id, sequence, record count).
Produce and Fetch requests that name topics by id get the names, too.
The serving thread writes, a test's threads read; both take `_lock`, and nothing is called under it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from broker_stub.dispatch import Interceptor
from broker_stub.request import RequestContext
from pyclient.protocol.primitives import BYTES, ArrayType
from pyclient.protocol.schema import Message, Struct
from pyclient.records.header import HEADER_SIZE

if TYPE_CHECKING:
    from broker_stub.node import Node
    from pyclient.protocol.messages.fetch import FetchRequest
    from pyclient.protocol.messages.produce import ProduceRequest

AnyMessage = TypeVar("AnyMessage", bound=Message)

KEPT: Final = 1000
KEPT_WEIGHT: Final = 200_000
"""The most that is kept, roughly in tens of bytes: a fetch of 1,000 partitions weighs 1,000."""
_PRODUCE: Final = 0
_FETCH: Final = 1
_FETCH_BY_ID_FROM: Final = 13
_BYTES_PER_WEIGHT: Final = 100


class ReceivedRequest(Generic[AnyMessage]):
    """A request, with the version, client and connection it came with."""

    __slots__ = ("api_version", "client_id", "connection_id", "message", "weight")

    def __init__(
        self, message: AnyMessage, api_version: int, client_id: str | None, connection_id: str
    ) -> None:
        self.message = message
        self.api_version = api_version
        self.client_id = client_id
        self.connection_id = connection_id
        self.weight = _weight(message)

    def __repr__(self) -> str:
        return (
            f"<v{self.api_version} of {self.client_id} on {self.connection_id}: {self.message!r}>"
        )


class RequestLog(Interceptor):
    """The requests of one broker, over its restarts. Any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[type[Message]] = Counter()
        self._received: deque[ReceivedRequest[Message]] = deque()
        self._weight = 0
        self._names: Callable[[bytes], str | None] = lambda _topic_id: None

    def read_names(self, node: Node) -> None:
        """Look up topics in this node's image. Called by the broker when it starts."""

        def name(topic_id: bytes) -> str | None:
            found = node.image.topic_by_id(topic_id)
            return None if found is None else found.name

        self._names = name

    def count(
        self,
        api: type[Message] | None = None,
        *,
        group: str | None = None,
        member: str | None = None,
    ) -> int:
        """The number of requests of an API, or of all, since the start or `clear`.

        With a group or a member (by member id or instance id), only the requests that are kept
        are counted.

        Raises:
            TypeError: `api` is not the class of a request; so do `of` and `received`.
        """
        if api is not None:
            _check_api(api)
        if group is not None or member is not None:
            with self._lock:
                kept = [one.message for one in self._received]
            return sum(api in (None, type(one)) and _is_about(one, group, member) for one in kept)
        with self._lock:
            return self._counts.total() if api is None else self._counts[api]

    def of(
        self, api: type[AnyMessage], *, group: str | None = None, member: str | None = None
    ) -> list[AnyMessage]:
        """The kept requests of an API, oldest first."""
        return [one.message for one in self.received(api, group=group, member=member)]

    def received(
        self, api: type[AnyMessage], *, group: str | None = None, member: str | None = None
    ) -> list[ReceivedRequest[AnyMessage]]:
        """The kept requests of an API with version, client and connection."""
        _check_api(api)
        with self._lock:
            found = [one for one in self._received if type(one.message) is api]
        found = [one for one in found if _is_about(one.message, group, member)]
        return cast("list[ReceivedRequest[AnyMessage]]", found)

    def clear(self) -> None:
        """Drop all requests and reset the counts."""
        with self._lock:
            self._counts.clear()
            self._received.clear()
            self._weight = 0

    # --- the broker's interceptor ------------------------------------------------------------

    def on_request(self, request: Message, context: RequestContext) -> None:
        """Record a request. Called by the broker."""
        kept = request
        if context.api_key == _PRODUCE:
            kept = _without_records(cast("ProduceRequest", request))
            for produced in kept.topic_data:
                produced.name = produced.name or self._names(produced.topic_id) or ""
        elif context.api_key == _FETCH and context.api_version >= _FETCH_BY_ID_FROM:
            kept = self._named(cast("FetchRequest", request))
        received = ReceivedRequest(
            kept, context.api_version, context.client_id, context.connection.connection_id
        )
        with self._lock:
            self._counts[type(request)] += 1
            self._received.append(received)
            self._weight += received.weight
            while len(self._received) > KEPT or self._weight > KEPT_WEIGHT:
                self._weight -= self._received.popleft().weight

    def _named(self, request: FetchRequest) -> FetchRequest:
        """A copy with the topics' names, which the handler must not see."""
        copy = type(request)(
            **{one.name: getattr(request, one.name) for one in type(request).fields}
        )
        copy.topics = [
            type(topic)(
                topic=self._names(topic.topic_id) or "",
                topic_id=topic.topic_id,
                partitions=topic.partitions,
            )
            for topic in request.topics
        ]
        return copy


def _check_api(api: type[Message]) -> None:
    from broker_stub.testing.arguments import api_key_of  # no broker's start waits for it

    api_key_of(api)


def _is_about(request: Message, group: str | None, member: str | None) -> bool:
    if group is None and member is None:
        return True
    from broker_stub.testing.group_parts import is_about  # only where it is asked for

    return is_about(request, group, member)


def _without_records(request: ProduceRequest) -> ProduceRequest:
    """A copy that does not reference the receive buffer. Unrolled, because it is a hot path."""
    return type(request)(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[
            type(topic)(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=[
                    type(one)(index=one.index, records=_batch_header(one.records))
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ],
    )


def _batch_header(records: Any) -> bytes | None:
    return None if records is None else bytes(records[:HEADER_SIZE])


def _weight(struct: Struct) -> int:
    weight = 1
    for name, is_bytes in _of_any_length(type(struct)):
        value = getattr(struct, name)
        if not value:
            continue
        if is_bytes:
            weight += len(value) // _BYTES_PER_WEIGHT
        elif isinstance(value[0], Struct):
            weight += sum(map(_weight, value))
        else:
            weight += len(value)
    return weight


@cache
def _of_any_length(owner: type[Struct]) -> tuple[tuple[str, bool], ...]:
    """The fields of variable size: lists and bytes."""
    return tuple(
        (one.name, one.type is BYTES)
        for one in owner.fields
        if one.type is BYTES or isinstance(one.type, ArrayType)
    )
