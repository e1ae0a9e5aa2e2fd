"""SCRAM credentials of users."""

import hashlib
from typing import Final

from pyclient.admin.types.enums import FromTheWire, member_of
from pyclient.admin.types.result import AdminResult
from pyclient.entropy import Entropy
from pyclient.errors import IllegalArgumentError

_SALT_BYTES: Final = 24


class ScramMechanism(FromTheWire):
    """How a user's password is salted and hashed."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """The name of the hash, as `hashlib` knows it."""
        return {1: "sha256", 2: "sha512"}[self]


class UserScramCredentialDeletion:
    """A credential to delete."""

    def __init__(self, user: str, mechanism: ScramMechanism | str | int) -> None:
        self.user = user
        self.mechanism = _mechanism(mechanism)

    def __repr__(self) -> str:
        return f"UserScramCredentialDeletion({self.user}, {self.mechanism.name})"


class UserScramCredentialUpsertion:
    """A credential to create, or to replace. It keeps the salted password only."""

    DEFAULT_ITERATIONS = 4096

    def __init__(
        self,
        user: str,
        mechanism: ScramMechanism | str | int,
        password: str | bytes,
        iterations: int | None = None,
        salt: bytes | None = None,
    ) -> None:
        """Salt and hash a password.

        Args:
            user: the user's name.
            mechanism: as in `"SCRAM-SHA-512"`.
            password: text is encoded as UTF-8.
            iterations: how often it is hashed; brokers take 4096 to 16384.
            salt: by default random bytes.

        Raises:
            IllegalArgumentError: the password is empty, or the mechanism unknown.
        """
        self.user = user
        self.mechanism = _mechanism(mechanism)
        if not password:
            raise IllegalArgumentError(f"the password of {user!r} is empty")
        self.iterations = self.DEFAULT_ITERATIONS if iterations is None else iterations
        self.salt = Entropy().random_bytes(_SALT_BYTES) if salt is None else salt
        raw = password.encode() if isinstance(password, str) else password
        self.salted_password = hashlib.pbkdf2_hmac(
            self.mechanism.hash_name, raw, self.salt, self.iterations
        )

    def __repr__(self) -> str:
        return (
            f"UserScramCredentialUpsertion({self.user}, {self.mechanism.name},"
            f" iterations={self.iterations})"
        )


def _mechanism(given: ScramMechanism | str | int) -> ScramMechanism:
    mechanism = member_of(ScramMechanism, given)
    if mechanism is ScramMechanism.UNKNOWN:
        raise IllegalArgumentError(f"{given!r} is not a SCRAM mechanism")
    return mechanism


class ScramCredentialInfo(AdminResult):
    """A credential, without its secret."""

    mechanism: ScramMechanism
    iterations: int


class UserScramCredentials(AdminResult):
    """A user's credentials, or the error."""

    error: str | None
    credential_infos: list[ScramCredentialInfo]
