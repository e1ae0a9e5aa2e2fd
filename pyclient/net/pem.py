"""Certificates and keys in PEM, from files or options, into an `ssl.SSLContext`.

Client and broker share it. OpenSSL says little about what is wrong with a file, and not with
which: so files are looked at here first, and every error names the option and the path.
"""

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from pyclient.config.definition import Secret
from pyclient.errors import KafkaConfigurationError

_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=label)-----", re.DOTALL
)
_JAVA_STORE_HEADS: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce", b"\x30\x82")
_LINE: Final = 64
_DESCRIPTORS: Final = "/proc/self/fd"
# How the labels of blocks end, and what they hold.
_CERTIFICATE: Final = ("CERTIFICATE", "certificate")
_PRIVATE_KEY: Final = ("PRIVATE KEY", "private key")
_REVOCATIONS: Final = ("CRL", "list of revoked certificates")


class Pem(NamedTuple):
    """Where PEM text comes from: an option that names a file, or one that holds the text."""

    option: str
    path: str | None = None
    text: str | None = None

    def __str__(self) -> str:
        return f"{self.option} ({self.path})" if self.path is not None else self.option

    def error(self, reason: str) -> KafkaConfigurationError:
        """The error about this option, with its path."""
        return KafkaConfigurationError(f"{self}: {reason}", key=self.option, value=self.path)

    def read(self, label: str, what: str) -> str:
        """The blocks of one kind, laid out as OpenSSL wants them.

        Raises:
            KafkaConfigurationError: the file cannot be read, is not in PEM, or has none of them.
        """
        blocks = list(_BLOCK.finditer(self._content()))
        if not blocks:
            raise self.error("it contains no PEM data (-----BEGIN ...)")
        found = [_laid_out(block) for block in blocks if block["label"].endswith(label)]
        if not found:
            raise self.error(f"it contains no {what}")
        return "".join(found)

    def _content(self) -> str:
        if self.path is None:
            return self.text or ""
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self.error(f"the file cannot be read: {reason.lower()}") from None
        if content.startswith(_JAVA_STORE_HEADS):
            raise self.error("it is a Java key store or PKCS#12, not PEM: see docs/security.md")
        return content.decode("latin-1")


def load_identity(
    context: ssl.SSLContext, chain: Pem, key: Pem, password: Secret | None, password_option: str
) -> None:
    """Give a context its certificate and private key; `key` may be the same source.

    Raises:
        KafkaConfigurationError: they can't be read, or don't belong together.
    """
    whole = chain.read(*_CERTIFICATE) + key.read(*_PRIVATE_KEY)
    is_encrypted = False

    def secret() -> str | bytes:
        # Nothing is raised here: OpenSSL may ask more than once.
        nonlocal is_encrypted
        is_encrypted = True
        return b"" if password is None else password.reveal()

    try:
        with _as_file(whole) as path:
            # Always with a function: without one OpenSSL asks for a password on the terminal.
            context.load_cert_chain(path, password=secret)
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or str(error)
        if reason == "KEY_VALUES_MISMATCH":
            text = f"the private key is not that of the certificate in {chain}"
        elif is_encrypted and password is None:
            text = f"the private key is encrypted: give its password in {password_option}"
        elif is_encrypted:
            text = (
                f"the private key cannot be decrypted: is the password in {password_option} right?"
            )
        else:
            raise chain.error(f"certificate or key cannot be used ({reason})") from None
        raise key.error(text) from None


def load_trust(context: ssl.SSLContext, source: Pem) -> None:
    """Trust these CA certificates.

    Raises:
        KafkaConfigurationError: there are none.
    """
    _load(context, source, source.read(*_CERTIFICATE))


def load_revocations(context: ssl.SSLContext, source: Pem) -> None:
    """Reject the certificates of a revocation list.

    Raises:
        KafkaConfigurationError: it is no such list.
    """
    _load(context, source, source.read(*_REVOCATIONS))
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load(context: ssl.SSLContext, source: Pem, text: str) -> None:
    try:
        with _as_file(text) as path:
            context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise source.error(f"it is damaged ({error.reason or error})") from None


def set_versions(context: ssl.SSLContext, protocols: list[str]) -> None:
    """Speak these versions of TLS, of `TLSv1.2` and `TLSv1.3`."""
    versions = [ssl.TLSVersion[one.replace(".", "_")] for one in protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # Kafka does not need renegotiation, and without it a read never has to write, or vice versa.
    context.options |= ssl.OP_NO_RENEGOTIATION


def _laid_out(block: re.Match[str]) -> str:
    """A block with lines of its own: in a properties file they were perhaps joined."""
    label, body = block["label"], block["body"]
    if ":" not in body:  # else it has headers, whose lines matter
        text = "".join(body.split())
        body = "\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))
    return f"-----BEGIN {label}-----\n{body.strip()}\n-----END {label}-----\n"


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """The path of a file that holds a text: OpenSSL's loaders take paths only.

    In memory on Linux, elsewhere in the temporary folder, for its owner only, while it is read.
    """
    in_memory = hasattr(os, "memfd_create") and os.path.isdir(_DESCRIPTORS)
    if in_memory:
        descriptor = os.memfd_create("pem")
        path = f"{_DESCRIPTORS}/{descriptor}"
    else:
        import tempfile  # Linux does without

        descriptor, path = tempfile.mkstemp(".pem")
    try:
        # Closed before it is read, where it has a name: Windows wants it so.
        with open(descriptor, "wb", closefd=not in_memory) as file:
            file.write(text.encode("latin-1", "replace"))
        yield path
    finally:
        if in_memory:
            os.close(descriptor)
        else:
            os.unlink(path)
