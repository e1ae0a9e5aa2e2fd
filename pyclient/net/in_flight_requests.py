"""The requests that one connection has sent and not finished, in the order they were sent.

Touched by the I/O thread only.
"""

import math
from collections import deque
from collections.abc import Iterator

from pyclient.net.request_manager import UnsentRequest
from pyclient.protocol.frame import LENGTH
from pyclient.protocol.header import ResponseHeader, response_header_version
from pyclient.protocol.schema import Message


class InFlightRequest:
    """A request from the moment it is handed over: queued first, then on the wire.

    Attributes:
        deadline_ms: when it has taken too long.
        correlation_id, version, response_class: how its response is known and read.
        last_part: the number of its last part on the transport.
    """

    __slots__ = (
        "correlation_id",
        "deadline_ms",
        "last_part",
        "response_class",
        "unsent",
        "version",
    )

    def __init__(self, unsent: UnsentRequest, deadline_ms: float) -> None:
        self.unsent = unsent
        self.deadline_ms = deadline_ms
        self.correlation_id = -1
        self.version = -1
        self.response_class: type[Message] = Message
        self.last_part = 0

    def decode_response(self, frame: memoryview) -> Message:
        """Read the response, header and all.

        Raises:
            ProtocolError: it is none to this request.
        """
        body = LENGTH.size  # of the correlation id, which brought it here
        if response_header_version(self.response_class, self.version) > 0:
            # Tagged fields follow; a zero byte says that there are none.
            if len(frame) > body and frame[body] == 0:
                body += 1
            else:
                body = ResponseHeader.decode_from(frame, 0, 1)[1]
        # Bytes behind the message are left alone, as Java's client does: librdkafka's mock
        # broker ends its Metadata responses with one too many.
        return self.response_class.decode_from(frame, body, self.version)[0]

    def __repr__(self) -> str:
        return f"{type(self.unsent.request).__name__} v{self.version} #{self.correlation_id}"


class InFlightRequests:
    """A bounded queue: a broker answers the requests of a connection in their order.

    Attributes:
        earliest_deadline_ms: no request is due before it. A lower bound: it does not rise
            when the request that set it finishes, only when `expired` looks at all of them.
    """

    __slots__ = ("_limit", "_requests", "earliest_deadline_ms")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._requests: deque[InFlightRequest] = deque()
        self.earliest_deadline_ms = math.inf

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InFlightRequest]:
        return iter(self._requests)

    @property
    def has_room(self) -> bool:
        """Whether one more may be sent."""
        return len(self._requests) < self._limit

    def add(self, request: InFlightRequest) -> None:
        """Note a request that is being sent."""
        self._requests.append(request)
        if request.deadline_ms < self.earliest_deadline_ms:
            self.earliest_deadline_ms = request.deadline_ms

    def oldest(self) -> InFlightRequest | None:
        """The one that is answered next."""
        return self._requests[0] if self._requests else None

    def pop(self) -> InFlightRequest:
        """Take the oldest out: it is finished."""
        return self._requests.popleft()

    def expired(self, now_ms: float) -> list[InFlightRequest]:
        """Those that have taken too long; they stay, because their answers may still come."""
        if now_ms < self.earliest_deadline_ms:
            return []
        self.earliest_deadline_ms = min(
            (one.deadline_ms for one in self._requests), default=math.inf
        )
        return [one for one in self._requests if one.deadline_ms <= now_ms]

    def clear(self) -> list[InFlightRequest]:
        """Take all out: the connection is gone."""
        requests = list(self._requests)
        self._requests.clear()
        self.earliest_deadline_ms = math.inf
        return requests
