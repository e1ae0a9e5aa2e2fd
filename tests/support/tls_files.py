"""Unusual PEM files: encrypted, damaged, expired, of another authority."""

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from broker_stub.testing.tls import TlsCertificates

PASSWORD = "correct horse"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
LATER = datetime.datetime(2021, 1, 1, tzinfo=datetime.UTC)


def split(pem_file: str, folder: Path) -> tuple[str, str]:
    """The certificates and the private key of a file, in files of their own."""
    text = Path(pem_file).read_text()
    at = text.index("-----BEGIN CERTIFICATE")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    certificate.write_text(text[at:])
    key.write_text(text[:at])
    return str(certificate), str(key)


def encrypted(pem_file: str, folder: Path) -> str:
    """The same certificate, its key encrypted with `PASSWORD`."""
    content = Path(pem_file).read_bytes()
    key = serialization.load_pem_private_key(content, None)
    path = folder / "encrypted.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
        + content[content.index(b"-----BEGIN CERTIFICATE") :]
    )
    return str(path)


def expired(certificates: TlsCertificates) -> str:
    """A broker's certificate whose time is over."""
    return certificates.issue(*LOOPBACK, file="expired.pem", not_before=LONG_AGO, not_after=LATER)


def revocation_list(certificates: TlsCertificates, folder: Path, revoked: str | None) -> str:
    """A list of the authority, with the certificate of a file on it, or empty."""
    ca = x509.load_pem_x509_certificate(certificates.authority.cert_pem.bytes())
    key = serialization.load_pem_private_key(certificates.authority.private_key_pem.bytes(), None)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(ca.subject)
        .last_update(now - datetime.timedelta(days=1))
        .next_update(now + datetime.timedelta(days=1))
    )
    if revoked is not None:
        content = Path(revoked).read_bytes()
        leaf = x509.load_pem_x509_certificate(content[content.index(b"-----BEGIN CERTIFICATE") :])
        entry = (
            x509.RevokedCertificateBuilder()
            .serial_number(leaf.serial_number)
            .revocation_date(now - datetime.timedelta(hours=1))
            .build()
        )
        builder = builder.add_revoked_certificate(entry)
    path = folder / "revoked.pem"
    path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return str(path)
