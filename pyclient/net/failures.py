"""The errors of failed connections: the address, the cause, and what to do about it."""

import errno
import socket
from typing import Final

from pyclient.errors import (
    InvalidReceiveError,
    KafkaConnectionError,
    SslAuthenticationError,
)
from pyclient.net.connection_state import ConnectionState

_CONNECT_REMEDIES: Final = {
    errno.ECONNREFUSED: "nothing listens there: is the broker running, and is the port right?",
    errno.EHOSTUNREACH: "there is no route to the host: check the address and the network",
    errno.ENETUNREACH: "there is no route to its network: check the address and the network",
    errno.ETIMEDOUT: "the host does not answer: is it up, and does a firewall block the port?",
}
_MAYBE_ANOTHER_LISTENER: Final = {
    False: "is it a Kafka broker's port, and a listener without TLS (security_protocol PLAINTEXT)?",
    True: "is it a Kafka broker's port, and does it take this client's certificate?",
}
_MAYBE_NOT_TLS: Final = "is it a listener with TLS? One without needs security_protocol PLAINTEXT"


def address_text(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def not_set_up(
    state: ConnectionState, where: str, error: Exception, tls: bool
) -> KafkaConnectionError:
    """A connection could not be made: an error came in this state."""
    if state is ConnectionState.CONNECTING:
        return _not_connected(where, error)
    if state is ConnectionState.SECURING:
        return _not_secured(where, error)
    return _hung_up_on_greeting(where, error, tls)


def not_set_up_in_time(
    state: ConnectionState, where: str, elapsed_ms: float, tls: bool
) -> KafkaConnectionError:
    """A connection could not be made: nothing happened in this state for too long."""
    after = f"after {elapsed_ms:.0f} ms"
    if state is ConnectionState.RESOLVING:
        text = f"the host name was not resolved {after}: is the name server reachable?"
    elif state is ConnectionState.CONNECTING:
        text = f"no connection {after}: is the host up, and does a firewall block the port?"
    elif state is ConnectionState.SECURING:
        text = f"connected, but the TLS handshake is not done {after}: {_MAYBE_NOT_TLS}"
    else:
        text = (
            f"connected, but no answer to the first request (ApiVersions) {after}:"
            f" {_MAYBE_ANOTHER_LISTENER[tls]}"
        )
    return KafkaConnectionError(f"{where}: {text}")


def name_not_resolved(where: str, error: OSError) -> KafkaConnectionError:
    """The host has no address."""
    reason = error.strerror or str(error)
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
        remedy = "the name server does not answer; try again, or check the DNS settings"
    else:
        remedy = "check the spelling, and that this machine's DNS or hosts file knows the name"
    return KafkaConnectionError(f"{where}: the host name cannot be resolved ({reason}): {remedy}")


def _not_connected(where: str, error: Exception) -> KafkaConnectionError:
    """The connection was not made."""
    code = error.errno if isinstance(error, OSError) else None
    remedy = _CONNECT_REMEDIES.get(code or 0, "check the address and the network")
    reason = getattr(error, "strerror", None) or str(error)
    return KafkaConnectionError(f"{where}: could not connect ({reason.lower()}): {remedy}")


def _not_secured(where: str, error: Exception) -> KafkaConnectionError:
    """The TLS handshake failed."""
    if isinstance(error, SslAuthenticationError):
        return SslAuthenticationError(f"{where}: {error}")
    return KafkaConnectionError(
        f"{where}: connected, but the other side disconnected during the TLS handshake:"
        f" {_MAYBE_NOT_TLS}"
    )


def _hung_up_on_greeting(where: str, error: Exception, tls: bool) -> KafkaConnectionError:
    """The first request ended the connection."""
    if isinstance(error, SslAuthenticationError):  # with TLS 1.3 the client is refused only now
        return _not_secured(where, error)
    if isinstance(error, InvalidReceiveError):
        return KafkaConnectionError(f"{where}: {error}; check the port in bootstrap_servers")
    return KafkaConnectionError(
        f"{where}: connected, but the other side disconnected at the first request (ApiVersions): "
        f"{_MAYBE_ANOTHER_LISTENER[tls]} Brokers before 0.10 cannot be used either"
    )


def not_kafka(where: str, error: Exception) -> KafkaConnectionError:
    """The answer to the first request is not one that a broker gives."""
    return KafkaConnectionError(
        f"{where}: the other side does not speak Kafka's protocol ({error}): "
        "check the port in bootstrap_servers"
    )


def broken(where: str, error: Exception) -> KafkaConnectionError:
    """A connection that was ready broke."""
    reason = getattr(error, "strerror", None) or str(error)
    return KafkaConnectionError(f"{where}: the connection broke ({reason.lower()})")
