"""The README's table of troubles, row by row against what the clients really say."""

import re
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

import spark_connector
from broker_stub import Broker
from broker_stub.testing.tls import TlsCertificates
from pyclient import KafkaProducer
from tests.support import tls_files
from tests.support.readme import README
from tests.support.tls_server import (
    ScriptedServer,
    hangs_up,
    says_nothing,
    speaks_http,
    speaks_tls,
)

SOON_MS = 500  # how long clients are made to wait
PATIENCE_MS = 20_000  # where they do not wait


class Troubles:
    """Each method gets into one trouble, and returns what there is to read.

    Named after what the table says that the trouble is.
    """

    def __init__(
        self, stack: ExitStack, certificates: TlsCertificates, patch: pytest.MonkeyPatch
    ) -> None:
        self._stack = stack
        self._certificates = certificates
        self._tls_options = {**certificates.client_options, "bootstrap_timeout_ms": PATIENCE_MS}
        self._patch = patch

    def _made(self, where: str, **options: object) -> str:
        settings = {"bootstrap_timeout_ms": SOON_MS, "max_block_ms": SOON_MS, **options}
        with pytest.raises(Exception) as raised:  # noqa: PT011  the text is what is tested
            KafkaProducer(bootstrap_servers=where, **settings)
        return str(raised.value).replace(where, "localhost:9092")

    def _at(self, behaviour: Callable[[socket.socket], None], **options: object) -> str:
        server = self._stack.enter_context(ScriptedServer(behaviour))
        return self._made(f"127.0.0.1:{server.port}", **options)

    def _broker(self, **config: object) -> Broker:
        return self._stack.enter_context(Broker(config=config))

    def _tls(self, pem_file: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem_file)
        return context

    def no_broker_at_that_address(self) -> str:
        taken = self._stack.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        return self._made(f"127.0.0.1:{taken.getsockname()[1]}")

    def a_host_that_does_not_answer(self) -> str:
        listening = self._stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(2):  # the queue is full then, and the system answers nobody
            waiting = self._stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        return self._made(f"127.0.0.1:{listening.getsockname()[1]}")

    def a_misspelt_host(self) -> str:
        def look_up(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        self._patch.setattr(socket, "getaddrinfo", look_up)
        return self._made("localhots:9092").replace("localhots", "localhost")

    def a_web_servers_port(self) -> str:
        return self._at(speaks_http)

    def the_port_of_something_else(self) -> str:
        def speaks_ssh(connection: socket.socket) -> None:
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            says_nothing(connection)

        return self._at(speaks_ssh)

    def a_port_that_accepts_and_says_nothing(self) -> str:
        return self._at(says_nothing)

    def a_port_that_hangs_up(self) -> str:
        return self._at(hangs_up)

    def a_listener_with_tls(self) -> str:
        def alerts(connection: socket.socket) -> None:
            connection.recv(65_536)
            connection.sendall(b"\x15\x03\x03\x00\x02\x02\x46")
            connection.close()

        return self._at(alerts)

    def a_listener_without_tls(self) -> str:
        where = self._broker().bootstrap_servers
        return self._made(where, **self._certificates.client_options)

    def an_unknown_authority(self) -> str:
        context = self._tls(self._certificates.broker_file)
        options = {"security_protocol": "SSL", "bootstrap_timeout_ms": PATIENCE_MS}
        return self._at(speaks_tls(context), **options)

    def a_certificate_of_another_host(self) -> str:
        context = self._tls(self._certificates.issue("kafka.test", file="elsewhere.pem"))
        told = self._at(speaks_tls(context), **self._tls_options)
        return told.replace("ip address mismatch", "hostname mismatch").replace(
            "'127.0.0.1'", "'localhost'"
        )

    def a_certificate_that_has_expired(self) -> str:
        context = self._tls(tls_files.expired(self._certificates))
        return self._at(speaks_tls(context), **self._tls_options)

    def a_broker_that_wants_a_client_certificate(self) -> str:
        config = {**self._certificates.broker_config, "ssl.client.auth": "required"}
        where = self._broker(**config).bootstrap_servers
        return self._made(where, **self._tls_options)

    def a_misspelt_option(self) -> str:
        return self._made("localhost:9092", lingerms=5)

    def a_missing_topic(self) -> str:
        broker = self._broker(**{"auto.create.topics.enable": False})
        with (
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_block_ms=SOON_MS) as one,
            pytest.raises(Exception) as raised,  # noqa: PT011
        ):
            one.send("orders", b"value")
        return str(raised.value)

    def a_record_that_is_too_large(self) -> str:
        with (
            KafkaProducer(bootstrap_servers=self._broker().bootstrap_servers) as one,
            pytest.raises(Exception) as raised,  # noqa: PT011
        ):
            one.send("orders", bytes(2_000_000))
        return str(raised.value)

    def no_java(self) -> str:
        self._patch.delenv("JAVA_HOME", raising=False)
        self._patch.setenv("PATH", "")
        with pytest.raises(spark_connector.MissingJavaError) as raised:
            spark_connector.require_java()
        return str(raised.value)


NAMES = [name for name in vars(Troubles) if not name.startswith("_")]


def table() -> list[str]:
    """What you see, by the README."""
    section = README.read_text().split("## When something goes wrong\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(.*?)` \|", section, re.MULTILINE)


@pytest.fixture
def troubles(
    kafka_tls_certificates: TlsCertificates, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Troubles]:
    with ExitStack() as stack:
        yield Troubles(stack, kafka_tls_certificates, monkeypatch)


def test_every_row_has_its_trouble() -> None:
    assert len(table()) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_shows_what_the_client_says(troubles: Troubles, name: str) -> None:
    told = re.sub(r"\d+ ms", "5000 ms", getattr(troubles, name)())
    assert table()[NAMES.index(name)] in told
