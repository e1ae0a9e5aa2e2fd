"""The answer to every request about ACLs, as from an Apache Kafka without an authorizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from broker_stub.request import RequestContext
from pyclient.error_codes import SecurityDisabledError
from pyclient.protocol.schema import Message

if TYPE_CHECKING:
    from broker_stub.node import Node


def handle(node: Node, request: Message, context: RequestContext) -> NoReturn:
    """Fail with SECURITY_DISABLED."""
    raise SecurityDisabledError("No Authorizer is configured on the broker")
