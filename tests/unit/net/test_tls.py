"""The `ssl.` options made into a context: which files are read, and what is wrong with them."""

import ssl
from pathlib import Path

import pytest

from broker_stub.testing.tls import TlsCertificates
from pyclient import KafkaAdminClient, KafkaConsumer, KafkaProducer
from pyclient.config.common import COMMON_KEYS, COMMON_REFUSED
from pyclient.config.definition import ConfigDefinition
from pyclient.errors import KafkaConfigurationError
from pyclient.net.tls import TlsSettings, tls_settings
from tests.support import tls_files

COMMON = ConfigDefinition("a client", COMMON_KEYS, COMMON_REFUSED)
CLIENTS = (KafkaProducer, KafkaConsumer, KafkaAdminClient)


@pytest.fixture
def certificates(kafka_tls_certificates: TlsCertificates) -> TlsCertificates:
    return kafka_tls_certificates


def settings(**options: object) -> TlsSettings:
    return tls_settings(COMMON.parse({"security_protocol": "SSL", **options}))


def refusal(**options: object) -> str:
    with pytest.raises(KafkaConfigurationError) as raised:
        settings(**options)
    return str(raised.value)


def test_the_systems_authorities_are_trusted_unless_others_are_named():
    made = settings()
    assert made.context.verify_mode is ssl.CERT_REQUIRED
    assert made.context.check_hostname
    assert made.has_certificate is False
    assert made.trusts == "the system"


def test_a_named_authority_is_the_only_one(certificates):
    made = settings(ssl_cafile=certificates.ca_file)
    assert len(made.context.get_ca_certs()) == 1
    assert certificates.ca_file in made.trusts


def test_javas_names_for_pem_files_mean_the_same(certificates):
    made = settings(
        **{
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": certificates.ca_file,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.client_file,
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert made.has_certificate
    assert not made.context.check_hostname


@pytest.mark.parametrize("newline", ["\n", " ", ""])
def test_pem_text_takes_the_place_of_files_however_its_lines_came(certificates, newline):
    text = Path(certificates.client_file).read_text().replace("\n", newline)
    ca = Path(certificates.ca_file).read_text().replace("\n", newline)
    made = settings(
        **{
            "ssl.truststore.certificates": ca,
            "ssl.keystore.certificate.chain": text[text.index("-----BEGIN CERTIFICATE") :],
            "ssl.keystore.key": text[: text.index("-----BEGIN CERTIFICATE")],
        }
    )
    assert made.has_certificate
    assert len(made.context.get_ca_certs()) == 1


def test_certificate_and_key_may_be_two_files(certificates, tmp_path):
    certificate, key = tls_files.split(certificates.client_file, tmp_path)
    assert settings(ssl_certfile=Path(certificate), ssl_keyfile=key).has_certificate


def test_an_encrypted_key_needs_its_password(certificates, tmp_path):
    path = tls_files.encrypted(certificates.client_file, tmp_path)
    assert settings(ssl_certfile=path, ssl_password=tls_files.PASSWORD).has_certificate
    assert refusal(ssl_certfile=path) == (
        f"ssl_certfile ({path}): the private key is encrypted: give its password in ssl_password"
    )
    wrong = refusal(ssl_certfile=path, ssl_password="wrong horse")
    assert "is the password in ssl_password right?" in wrong
    assert "wrong horse" not in wrong


def test_a_password_is_never_shown(certificates, tmp_path):
    config = COMMON.parse({"ssl_password": "hunter2", "ssl.keystore.key": "hunter3"})
    assert "hunter" not in repr(dict(config))
    with pytest.raises(KafkaConfigurationError) as raised:
        COMMON.parse({"ssl_password": ["hunter2"]})
    assert "hunter2" not in repr(raised.value)
    assert "hunter2" not in str(vars(raised.value))
    with pytest.raises(KafkaConfigurationError) as raised:
        COMMON.parse({"ssl_password": "hunter2", "ssl.key.password": "hunter2"})
    assert "hunter2" not in str(raised.value) + str(vars(raised.value))


@pytest.mark.parametrize("option", ["ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_missing_file_is_named_when_the_client_is_made(certificates, client, option):
    options = {"ssl_cafile": certificates.ca_file, "ssl_certfile": certificates.client_file}
    with pytest.raises(KafkaConfigurationError) as raised:
        client(security_protocol="SSL", **{**options, option: "/no/such.pem"})
    assert str(raised.value) == (
        f"{option} (/no/such.pem): the file cannot be read: no such file or directory"
    )
    assert raised.value.key == option


def test_a_folder_and_a_forbidden_file_cannot_be_read(tmp_path):
    assert "is a directory" in refusal(ssl_cafile=tmp_path)


def test_a_file_that_is_not_pem_is_told_apart(certificates, tmp_path):
    store = tmp_path / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    assert "it is a Java key store or PKCS#12" in refusal(ssl_cafile=store)
    text = tmp_path / "text.pem"
    text.write_text("hello")
    assert f"ssl_cafile ({text}): it contains no PEM data" in refusal(ssl_cafile=text)
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n")
    assert f"ssl_cafile ({damaged}): it is damaged" in refusal(ssl_cafile=damaged)
    assert f"ssl_certfile ({damaged}): it contains no private key" in refusal(ssl_certfile=damaged)
    assert "no list of revoked certificates" in refusal(ssl_crlfile=certificates.ca_file)


def test_a_key_of_another_certificate_is_told(certificates, tmp_path):
    _, key = tls_files.split(certificates.broker_file, tmp_path)
    assert refusal(ssl_certfile=certificates.client_file, ssl_keyfile=key) == (
        f"ssl_keyfile ({key}): the private key is not that of the certificate in"
        f" ssl_certfile ({certificates.client_file})"
    )


def test_a_list_of_revoked_certificates_is_looked_at(certificates, tmp_path):
    path = tls_files.revocation_list(certificates, tmp_path, revoked=None)
    made = settings(ssl_cafile=certificates.ca_file, ssl_crlfile=path)
    assert made.context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF


def test_versions_and_ciphers_are_as_asked_for():
    assert settings().context.minimum_version is ssl.TLSVersion.TLSv1_2
    newest = settings(**{"ssl.enabled.protocols": "TLSv1.3"}).context
    assert newest.minimum_version is newest.maximum_version is ssl.TLSVersion.TLSv1_3
    ciphers = settings(ssl_ciphers="ECDHE-ECDSA-AES256-GCM-SHA384").context.get_ciphers()
    assert "ECDHE-ECDSA-AES256-GCM-SHA384" in [one["name"] for one in ciphers]
    assert "OpenSSL knows no such cipher" in refusal(ssl_ciphers="ROT13")
    assert "of TLSv1.2, TLSv1.3" in refusal(**{"ssl.enabled.protocols": "SSLv3"})


def test_a_context_of_the_programs_own_is_used_as_it_is(certificates):
    context = ssl.create_default_context(cafile=certificates.ca_file)
    made = settings(ssl_context=context, ssl_check_hostname=True)
    assert made.context is context
    assert made.has_certificate is None
    assert "ssl_cafile contradicts ssl_context" in refusal(
        ssl_context=context, ssl_cafile=certificates.ca_file
    )
    assert "ssl_check_hostname contradicts" in refusal(
        ssl_context=context, ssl_check_hostname=False
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ssl_keyfile": "key.pem"}, "ssl_keyfile needs ssl_certfile"),
        ({"ssl_password": "secret"}, "ssl_password needs ssl_certfile"),
        (
            {"ssl_cafile": "ca.pem", "ssl.truststore.certificates": "text"},
            "ssl_cafile and ssl.truststore.certificates mean the same",
        ),
        ({"ssl.keystore.certificate.chain": "text"}, "it needs ssl.keystore.key"),
        ({"ssl.truststore.type": "JKS"}, "only PEM is supported"),
        ({"ssl.truststore.password": "secret"}, "PEM files have no store password"),
        ({"ssl_context": "context"}, "it must be an ssl.SSLContext"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, text):
    assert text in refusal(**options)
    assert "secret" not in refusal(**options)


@pytest.mark.parametrize("client", CLIENTS)
def test_tls_options_without_tls_are_refused(client, certificates):
    with pytest.raises(KafkaConfigurationError) as raised:
        client(ssl_cafile=certificates.ca_file)
    assert str(raised.value) == "ssl_cafile needs security_protocol='SSL', which is 'PLAINTEXT'"
