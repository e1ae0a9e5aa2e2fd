"""Logs every request at the level DEBUG, below the logger `broker_stub`. Serving thread only."""

import logging

from broker_stub.dispatch import Interceptor
from broker_stub.request import RequestContext
from pyclient.protocol.schema import Message

log = logging.getLogger(__name__)


class RequestTrace(Interceptor):
    """The broker's interceptor that logs requests."""

    def on_request(self, request: Message, context: RequestContext) -> None:
        """Log a request: its API, version, client and connection."""
        log.debug(
            "%s v%d of %s on %s",
            type(request).__name__,
            context.api_version,
            context.client_id,
            context.connection.connection_id,
        )
