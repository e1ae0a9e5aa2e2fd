"""Options that producer, consumer and admin client share, with Kafka 4's defaults."""

from collections.abc import Iterable
from typing import Any

from pyclient.config.definition import (
    ConfigDefinition,
    ConfigKey,
    ConfigType,
    RefusedKey,
    at_least,
    between,
    not_empty,
    one_of,
)
from pyclient.config.tls import TLS_KEYS, TLS_REFUSED

DEFAULT_PORT = 9092
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Kafka's, which may stand before an address as in a broker's listeners."""

INT32_MAX = 2**31 - 1


def default_config(definition: ConfigDefinition) -> dict[str, Any]:
    """The options and their defaults by kafka-python's names, as its `DEFAULT_CONFIG`."""
    return {name.replace(".", "_"): key.default for name, key in definition.keys.items()}


def _to_address(text: object) -> tuple[str, int]:
    """Split `host`, `host:port`, `[::1]:port` or `PLAINTEXT://host:port`."""
    if not isinstance(text, str):
        raise ValueError(text)
    scheme, _, address = text.strip().rpartition("://")
    if scheme and scheme.upper() not in _PROTOCOLS:
        raise ValueError(f"{text.strip()!r} is not the address of a broker, which is host:port")
    if address.startswith("["):
        host, closed, rest = address[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(text)
        port = rest[1:]
    elif address.count(":") > 1:  # an IPv6 address without brackets has no port
        host, port = address, ""
    else:
        host, _, port = address.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit())):
        raise ValueError(text)
    number = int(port or DEFAULT_PORT)
    if not 0 < number < 65536:
        raise ValueError(text)
    return host, number


def addresses(servers: str | Iterable[str]) -> tuple[tuple[str, int], ...]:
    """The hosts and ports of `bootstrap.servers`."""
    return tuple(map(_to_address, servers.split(",") if isinstance(servers, str) else servers))


def _to_servers(value: Any) -> str | list[str]:
    """Check the addresses, and leave them as they are: programs read them from `config`."""
    servers = value if isinstance(value, str) else list(value)
    addresses(servers)
    return servers


def _to_api_version(value: Any) -> tuple[int, ...] | None:
    if value == "auto":
        return None
    if not isinstance(value, tuple | list) or not all(type(part) is int for part in value):
        raise ValueError(value)
    return tuple(value)


def _to_socket_options(value: Any) -> tuple[tuple[int, int, int | bytes], ...]:
    options = tuple(tuple(option) for option in value)
    for level, option, argument in options:
        if not (isinstance(level, int) and isinstance(option, int)):
            raise ValueError(value)
        if not isinstance(argument, int | bytes):
            raise ValueError(value)
    return options


def _to_callable(value: Any) -> Any:
    if not callable(value):
        raise ValueError(value)
    return value


ADDRESSES = ConfigType("'host:port', or a list or comma-separated string of them", _to_servers)
API_VERSION = ConfigType("a tuple of integers such as (3, 9)", _to_api_version)
SOCKET_OPTIONS = ConfigType("a list of arguments for setsockopt", _to_socket_options)
CALLABLE = ConfigType("a callable", _to_callable)

COMMON_KEYS = (
    ConfigKey(
        "bootstrap.servers",
        ADDRESSES,
        f"localhost:{DEFAULT_PORT}",
        not_empty(),
        "The brokers to bootstrap from. The default port is 9092.",
    ),
    ConfigKey(
        "client.id",
        str,
        None,
        None,
        "The client's name in broker logs and quotas. Default: a name per instance.",
    ),
    ConfigKey(
        "bootstrap.timeout.ms",
        int,
        30_000,
        at_least(0),
        "How long the constructor waits for the first broker to respond.",
        aliases=("api.version.auto.timeout.ms",),
    ),
    ConfigKey(
        "api.version",
        API_VERSION,
        None,
        None,
        "If given, the constructor does not wait for a broker, as in kafka-python. The versions in"
        " use are always negotiated with the broker.",
    ),
    ConfigKey(
        "request.timeout.ms",
        int,
        30_000,
        at_least(0),
        "How long to wait for a response before the connection is closed.",
    ),
    ConfigKey(
        "retry.backoff.ms",
        int,
        100,
        at_least(0),
        "The delay before a retry, doubled each time.",
    ),
    ConfigKey(
        "retry.backoff.max.ms",
        int,
        1_000,
        at_least(0),
        "The maximum delay before a retry.",
    ),
    ConfigKey(
        "reconnect.backoff.ms",
        int,
        50,
        at_least(0),
        "The delay before reconnecting to a broker, doubled each time.",
    ),
    ConfigKey(
        "reconnect.backoff.max.ms",
        int,
        1_000,
        at_least(0),
        "The maximum delay before reconnecting to a broker.",
    ),
    ConfigKey(
        "socket.connection.setup.timeout.ms",
        int,
        10_000,
        at_least(0),
        "The timeout for establishing a connection, doubled after each failure.",
    ),
    ConfigKey(
        "socket.connection.setup.timeout.max.ms",
        int,
        30_000,
        at_least(0),
        "The maximum timeout for establishing a connection.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        int,
        540_000,
        at_least(-1),
        "Close a connection after this idle time; -1 means never.",
    ),
    ConfigKey(
        "max.in.flight.requests.per.connection",
        int,
        5,
        at_least(1),
        "The maximum number of unanswered requests on one connection.",
    ),
    ConfigKey(
        "metadata.max.age.ms",
        int,
        300_000,
        at_least(0),
        "Refresh the cluster's metadata after this time, even without errors.",
    ),
    ConfigKey(
        "metadata.recovery.strategy",
        str,
        "rebootstrap",
        one_of("rebootstrap", "none"),
        "What to do when no known broker is reachable: use the bootstrap servers again"
        " (rebootstrap), or keep trying the known brokers (none).",
    ),
    ConfigKey(
        "metadata.recovery.rebootstrap.trigger.ms",
        int,
        300_000,
        at_least(0),
        "Use the bootstrap servers again when metadata could not be refreshed for this long, even"
        " if some broker is reachable.",
    ),
    ConfigKey(
        "receive.buffer.bytes",
        int,
        None,
        at_least(-1),
        "The socket's receive buffer (SO_RCVBUF). Default and -1: the system's choice.",
    ),
    ConfigKey(
        "send.buffer.bytes",
        int,
        None,
        at_least(-1),
        "The socket's send buffer (SO_SNDBUF). Default and -1: the system's choice.",
    ),
    ConfigKey(
        "socket.options",
        SOCKET_OPTIONS,
        (),
        None,
        "Arguments for setsockopt on every connection. TCP_NODELAY is always set.",
    ),
    ConfigKey(
        "receive.message.max.bytes",
        int,
        100_000_000,
        between(1, INT32_MAX),
        "The largest response to accept; a larger one closes its connection.",
    ),
    *TLS_KEYS,
)

_SASL = "SASL is not supported yet; use a listener without authentication"
_PROXY = "the client connects to brokers directly; use a tunnel outside of it"
_OWN_LOOP = "the client runs its own I/O loop, which cannot be replaced"

COMMON_REFUSED = (
    RefusedKey("selector", _OWN_LOOP),
    RefusedKey("kafka.client", _OWN_LOOP),
    RefusedKey("net", _OWN_LOOP),
    RefusedKey("proxy.url", _PROXY),
    RefusedKey("socks5.proxy", _PROXY),
    RefusedKey("sock.chunk.bytes", "the client reads whatever has arrived", (None, 4096)),
    RefusedKey("sock.chunk.buffer.count", "the client reads whatever has arrived", (None, 1000)),
    RefusedKey("metrics.recording.level", "all metrics have the same level", ("INFO",)),
    RefusedKey("enable.metrics.push", "metrics are not pushed to brokers yet", (False,)),
    RefusedKey(
        "client.dns.lookup",
        "all addresses of a name are tried; canonical names matter only to Kerberos, which is not"
        " supported yet",
        ("use_all_dns_ips",),
    ),
    *TLS_REFUSED,
    RefusedKey("sasl.mechanism", _SASL, (None, "GSSAPI")),
    RefusedKey("sasl.jaas.config", _SASL),
    RefusedKey("sasl.plain.username", _SASL),
    RefusedKey("sasl.plain.password", _SASL),
    RefusedKey("sasl.kerberos.name", _SASL),
    RefusedKey("sasl.kerberos.service.name", _SASL, (None, "kafka")),
    RefusedKey("sasl.kerberos.domain.name", _SASL),
    RefusedKey("sasl.oauth.token.provider", _SASL),
)

COMMON_ELSEWHERE = {
    "metadata.broker.list": "bootstrap.servers",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "ssl.ca.location": "ssl.cafile",
    "ssl.certificate.location": "ssl.certfile",
    "ssl.key.location": "ssl.keyfile",
}
"""librdkafka's names of some options, to suggest ours to users of confluent-kafka."""
