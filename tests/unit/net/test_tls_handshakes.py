"""Each way a TLS handshake fails has a message of its own: the address, the cause, the remedy."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from broker_stub.testing.tls import TlsCertificates
from pyclient.errors import NoBrokersAvailable
from pyclient.net.engine import Engine
from tests.support import tls_files
from tests.support.tls_server import (
    ScriptedServer,
    hangs_up,
    says_nothing,
    speaks_http,
    speaks_tls,
)
from tests.unit.net.conftest import NewEngine

FOR_EVER_MS = 60_000  # what is told at once must not need it
SOON_MS = 500


@pytest.fixture
def certificates(kafka_tls_certificates: TlsCertificates) -> TlsCertificates:
    return kafka_tls_certificates


def server_context(pem_file: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem_file)
    return context


@contextmanager
def failing(engine: Engine, timeout_ms: float) -> Iterator[list[str]]:
    """The lines of the error that bootstrapping ends in."""
    lines: list[str] = []
    engine.start()
    with pytest.raises(NoBrokersAvailable) as raised:
        engine.bootstrap(timeout_ms)
    lines += str(raised.value).splitlines()
    yield lines


@pytest.fixture
def message_of(new_real_engine: NewEngine, certificates: TlsCertificates):
    """The one line that an engine's bootstrap ends in, without the address."""

    def message(behaviour, timeout_ms=FOR_EVER_MS, host="127.0.0.1", **options) -> str:
        with ScriptedServer(behaviour) as server:
            where = f"{host}:{server.port}"
            options = {"ssl_cafile": certificates.ca_file, **options}
            if options.get("security_protocol", "SSL") == "PLAINTEXT":
                del options["ssl_cafile"]
            engine = new_real_engine(
                **{"bootstrap_servers": where, "security_protocol": "SSL", **options}
            )
            with failing(engine, timeout_ms) as (head, line):
                assert head.startswith(f"none of the bootstrap servers ({where}) could be used")
                assert line.startswith(f"  {where}"), line
            engine.close(timeout_ms=5_000)
            return line.partition(": ")[2]

    return message


def test_an_untrusted_certificate_names_what_is_trusted(message_of, certificates, tmp_path):
    stranger = TlsCertificates(tmp_path)
    context = server_context(stranger.broker_file)
    assert message_of(speaks_tls(context)) == (
        "the broker's certificate is not trusted (unable to get local issuer certificate); only"
        f" the CAs of ssl_cafile ({certificates.ca_file}) are. Pass the broker's CA in ssl_cafile"
    )


def test_a_self_signed_certificate_is_not_trusted_either(message_of, tmp_path):
    stranger = TlsCertificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    stranger.authority.private_key_pem.write_to_path(tmp_path / "ca-key.pem")
    context.load_cert_chain(stranger.ca_file, tmp_path / "ca-key.pem")
    assert "the broker's certificate is not trusted (self" in message_of(speaks_tls(context))


def test_an_expired_certificate_is_to_be_renewed(message_of, certificates):
    context = server_context(tls_files.expired(certificates))
    assert message_of(speaks_tls(context)) == (
        "the broker's certificate has expired: renew it, or correct this machine's clock"
    )


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("127.0.0.1", "ip address mismatch, certificate is not valid for '127.0.0.1'"),
        ("localhost", "hostname mismatch, certificate is not valid for 'localhost'"),
    ],
)
def test_a_certificate_of_another_host_names_the_host(message_of, certificates, host, reason):
    context = server_context(certificates.issue("kafka.test", file="other.pem"))
    assert message_of(speaks_tls(context), host=host).endswith(
        f"the broker's certificate is for another host ({reason}): connect by a name in the"
        " certificate, or reissue it for this host; ssl_check_hostname=False turns the check off"
    )


def test_a_revoked_certificate_is_refused(message_of, certificates, tmp_path):
    listed = tls_files.revocation_list(certificates, tmp_path, certificates.broker_file)
    context = server_context(certificates.broker_file)
    assert message_of(speaks_tls(context), ssl_crlfile=listed) == (
        "the broker's certificate is revoked (ssl_crlfile): replace it"
    )


def test_a_missing_client_certificate_is_to_be_named(message_of, certificates):
    context = server_context(certificates.broker_file)
    context.load_verify_locations(certificates.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    assert message_of(speaks_tls(context)) == (
        "the broker wants a client certificate, and none was sent: pass one in ssl_certfile and"
        " ssl_keyfile, signed by a CA that the broker trusts"
    )


def test_without_a_client_certificate_old_tls_only_knows_that_it_failed(message_of, certificates):
    context = server_context(certificates.broker_file)
    context.load_verify_locations(certificates.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert "or it wants a client certificate (ssl_certfile)" in message_of(speaks_tls(context))


def test_a_client_certificate_that_the_broker_does_not_trust_is_refused(
    message_of, certificates, tmp_path
):
    context = server_context(certificates.broker_file)
    context.load_verify_locations(certificates.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    stranger = TlsCertificates(tmp_path)
    assert message_of(speaks_tls(context), ssl_certfile=stranger.client_file) == (
        "the broker rejects the client's certificate: it does not trust the CA that signed it."
        " Pass one in ssl_certfile that is signed by a CA in its ssl.truststore"
    )


def test_versions_without_overlap_are_told(message_of, certificates):
    context = server_context(certificates.broker_file)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    options = {"ssl.enabled.protocols": "TLSv1.3"}
    message = message_of(speaks_tls(context), **options)
    assert message.startswith("no TLS version in common")
    assert message.endswith("ssl.enabled.protocols of client and broker must overlap")


def test_ciphers_without_overlap_are_told(message_of, certificates):
    context = server_context(certificates.broker_file)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    message = message_of(speaks_tls(context), ssl_ciphers="ECDHE-ECDSA-AES256-GCM-SHA384")
    assert "it has no cipher in common (ssl_ciphers)" in message


def test_a_port_that_answers_in_the_clear_does_not_speak_tls(message_of):
    assert message_of(speaks_http).startswith("the other side does not speak TLS: is the port")


@pytest.mark.parametrize(
    ("behaviour", "what"),
    [
        (hangs_up, "the other side disconnected during the TLS handshake"),
        (says_nothing, "the TLS handshake is not done after "),
    ],
)
def test_a_port_that_does_not_answer_a_handshake_may_be_one_without_tls(
    message_of, behaviour, what
):
    message = message_of(behaviour, timeout_ms=SOON_MS)
    assert message.startswith(f"connected, but {what}")
    assert message.endswith("with TLS? One without needs security_protocol PLAINTEXT")


def test_a_client_without_tls_is_told_that_the_port_speaks_it(message_of, certificates):
    context = server_context(certificates.broker_file)
    message = message_of(speaks_tls(context), SOON_MS, security_protocol="PLAINTEXT")
    assert "this listener needs security_protocol SSL" in message or (
        "a listener without TLS (security_protocol PLAINTEXT)?" in message
    )


def test_a_host_of_any_case_or_with_a_trailing_dot_is_the_same(message_of, certificates):
    context = server_context(certificates.broker_file)
    message = message_of(speaks_tls(context), SOON_MS, host="LOCALHOST")
    assert "no answer to the first request" in message  # so the handshake was done
