"""The same scripted broker behind three kinds of network: memory, sockets, sockets with TLS.

A test written for a `WireWorld` runs in all three. In memory time is the test's; on sockets it
is the machine's, so waits are short and no test depends on how long anything takes.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from broker_stub.testing.tls import TlsCertificates
from pyclient.net.scripted import ScriptedBroker, ScriptedNetwork
from tests.support.scripted_group import ScriptedGroup
from tests.support.scripted_log import ScriptedLog
from tests.support.scripted_server import ScriptedServer

KINDS = ("memory", "socket", "tls")
TOPIC = "orders"
VALUES = [b"one", b"two", b"three"]

# Brokers speak little here: an answer to ApiVersions with all APIs would be most of the bytes.
_APIS = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 22)


class WireWorld:
    """One broker that leads one partition and coordinates groups of one.

    Attributes:
        options: for the clients that live here.
    """

    def __init__(self, kind: str, certificates: TlsCertificates) -> None:
        self.kind = kind
        self.network = ScriptedNetwork()
        self.broker: ScriptedBroker = self.network.add_broker(1)
        self.broker.versions = {key: self.broker.versions[key] for key in _APIS}
        self.network.add_topic(TOPIC)
        self.log = ScriptedLog(self.network)
        self.group = ScriptedGroup(self.network, self.broker, VALUES)
        self.options: dict[str, Any] = {"reconnect_backoff_ms": 1, "retry_backoff_ms": 1}
        self._server: ScriptedServer | None = None
        if kind == "memory":
            self.options["environment"] = self.network
        else:
            self._server = ScriptedServer(self.broker, self._context(certificates))
            if kind == "tls":
                self.options |= certificates.client_options
        self.options["bootstrap_servers"] = f"{self.broker.host}:{self.broker.port}"

    def _context(self, certificates: TlsCertificates) -> ssl.SSLContext | None:
        if self.kind != "tls":
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.broker_file)
        return context

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


@contextmanager
def wire_world(kind: str, certificates: TlsCertificates) -> Iterator[WireWorld]:
    """A world for the length of a block."""
    world = WireWorld(kind, certificates)
    try:
        yield world
    finally:
        world.close()
