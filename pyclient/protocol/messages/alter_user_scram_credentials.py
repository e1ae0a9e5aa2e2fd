"""AlterUserScramCredentials (API key 51): set or remove SCRAM credentials."""

from pyclient.protocol.primitives import BYTES, INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class ScramCredentialDeletion(Struct):
    name: str = field(STRING)
    mechanism: int = field(INT8)  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512


class ScramCredentialUpsertion(Struct):
    """A credential to set, salted already."""

    name: str = field(STRING)
    mechanism: int = field(INT8)  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: int = field(INT32)
    salt: bytes = field(BYTES)
    salted_password: bytes = field(BYTES)


class AlterUserScramCredentialsRequest(Message, api_key=51, versions="0", flexible="0+"):
    """Remove and set SCRAM credentials."""

    deletions: list[ScramCredentialDeletion] = field(array(ScramCredentialDeletion))
    upsertions: list[ScramCredentialUpsertion] = field(array(ScramCredentialUpsertion))


class AlterUserScramCredentialsResult(Struct):
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0", flexible="0+"):
    """Which users were changed."""

    throttle_time_ms: int = field(INT32)
    results: list[AlterUserScramCredentialsResult] = field(array(AlterUserScramCredentialsResult))
