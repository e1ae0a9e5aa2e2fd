"""One broker's connection: its states, its versions, its requests in flight.

Sans-IO: frames come in, parts go out through the transport it is given; the time is an argument.
Finished requests, successful or not, are put on `finished`; the owner runs their callbacks. Used by
the I/O thread only.
"""

import logging
import math
from collections import deque
from typing import Final, NamedTuple

from pyclient.errors import (
    CorrelationIdError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
    RequestTimedOutError,
)
from pyclient.net import broker_versions, failures
from pyclient.net.broker_versions import BrokerVersions, read_api_versions
from pyclient.net.connection_state import TRANSITIONS, ConnectionState
from pyclient.net.in_flight_requests import InFlightRequest, InFlightRequests
from pyclient.net.poller import Poller, Transport
from pyclient.net.reconnect_backoff import ReconnectBackoff
from pyclient.net.request_manager import OnDone, Outcome, UnsentRequest
from pyclient.net.resolver import Address, Resolution
from pyclient.net.throttling import client_waits
from pyclient.protocol.frame import LENGTH, request_frame
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from pyclient.protocol.registry import response_class
from pyclient.timers import ExponentialBackoff
from pyclient.types import BrokerMetadata
from pyclient.version import __version__

log = logging.getLogger(__name__)

_CORRELATION_ID_MAX: Final = 2**31 - 1


class ConnectionSettings(NamedTuple):
    """The settings that all connections of a client share."""

    client_id: str
    max_in_flight: int
    reconnect_backoff: ExponentialBackoff
    setup_timeout: ExponentialBackoff
    tls: bool = False


class Finished(NamedTuple):
    """A finished request whose callback has not run yet; its buffers are free."""

    on_done: OnDone
    outcome: Outcome


class Connection:
    """The connection to one node; it reconnects after it was lost."""

    def __init__(
        self,
        broker: BrokerMetadata,
        settings: ConnectionSettings,
        poller: Poller,
        finished: deque[Finished],
    ) -> None:
        self.broker = broker  # the address that the next attempt goes to
        self.state = ConnectionState.DISCONNECTED
        self.queue: deque[InFlightRequest] = deque()  # to be sent when there is room
        self.in_flight = InFlightRequests(settings.max_in_flight)
        self.transport: Transport | None = None
        self.last_failure: KafkaError | None = None
        self.last_used_ms = 0.0
        self.muted_until_ms = -math.inf
        self.reconnect = ReconnectBackoff(settings.reconnect_backoff)
        self.setup_began_ms = 0.0
        self.setup_deadline_ms = math.inf
        self.unanswered = 0  # requests in flight that get no response
        self._settings = settings
        self._poller = poller
        self._finished = finished
        self._resolution: Resolution | None = None
        self._addresses: deque[Address] = deque()
        self._address: Address | None = None
        self._farthest: tuple[int, KafkaError] | None = None  # of this attempt's failures
        self._correlation_id = 0
        self._greeting_version = broker_versions.FIRST_TRIED
        self.versions = BrokerVersions({})

    # --- questions ---------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """The address, for messages: with the numeric one when it was a name that led there."""
        text = failures.address_text(self.broker.host, self.broker.port)
        address = "" if self._address is None else str(self._address)
        return text if not address or address == text else f"{text} ({address})"

    @property
    def is_disconnected(self) -> bool:
        """Whether there is no connection and no attempt to make one."""
        return self.state is ConnectionState.DISCONNECTED

    @property
    def is_resolving(self) -> bool:
        """Whether a name is being looked up."""
        return self.state is ConnectionState.RESOLVING

    @property
    def is_ready(self) -> bool:
        """Whether the connection is made and the broker's versions are known."""
        return self.state is ConnectionState.READY

    @property
    def is_in_use(self) -> bool:
        """Whether requests are queued or in flight."""
        return bool(self.queue or self.in_flight)

    def can_send(self, now_ms: float) -> bool:
        """Whether a request may go out now."""
        return (
            self.state is ConnectionState.READY
            and self.in_flight.has_room
            and self.muted_until_ms <= now_ms
        )

    def next_deadline_ms(self) -> float:
        """When `on_time` must be called next, at the latest."""
        return min(
            self.setup_deadline_ms,
            self.in_flight.earliest_deadline_ms,
            *(entry.deadline_ms for entry in self.queue),
        )

    def trouble(self, now_ms: float) -> KafkaError | None:
        """Why it is not usable; None if it is, or before the first attempt."""
        if self.state is ConnectionState.READY:
            return None
        if self.last_failure is not None or self.is_disconnected:
            return self.last_failure
        return self._not_set_up_in_time(now_ms)

    def _not_set_up_in_time(self, now_ms: float) -> KafkaConnectionError:
        elapsed_ms = now_ms - self.setup_began_ms
        return failures.not_set_up_in_time(self.state, self.where, elapsed_ms, self._settings.tls)

    # --- making the connection ---------------------------------------------------------------

    def connect(self, now_ms: float) -> None:
        """Begin an attempt: resolve the name, then try its addresses one after another."""
        self._become(ConnectionState.RESOLVING)
        self._address = None
        self._farthest = None
        self._begin_step(now_ms)
        self._resolution = self._poller.resolve(self.broker.host, self.broker.port)
        self.continue_resolving(now_ms)

    def continue_resolving(self, now_ms: float) -> None:
        """Open the first address once the name is resolved."""
        resolution = self._resolution
        if resolution is None or not resolution.done:
            return
        self._resolution = None
        if resolution.error is not None:
            self._setup_failed(failures.name_not_resolved(self.where, resolution.error), now_ms)
            return
        self._addresses = deque(resolution.addresses)
        self._open_next_address(now_ms)

    def _open_next_address(self, now_ms: float) -> None:
        self._become(ConnectionState.CONNECTING)
        self._address = self._addresses.popleft()
        self._begin_step(now_ms)
        log.debug("Connecting to broker %d at %s", self.broker.node_id, self.where)
        self.transport = self._poller.open(self._address, self)

    def _begin_step(self, now_ms: float) -> None:
        self.setup_began_ms = now_ms
        timeout_ms = self._settings.setup_timeout.backoff_ms(self.reconnect.failures)
        self.setup_deadline_ms = now_ms + timeout_ms

    def _greet(self, now_ms: float) -> None:
        """Send ApiVersions in the highest version; a broker answers any version."""
        self._become(ConnectionState.CHECKING_API_VERSIONS)
        self._begin_step(now_ms)
        self._send_greeting(broker_versions.FIRST_TRIED)

    def _send_greeting(self, version: int) -> None:
        assert self.transport is not None
        self._greeting_version = version
        request = ApiVersionsRequest(
            client_software_name="kafka-pyclient",
            client_software_version=__version__,
        )
        self.transport.send(
            request_frame(request, version, self._next_correlation_id(), self._settings.client_id)
        )

    def _on_greeting(self, frame: memoryview, now_ms: float) -> None:
        try:
            versions = read_api_versions(frame, self._correlation_id, self._greeting_version)
        except KafkaError as error:
            self._setup_failed(failures.not_kafka(self.where, error), now_ms)
            return
        if versions is None:
            self._send_greeting(broker_versions.LAST_RESORT)
            return
        self.versions = versions
        self._become(ConnectionState.READY)
        self.setup_deadline_ms = math.inf
        self.last_used_ms = now_ms
        self.last_failure = None
        self.reconnect.connected()
        self._addresses.clear()
        if versions.throttle_time_ms > 0:
            self._mute(versions.throttle_time_ms, now_ms)
        log.info("Connected to broker %d at %s", self.broker.node_id, self.where)

    # --- requests and responses --------------------------------------------------------------

    def transmit(self, entry: InFlightRequest, now_ms: float) -> None:
        """Send a request. The caller has asked `can_send`."""
        assert self.transport is not None
        unsent = entry.unsent
        request = unsent.request
        assert request.api_key is not None
        try:
            entry.version = self.versions.choose(request)
            entry.correlation_id = self._next_correlation_id()
            parts = request_frame(
                request, entry.version, entry.correlation_id, self._settings.client_id
            )
        except KafkaError as error:
            self._finish(unsent, error)
            return
        entry.response_class = response_class(request.api_key)
        entry.last_part = self.transport.send(parts)
        self.in_flight.add(entry)
        self.last_used_ms = now_ms
        if not unsent.expects_response:
            self.unanswered += 1

    def on_event(self, now_ms: float) -> None:
        """Handle what the transport reports: connected, written, frames, or an error."""
        transport = self.transport
        if transport is None:
            return
        if transport.connected and self.state is ConnectionState.CONNECTING:
            self._become(ConnectionState.SECURING)
            if not transport.secured:
                self._begin_step(now_ms)
        if transport.secured and self.state is ConnectionState.SECURING:
            self._greet(now_ms)
        for frame in transport.take_frames():
            if self.state is ConnectionState.READY:
                self._on_response(frame, now_ms)
            else:
                self._on_greeting(frame, now_ms)
            if self.transport is not transport:
                return  # that frame ended the connection
        self._finish_written(transport)
        if transport.error is not None:
            self._on_transport_error(transport.error, now_ms)

    def _on_response(self, frame: memoryview, now_ms: float) -> None:
        entry = self._oldest_with_response()
        correlation_id = LENGTH.unpack_from(frame)[0] if len(frame) >= LENGTH.size else None
        if entry is None or entry.correlation_id != correlation_id:
            awaited = "none" if entry is None else entry.correlation_id
            self.lose(
                CorrelationIdError(
                    f"{self.where}: a response to request {correlation_id}, expected was {awaited}"
                ),
                now_ms,
            )
            return
        self.in_flight.pop()
        self.last_used_ms = now_ms
        try:
            response = entry.decode_response(frame)
        except ProtocolError as error:
            self._finish(entry.unsent, error)
            self.lose(failures.broken(self.where, error), now_ms)
            return
        api_key = entry.unsent.request.api_key
        assert api_key is not None
        throttle_time_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_time_ms > 0 and client_waits(api_key, entry.version):
            self._mute(throttle_time_ms, now_ms)
        self._finish(entry.unsent, response)

    def _mute(self, throttle_time_ms: float, now_ms: float) -> None:
        """Send nothing until the throttle time is over."""
        log.debug("%s throttles this client for %d ms", self.where, throttle_time_ms)
        self.muted_until_ms = max(self.muted_until_ms, now_ms + throttle_time_ms)

    def _oldest_with_response(self) -> InFlightRequest | None:
        entry = self.in_flight.oldest()
        while entry is not None and not entry.unsent.expects_response:
            self._finish_unanswered()  # a later request is answered, so it was written
            entry = self.in_flight.oldest()
        return entry

    def _finish_written(self, transport: Transport) -> None:
        """Finish the oldest requests without a response (acks=0) that were written."""
        while (
            self.unanswered
            and (entry := self.in_flight.oldest()) is not None
            and not entry.unsent.expects_response
            and entry.last_part <= transport.parts_sent
        ):
            self._finish_unanswered()

    def _finish_unanswered(self) -> None:
        entry = self.in_flight.pop()
        self.unanswered -= 1
        self._finish(entry.unsent, entry.response_class())

    def _finish(self, unsent: UnsentRequest, outcome: Outcome) -> None:
        self._finished.append(Finished(unsent.on_done, outcome))

    def _next_correlation_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & _CORRELATION_ID_MAX
        return self._correlation_id

    # --- losing the connection ---------------------------------------------------------------

    def on_time(self, now_ms: float) -> None:
        """Time out the set-up, requests in flight, and queued requests."""
        if self.transport is not None:
            self._finish_written(self.transport)
        if now_ms >= self.setup_deadline_ms:
            self._setup_failed(self._not_set_up_in_time(now_ms), now_ms)
        expired = self.in_flight.expired(now_ms)
        if expired:
            # Responses come in order, so later ones would be late too: reconnect.
            reason = f"{self.where}: no response to {expired[0]} in time"
            self.disconnect(now_ms)
            for entry in self._take_in_flight():
                late = entry.deadline_ms <= now_ms
                error = RequestTimedOutError if late else KafkaConnectionError
                self._finish(entry.unsent, error(reason))
            self._note_failure(KafkaConnectionError(reason))
        for entry in [one for one in self.queue if one.deadline_ms <= now_ms]:
            self.queue.remove(entry)
            self._finish(entry.unsent, self._never_sent(entry, now_ms))

    def _never_sent(self, entry: InFlightRequest, now_ms: float) -> KafkaTimeoutError:
        trouble = self.trouble(now_ms)
        reason = f"{self.where}: other requests were before it" if trouble is None else str(trouble)
        return KafkaTimeoutError(f"{entry.unsent!r} could not be sent in time: {reason}")

    def _on_transport_error(self, error: Exception, now_ms: float) -> None:
        if self.is_ready:
            self.lose(failures.broken(self.where, error), now_ms)
        else:
            failure = failures.not_set_up(self.state, self.where, error, self._settings.tls)
            self._setup_failed(failure, now_ms)

    def _setup_failed(self, failure: KafkaError, now_ms: float) -> None:
        """This address failed: try the host's next one, or give up until after the back-off."""
        # Of a host's addresses, the one that got farthest tells most: a certificate that is not
        # trusted, rather than a refused connection to ::1.
        reached = self.state.value
        if self._farthest is not None and self._farthest[0] > reached:
            failure = self._farthest[1]
        else:
            self._farthest = (reached, failure)
        self._note_failure(failure)
        if self._addresses:
            self._drop_transport()
            self._open_next_address(now_ms)
            return
        self.disconnect(now_ms)
        self.reconnect.failed()
        self._fail_queue(failure)  # so that their senders can try another node

    def lose(self, error: KafkaError, now_ms: float) -> None:
        """Drop a broken connection. Requests that were not sent stay queued."""
        self._note_failure(error)
        self.disconnect(now_ms)
        for entry in self._take_in_flight():
            self._finish(entry.unsent, error)

    def close(self, error: KafkaError, now_ms: float) -> None:
        """Close the connection for good, and fail its requests."""
        if not self.is_disconnected:
            self.disconnect(now_ms)
        for entry in self._take_in_flight():
            self._finish(entry.unsent, error)
        self._fail_queue(error)

    def disconnect(self, now_ms: float) -> None:
        """Close the socket; the next attempt may be made after the back-off."""
        self._become(ConnectionState.DISCONNECTED)
        self._drop_transport()
        self._resolution = None
        self._addresses.clear()
        self.setup_deadline_ms = math.inf
        self.muted_until_ms = -math.inf
        self.reconnect.disconnected(now_ms)

    def _drop_transport(self) -> None:
        if self.transport is not None:
            self.transport.close()
            self.transport = None

    def _take_in_flight(self) -> list[InFlightRequest]:
        self.unanswered = 0
        return self.in_flight.clear()

    def _fail_queue(self, error: KafkaError) -> None:
        while self.queue:
            self._finish(self.queue.popleft().unsent, error)

    def _note_failure(self, error: KafkaError) -> None:
        # A broker that stays away is reported once, not at every attempt; and one that closes
        # an unused connection does nothing unusual.
        expected = self.last_failure == error or (self.is_ready and not self.is_in_use)
        level = logging.DEBUG if expected else logging.WARNING
        log.log(level, "%s", error)  # which names the address
        self.last_failure = error

    def _become(self, state: ConnectionState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} to {state}"
        self.state = state
