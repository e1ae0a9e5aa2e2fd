"""The coordinators that a transaction needs: of its id, and of the groups whose offsets it commits.

The I/O thread only.
"""

from enum import IntEnum
from typing import Protocol

from pyclient.error_codes import NONE, for_code
from pyclient.errors import KafkaError
from pyclient.net.request_manager import Outcome
from pyclient.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pyclient.types import BrokerMetadata


class CoordinatorType(IntEnum):
    """The wire's numbers."""

    GROUP = 0
    TRANSACTION = 1


class NodeDirectory(Protocol):
    """What is used of the network client."""

    def add_node(self, broker: BrokerMetadata) -> None:
        """Know a node that metadata does not have."""


class Coordinators:
    """Remembers who coordinates what, until told otherwise."""

    def __init__(self, nodes: NodeDirectory) -> None:
        self._nodes = nodes
        self._found: dict[tuple[CoordinatorType, str], int] = {}

    def node(self, kind: CoordinatorType, key: str) -> int | None:
        """The coordinator's node; None if it has to be looked up."""
        return self._found.get((kind, key))

    def forget(self, kind: CoordinatorType, key: str) -> None:
        """Look it up again before the next request."""
        self._found.pop((kind, key), None)

    def request(self, kind: CoordinatorType, key: str) -> FindCoordinatorRequest:
        """A single key, and not a list of them: all versions of brokers can answer that."""
        return FindCoordinatorRequest(key=key, key_type=int(kind))

    def on_answer(self, kind: CoordinatorType, key: str, outcome: Outcome) -> KafkaError | None:
        """Remember the coordinator; the error if there is none to remember."""
        if isinstance(outcome, KafkaError):
            return outcome
        assert isinstance(outcome, FindCoordinatorResponse)
        if outcome.error_code != NONE:
            error = for_code(outcome.error_code)
            return error(outcome.error_message) if outcome.error_message else error()
        self._nodes.add_node(BrokerMetadata(outcome.node_id, outcome.host, outcome.port))
        self._found[kind, key] = outcome.node_id
        return None
