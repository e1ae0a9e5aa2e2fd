"""Where a broker listens, and which addresses it gives to clients: Kafka's `listeners` options.

A client is told the addresses of the listener that it connected to. Listeners of the controller
are not opened: it has no port of its own here. Pure functions over the options.
"""

import os
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from broker_stub.config.broker_config import BrokerConfig
from pyclient.errors import KafkaConfigurationError

DEFAULT_NAME: Final = "PLAINTEXT"
# Not localhost: some clients resolve it to ::1, where nothing listens.
DEFAULT_HOST: Final = "127.0.0.1"

_SYNTAX: Final = r"(?P<name>[A-Za-z0-9_-]+)://(?P<host>\[[^\]]*\]|[^:\[\]/]*):(?P<port>\d+)"
PORT_MAX: Final = 65535
_EVERYWHERE: Final = ("0.0.0.0", "::")
# In the order of Kafka's protocol ids.
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SERVED: Final = ("PLAINTEXT", "SSL")

LISTENERS: Final = "listeners"
_ADVERTISED: Final = "advertised.listeners"
_PROTOCOL_MAP: Final = "listener.security.protocol.map"
_CONTROLLERS: Final = "controller.listener.names"


class Endpoint(NamedTuple):
    """A broker's address on a listener; the protocol is Kafka's id."""

    listener: str
    host: str
    port: int
    security_protocol: int = 0


class Listener(NamedTuple):
    """Where to listen. An empty host means all interfaces, port 0 a free port."""

    name: str
    host: str
    port: int
    advertised: tuple[str, int] | None = None
    """The address for clients, if it differs from where the broker listens."""
    has_tls: bool = False

    @property
    def endpoint(self) -> Endpoint:
        """The address that clients of this listener are told."""
        host, port = self.advertised or (self.host or os.uname().nodename, 0)
        protocol = _PROTOCOLS.index("SSL" if self.has_tls else "PLAINTEXT")
        return Endpoint(self.name, host, port or self.port, protocol)


def configured_listeners(
    config: BrokerConfig, host: str = DEFAULT_HOST, port: int = 0
) -> list[Listener]:
    """The listeners that the options name; one at `host` and `port` if they name none.

    Raises:
        KafkaConfigurationError: the options are malformed, or name an unsupported protocol.
    """
    if config[LISTENERS] is None:
        listeners = [Listener(DEFAULT_NAME, host, port)]
    else:
        listeners = _parsed(LISTENERS, config[LISTENERS])
    _check_ports(listeners)
    controllers = {name.upper() for name in config[_CONTROLLERS]}
    served = [one for one in listeners if one.name not in controllers]
    if not served:
        raise _refused(LISTENERS, config[LISTENERS], "it has no listener for clients")
    served = _with_protocols(served, config[_PROTOCOL_MAP])
    advertised = {one.name: (one.host, one.port) for one in _advertised(config)}
    _check_advertised(advertised, listeners, config)
    _check_own_options(listeners, config)
    made = [one._replace(advertised=advertised.get(one.name)) for one in served]
    for one in made:
        if one.endpoint.host in _EVERYWHERE:
            if config[LISTENERS] is None and one.advertised is None:
                raise KafkaConfigurationError(
                    f"clients can't connect to {host}: advertise another address, for example"
                    f" {_ADVERTISED}={one.name}://kafka.test:{port}",
                    key=_ADVERTISED,
                )
            raise _refused(
                LISTENERS if one.advertised is None else _ADVERTISED,
                f"{one.name}://{one.endpoint.host}:{one.endpoint.port}",
                f"clients can't connect to {one.endpoint.host}: name another address in"
                f" {_ADVERTISED}",
            )
    return made


def _advertised(config: BrokerConfig) -> list[Listener]:
    texts = config[_ADVERTISED]
    return [] if texts is None else _parsed(_ADVERTISED, texts)


def _parsed(option: str, texts: Sequence[str]) -> list[Listener]:
    listeners: dict[str, Listener] = {}
    for text in texts:
        found = re.fullmatch(_SYNTAX, text)
        if found is None or int(found["port"]) > PORT_MAX:
            raise _refused(
                option, text, f"it must be of the form NAME://host:port, port 0 to {PORT_MAX}"
            )
        name = found["name"].upper()
        if name in listeners:
            raise _refused(option, ",".join(texts), f"it has {name} twice")
        listeners[name] = Listener(name, found["host"].strip("[]"), int(found["port"]))
    return list(listeners.values())


def _check_ports(listeners: Sequence[Listener]) -> None:
    taken: dict[int, Listener] = {}
    for one in listeners:
        other = taken.setdefault(one.port, one)
        if one.port and other is not one:
            raise _refused(
                LISTENERS, f"{one.port}", f"{other.name} and {one.name} can't have the same port"
            )


def _with_protocols(listeners: Sequence[Listener], protocol_map: str) -> list[Listener]:
    protocols: dict[str, str] = {}
    for text in protocol_map.split(","):
        name, separator, protocol = text.partition(":")
        if not separator or protocol.strip().upper() not in _PROTOCOLS:
            raise _refused(
                _PROTOCOL_MAP,
                text,
                f"it must be NAME:PROTOCOL, one of {', '.join(_PROTOCOLS)}",
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    for one in listeners:
        spoken = protocols.get(one.name)
        if spoken is None:
            raise _refused(
                LISTENERS,
                one.name,
                f"{_PROTOCOL_MAP} has no entry for it: {' or '.join(_SERVED)}",
            )
        if spoken not in _SERVED:
            raise _refused(
                LISTENERS, one.name, f"{spoken} is not supported, only {' and '.join(_SERVED)} are"
            )
    return [one._replace(has_tls=protocols[one.name] == "SSL") for one in listeners]


def _check_advertised(
    advertised: dict[str, tuple[str, int]], listeners: Sequence[Listener], config: BrokerConfig
) -> None:
    strangers = sorted(advertised.keys() - {one.name for one in listeners})
    if strangers:
        text = ",".join(config[_ADVERTISED])
        raise _refused(_ADVERTISED, text, f"{strangers[0]} is not among the listeners")
    for name, (host, port) in advertised.items():
        if not host:
            raise _refused(_ADVERTISED, f"{name}://{host}:{port}", "it needs a host")


def _check_own_options(listeners: Sequence[Listener], config: BrokerConfig) -> None:
    # The controller's listeners need not be among the broker's.
    names = sorted(
        {*(one.name.lower() for one in listeners), *map(str.lower, config[_CONTROLLERS])}
    )
    for name in config.listeners_with_options:
        if name not in names:
            raise KafkaConfigurationError(
                f"broker options of 'listener.name.{name}' have no listener: the listeners are"
                f" {', '.join(names)} (write them in lower case here)",
                key=f"listener.name.{name}",
            )


def _refused(option: str, value: object, reason: str) -> KafkaConfigurationError:
    return KafkaConfigurationError(
        f"broker option {option!r} cannot be {value!r}: {reason}", key=option, value=value
    )
