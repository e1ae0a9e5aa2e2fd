"""From a request's bytes to its handler, and from its response back to bytes.

Reads the header, checks the API's version, decodes, calls the handler and encodes; interceptors
around the handler let tests watch requests and inject faults. Serving thread only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_stub import diagnostics
from broker_stub.handlers import SERVED
from broker_stub.request import (
    HANG_UP,
    CloseConnection,
    ConnectionContext,
    Parked,
    Reply,
    RequestContext,
)
from pyclient.errors import BrokerResponseError, ProtocolError, UnknownServerError
from pyclient.protocol.frame import response_frame
from pyclient.protocol.header import RequestHeader, request_header_version
from pyclient.protocol.primitives import Part, part_length
from pyclient.protocol.registry import API_NAMES, ApiVersionRange, module_name, request_class
from pyclient.protocol.schema import Message

if TYPE_CHECKING:
    from broker_stub.node import Node

_HEAD: Final = struct.Struct(">hhi")  # API key, version, correlation id
_API_VERSIONS: Final = 18
_OFFSET_COMMIT: Final = 8
_DATA_PATH: Final = {0: "produce", 1: "fetch", _OFFSET_COMMIT: "offset_commit"}


class Intervention(NamedTuple):
    """What an interceptor wants to happen to a request."""

    request: Message | None = None
    """Handle this request instead (`on_request` only)."""
    response: Message | None = None
    """Answer this. From `on_request`: the handler does not run."""
    delay_ms: float = 0
    """Delay the answer by this much (`on_response` only)."""
    close: bool = False
    """Close the connection without an answer."""
    cut_after_bytes: int | None = None
    """Write this many bytes of the answer, then close (`on_response` only)."""


class Interceptor:
    """Sees every request before its handler, and every response before it is encoded.

    Does nothing; subclasses override what they need.
    """

    def served(self, served: Mapping[int, ApiVersionRange]) -> Mapping[int, ApiVersionRange]:
        """The APIs and versions to serve: the argument, or less of it."""
        return served

    def on_request(self, request: Message, context: RequestContext) -> Intervention | None:
        """A request was decoded, and not handled yet."""

    def on_response(
        self, request: Message, response: Message | None, context: RequestContext
    ) -> Intervention | None:
        """A request was handled; `response` is None with acks=0."""


def refusal(request: Message, error: BrokerResponseError) -> Message | None:
    """The response that fails a whole request; None with acks=0."""
    assert request.api_key is not None
    refused: Message | None = _handler_module(request.api_key).refuse(request, error)
    return refused


def _handler_module(api_key: int) -> Any:
    """The handler of an API, imported on its first request to keep the start fast."""
    module = _modules.get(api_key)
    if module is None:
        module = import_module(f"broker_stub.handlers.{module_name(api_key)}")
        _modules[api_key] = module
    return module


_modules: dict[int, Any] = {}


def _data_path(api_key: int) -> Any:
    """The fast path of an API, imported likewise."""
    serve = _fast_paths.get(api_key)
    if serve is None:
        serve = import_module(f"broker_stub.data_path.{_DATA_PATH[api_key]}").serve
        _fast_paths[api_key] = serve
    return serve


_fast_paths: dict[int, Any] = {}


class Dispatcher:
    """Handles a node's requests, one after another."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.interceptors: list[Interceptor] = []

    def served(self) -> Mapping[int, ApiVersionRange]:
        """The APIs and versions that are served now."""
        served: Mapping[int, ApiVersionRange] = SERVED
        for interceptor in self.interceptors:
            served = interceptor.served(served)
        return served

    def dispatch(self, frame: memoryview, connection: ConnectionContext) -> Reply | Parked[Reply]:
        """Handle the request in `frame` (without its length)."""
        if len(frame) < _HEAD.size:
            return _hang_up(connection, f"a request of {len(frame)} bytes has no header")
        api_key, version, correlation_id = _HEAD.unpack_from(frame)
        if api_key != _OFFSET_COMMIT and self._node.turn.has_work:
            # Only commits are collected: any other request finds the ones before it carried out.
            self._node.turn.settle()
        context = RequestContext(api_key, version, correlation_id, None, connection)
        versions = (self.served() if self.interceptors else SERVED).get(api_key)
        if versions is None or not versions.lowest <= version <= versions.highest:
            if api_key == _API_VERSIONS and versions is not None:
                return self._unsupported_api_versions(context)
            return _hang_up(connection, f"API key {api_key} version {version} is not served")
        if api_key in _DATA_PATH and not self.interceptors:
            reply = self._take_data_path(frame, context)
            if reply is not None:
                return reply
        try:
            request = self._decode(frame, context)
        except ProtocolError as error:
            return _hang_up(connection, error)
        for interceptor in self.interceptors:
            intervention = interceptor.on_request(request, context)
            if intervention is None:
                continue
            if intervention.close:
                return HANG_UP
            if intervention.response is not None:
                return self._finish(request, context, intervention.response)
            request = intervention.request or request
        return self._call_handler(request, context)

    def _take_data_path(
        self, frame: memoryview, context: RequestContext
    ) -> Reply | Parked[Reply] | None:
        """Handle a Produce, Fetch or OffsetCommit without the codec; no interceptor would see it.

        None, with nothing done, where the codec and the handler are needed.
        """
        try:
            reply: Reply | Parked[Reply] | None = _data_path(context.api_key)(
                self._node, frame, context
            )
        except CloseConnection as error:
            return _hang_up(context.connection, error)
        except Exception as error:  # noqa: BLE001  logged, and answered as an error
            diagnostics.exception("%s failed", API_NAMES[context.api_key])
            return self._refuse(
                self._decode(frame, context), context, UnknownServerError(repr(error))
            )
        return reply

    @staticmethod
    def _decode(frame: memoryview, context: RequestContext) -> Message:
        """The request; its client id goes into the context."""
        version = context.api_version
        declared = request_class(context.api_key)
        header_version = request_header_version(declared, version)
        header, position = RequestHeader.decode_from(frame, 0, header_version)
        context.client_id = header.client_id
        return declared.decode_from(frame, position, version)[0]

    def _unsupported_api_versions(self, context: RequestContext) -> Reply:
        # The client does not know our versions yet: tell it in version 0, which all can read.
        response = _handler_module(_API_VERSIONS).unsupported_version(self.served())
        return Reply(response_frame(response, 0, context.correlation_id))

    def _call_handler(self, request: Message, context: RequestContext) -> Reply | Parked[Reply]:
        answer: Message | Parked[Any] | None
        try:
            answer = _handler_module(context.api_key).handle(self._node, request, context)
        except CloseConnection as error:
            return _hang_up(context.connection, error)
        except BrokerResponseError as error:
            return self._refuse(request, context, error)
        except Exception as error:  # noqa: BLE001  logged, and answered as an error
            diagnostics.exception("%s failed", type(request).__name__)
            return self._refuse(request, context, UnknownServerError(repr(error)))
        if not isinstance(answer, Parked):
            return self._finish(request, context, answer)
        reply: Parked[Reply] = Parked(on_abandoned=answer.abandon)
        answer.deliver_to(lambda later: _settle(reply, self._finish(request, context, later)))
        return reply

    def _refuse(
        self, request: Message, context: RequestContext, error: BrokerResponseError
    ) -> Reply | Parked[Reply]:
        refused = refusal(request, error)
        # The client reads no answer: closing the connection is the only way to tell it.
        return HANG_UP if refused is None else self._finish(request, context, refused)

    def _finish(
        self, request: Message, context: RequestContext, response: Message | None
    ) -> Reply | Parked[Reply]:
        delay_ms = 0.0
        cut_after_bytes = None
        for interceptor in self.interceptors:
            intervention = interceptor.on_response(request, response, context)
            if intervention is None:
                continue
            if intervention.close:
                return HANG_UP
            response = intervention.response or response
            delay_ms = max(delay_ms, intervention.delay_ms)
            cut_after_bytes = intervention.cut_after_bytes
        reply = encode_reply(response, context)
        if cut_after_bytes is not None:
            reply = Reply(_cut(reply.parts, cut_after_bytes), close=True)
        if delay_ms > 0:
            delayed: Parked[Reply] = Parked()
            timer = self._node.timers.after(delay_ms, partial(delayed.answer, reply))
            delayed.on_abandoned = timer.cancel
            return delayed
        return reply


def _hang_up(connection: ConnectionContext, reason: Exception | str) -> Reply:
    diagnostics.warn("%s: closing the connection: %s", connection.connection_id, reason)
    return HANG_UP


def encode_reply(response: Message | None, context: RequestContext) -> Reply:
    """The frame of a response; None sends nothing."""
    if response is None:
        return Reply([])
    try:
        return Reply(response_frame(response, context.api_version, context.correlation_id))
    except ProtocolError:
        # A handler's mistake; the client would misread any other bytes.
        diagnostics.exception("%s can't be encoded", type(response).__name__)
        return HANG_UP


def _settle(parked: Parked[Reply], reply: Reply | Parked[Reply]) -> None:
    if isinstance(reply, Parked):
        parked.on_abandoned = reply.abandon
        reply.deliver_to(parked.answer)
    else:
        parked.answer(reply)


def _cut(parts: list[Part], length: int) -> list[Part]:
    """The first `length` bytes of a frame."""
    kept: list[Part] = []
    for part in parts:
        if length <= 0:
            break
        size = part_length(part)
        if size > length:
            read: Callable[[], bytes] = getattr(part, "read", lambda piece=part: bytes(piece))
            part = read()[:length]
        kept.append(part)
        length -= size
    return kept
