"""Options that producer, consumer and admin client share, with Kafka 4's defaults."""

from typing import Any

from pyclient.config.definition import (
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
INT32_MAX = 2**31 - 1


def _to_address(text: str) -> tuple[str, int]:
    """Split `host`, `host:port`, `[::1]:port` or `PLAINTEXT://host:port`."""
    address = text.strip().rpartition("://")[2]
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


def _to_addresses(value: Any) -> tuple[tuple[str, int], ...]:
    texts = value.split(",") if isinstance(value, str) else list(value)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(value)
    return tuple(_to_address(text) for text in texts)


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


ADDRESSES = ConfigType("'host:port', or a list or comma-separated string of them", _to_addresses)
API_VERSION = ConfigType("a tuple of integers such as (3, 9)", _to_api_version)
SOCKET_OPTIONS = ConfigType("a list of arguments for setsockopt", _to_socket_options)
CALLABLE = ConfigType("a callable", _to_callable)

COMMON_KEYS = (
    ConfigKey(
        "bootstrap.servers",
        ADDRESSES,
        (("localhost", DEFAULT_PORT),),
        not_empty(),
        "Brokers to ask first for the rest of the cluster. The port is 9092 unless given.",
    ),
    ConfigKey(
        "client.id",
        str,
        None,
        None,
        "A name for this client in the broker's logs and quotas. Default: one per instance.",
    ),
    ConfigKey(
        "bootstrap.timeout.ms",
        int,
        30_000,
        at_least(0),
        "How long the constructor waits for a first broker to answer.",
        aliases=("api.version.auto.timeout.ms",),
    ),
    ConfigKey(
        "api.version",
        API_VERSION,
        None,
        None,
        "When given, the constructor does not wait for a broker, as in kafka-python. The versions"
        " that are used come from the broker in any case.",
    ),
    ConfigKey(
        "request.timeout.ms",
        int,
        30_000,
        at_least(0),
        "How long to wait for the response to a request before its connection is given up.",
    ),
    ConfigKey(
        "retry.backoff.ms",
        int,
        100,
        at_least(0),
        "The pause before a request is repeated, doubled each time.",
    ),
    ConfigKey(
        "retry.backoff.max.ms",
        int,
        1_000,
        at_least(0),
        "The longest pause before a request is repeated.",
    ),
    ConfigKey(
        "reconnect.backoff.ms",
        int,
        50,
        at_least(0),
        "The pause before a broker is connected to again, doubled each time.",
    ),
    ConfigKey(
        "reconnect.backoff.max.ms",
        int,
        1_000,
        at_least(0),
        "The longest pause before a broker is connected to again.",
    ),
    ConfigKey(
        "socket.connection.setup.timeout.ms",
        int,
        10_000,
        at_least(0),
        "How long a connection may take to be made, doubled after each failure.",
    ),
    ConfigKey(
        "socket.connection.setup.timeout.max.ms",
        int,
        30_000,
        at_least(0),
        "The longest time that a connection may take to be made.",
    ),
    ConfigKey(
        "connections.max.idle.ms",
        int,
        540_000,
        at_least(-1),
        "Close a connection that was idle for so long; -1 never does.",
    ),
    ConfigKey(
        "max.in.flight.requests.per.connection",
        int,
        5,
        at_least(1),
        "How many requests may wait for their response on one connection.",
    ),
    ConfigKey(
        "metadata.max.age.ms",
        int,
        300_000,
        at_least(0),
        "Ask for the cluster's metadata again after this time, errors or not.",
    ),
    ConfigKey(
        "metadata.recovery.strategy",
        str,
        "rebootstrap",
        one_of("rebootstrap", "none"),
        "What to do when no known broker can be reached: ask the bootstrap servers again, or"
        " keep trying those that are known.",
    ),
    ConfigKey(
        "metadata.recovery.rebootstrap.trigger.ms",
        int,
        300_000,
        at_least(0),
        "Ask the bootstrap servers again when metadata could not be had for so long, even if"
        " some broker can be reached.",
    ),
    ConfigKey(
        "receive.buffer.bytes",
        int,
        None,
        at_least(-1),
        "The socket's receive buffer (SO_RCVBUF). Default and -1: what the system chooses.",
    ),
    ConfigKey(
        "send.buffer.bytes",
        int,
        None,
        at_least(-1),
        "The socket's send buffer (SO_SNDBUF). Default and -1: what the system chooses.",
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

_SASL = "SASL is not there yet, only listeners without authentication can be used"
_PROXY = "the client connects to brokers directly; tunnel the port outside of it"
_OWN_LOOP = "the client runs its own I/O loop, which cannot be replaced"

COMMON_REFUSED = (
    RefusedKey("selector", _OWN_LOOP),
    RefusedKey("kafka.client", _OWN_LOOP),
    RefusedKey("net", _OWN_LOOP),
    RefusedKey("proxy.url", _PROXY),
    RefusedKey("socks5.proxy", _PROXY),
    RefusedKey("sock.chunk.bytes", "reads are as large as what has arrived", (None, 4096)),
    RefusedKey("sock.chunk.buffer.count", "reads are as large as what has arrived", (None, 1000)),
    RefusedKey("metrics.recording.level", "all figures are of one level", ("INFO",)),
    RefusedKey("enable.metrics.push", "figures are not pushed to brokers yet", (False,)),
    RefusedKey(
        "client.dns.lookup",
        "every address of a name is tried; canonical names matter only to Kerberos, which is not"
        " there yet",
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
"""What librdkafka calls some of them, for those who come from confluent-kafka."""
