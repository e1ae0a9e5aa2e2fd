"""Logs every request at the level DEBUG, below the logger `broker_stub`. Serving thread only."""

import logging
from collections.abc import Mapping

from broker_stub.request import RequestContext
from pyclient.protocol.registry import ApiVersionRange
from pyclient.protocol.schema import Message

log = logging.getLogger(__name__)


class RequestTrace:
    """The broker's interceptor that logs requests."""

    def served(self, served: Mapping[int, ApiVersionRange]) -> Mapping[int, ApiVersionRange]:
        """Hide no API."""
        return served

    def on_request(self, request: Message, context: RequestContext) -> None:
        """Log a request: its API, version, client and connection."""
        log.debug(
            "%s v%d of %s on %s",
            type(request).__name__,
            context.api_version,
            context.client_id,
            context.connection.connection_id,
        )

    def on_response(
        self, request: Message, response: Message | None, context: RequestContext
    ) -> None:
        """Ignore responses."""
