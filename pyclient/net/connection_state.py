"""The states of a connection, and the table of allowed transitions."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class ConnectionState(Enum):
    """The state of a connection; a higher value is closer to ready."""

    DISCONNECTED = auto()
    RESOLVING = auto()
    CONNECTING = auto()
    SECURING = auto()
    CHECKING_API_VERSIONS = auto()
    READY = auto()


TRANSITIONS: Final[Mapping[ConnectionState, frozenset[ConnectionState]]] = {
    ConnectionState.DISCONNECTED: frozenset({ConnectionState.RESOLVING}),
    ConnectionState.RESOLVING: frozenset(
        {ConnectionState.CONNECTING, ConnectionState.DISCONNECTED}
    ),
    ConnectionState.CONNECTING: frozenset(
        {
            ConnectionState.SECURING,
            ConnectionState.CONNECTING,  # the host's next address
            ConnectionState.DISCONNECTED,
        }
    ),
    ConnectionState.SECURING: frozenset(  # over at once without TLS
        {
            ConnectionState.CHECKING_API_VERSIONS,
            ConnectionState.CONNECTING,  # the host's next address
            ConnectionState.DISCONNECTED,
        }
    ),
    ConnectionState.CHECKING_API_VERSIONS: frozenset(
        {
            ConnectionState.READY,
            ConnectionState.CONNECTING,  # the host's next address
            ConnectionState.DISCONNECTED,
        }
    ),
    ConnectionState.READY: frozenset({ConnectionState.DISCONNECTED}),
}
