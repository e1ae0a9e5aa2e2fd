"""DescribeUserScramCredentials (API key 50): which SCRAM credentials users have."""

from pyclient.protocol.primitives import INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class UserName(Struct):
    name: str = field(STRING)


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions="0", flexible="0+"):
    """Describe SCRAM credentials; null for all users."""

    users: list[UserName] | None = field(array(UserName), nullable="0+")


class CredentialInfo(Struct):
    """A credential's mechanism and iterations; never its secret."""

    mechanism: int = field(INT8)  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    iterations: int = field(INT32)


class DescribeUserScramCredentialsResult(Struct):
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    credential_infos: list[CredentialInfo] = field(array(CredentialInfo))


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible="0+"):
    """The credentials that were found."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field(
        array(DescribeUserScramCredentialsResult)
    )
