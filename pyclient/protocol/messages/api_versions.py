"""ApiVersions (API key 18): which APIs and versions a broker speaks, and its features.

The response header is always version 0, whatever the body. A broker that does not know the
version answers with error 35 and a version 0 body: past the error code nothing in it is to be
trusted, and the request is repeated in version 0.
"""

from pyclient.protocol.primitives import BOOL, INT16, INT32, INT64, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class ApiVersionsRequest(Message, api_key=18, versions="0-4", flexible="3+"):
    """Ask what a broker speaks; the first request on a connection."""

    client_software_name: str = field(STRING, versions="3+", ignorable=True)
    client_software_version: str = field(STRING, versions="3+", ignorable=True)


class ApiVersion(Struct):
    api_key: int = field(INT16)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


class SupportedFeatureKey(Struct):
    """The levels of a feature that the broker could run."""

    name: str = field(STRING)
    min_version: int = field(INT16)
    max_version: int = field(INT16)


class FinalizedFeatureKey(Struct):
    """The level of a feature that the cluster runs."""

    name: str = field(STRING)
    max_version_level: int = field(INT16)
    min_version_level: int = field(INT16)


class ApiVersionsResponse(Message, api_key=18, versions="0-4", flexible="3+"):
    """What the broker speaks."""

    error_code: int = field(INT16)
    api_keys: list[ApiVersion] = field(array(ApiVersion))
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(
        array(SupportedFeatureKey), versions="3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = field(INT64, versions="3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field(
        array(FinalizedFeatureKey), versions="3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = field(BOOL, versions="3+", tag=3, ignorable=True)
