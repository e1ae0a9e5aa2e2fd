"""ApiVersions (API key 18), versions 0-4.

Lists the APIs of `SERVED`, except those that an interceptor hides. An unknown version is answered
in version 0 with error 35 and the list, so that the client can retry with a supported one; franz-go
fails on an empty list. From version 3 on, the response has the features of `metadata.features`,
with the end of the metadata log as their epoch, and the name and version of the client software are
validated (KIP-511).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker_stub.handlers import SERVED
from broker_stub.metadata.features import features
from broker_stub.request import RequestContext
from pyclient.error_codes import BrokerResponseError, InvalidRequestError, UnsupportedVersionError
from pyclient.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from pyclient.protocol.registry import ApiVersionRange

if TYPE_CHECKING:
    from broker_stub.node import Node

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

# Older librdkafka releases turn compression off unless Produce starts at 0, though they never send
# that version. Apache Kafka also advertises 0 and serves only 3 and later.
_ADVERTISED_LOWEST: Final = {0: 0}


def handle(node: Node, request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """List the supported versions."""
    if context.api_version >= 3:
        software = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(text) for text in software):
            raise InvalidRequestError("client software name or version is malformed")
    levels_of = features(node.config["transaction.version"])
    return ApiVersionsResponse(
        api_keys=_listed(node.dispatcher.served()),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=levels.lowest, max_version=levels.highest)
            for name, levels in levels_of.items()
        ],
        finalized_features_epoch=node.controller.quorum.end_offset,
        finalized_features=[
            FinalizedFeatureKey(
                name=name, min_version_level=levels.finalized, max_version_level=levels.finalized
            )
            for name, levels in levels_of.items()
            if levels.finalized  # level 0 is the feature's absence
        ],
    )


def refuse(request: ApiVersionsRequest, error: BrokerResponseError) -> ApiVersionsResponse:
    """Fail without a list."""
    return ApiVersionsResponse(error_code=error.code)


def unsupported_version(served: Mapping[int, ApiVersionRange]) -> ApiVersionsResponse:
    """The response to a version that is not supported, in version 0."""
    return ApiVersionsResponse(error_code=UnsupportedVersionError.code, api_keys=_listed(served))


def _listed(served: Mapping[int, ApiVersionRange]) -> list[ApiVersion]:
    return [
        ApiVersion(
            api_key=api_key,
            min_version=_advertised_lowest(api_key, versions),
            max_version=versions.highest,
        )
        for api_key, versions in sorted(served.items())
    ]


def _advertised_lowest(api_key: int, versions: ApiVersionRange) -> int:
    if versions.lowest > SERVED[api_key].lowest:
        return versions.lowest  # an interceptor hides the lower ones on purpose
    return _ADVERTISED_LOWEST.get(api_key, versions.lowest)
