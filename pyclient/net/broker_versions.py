"""The API versions of a broker, from its response to the first request."""

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple

from pyclient.errors import CorrelationIdError, ProtocolError, UnsupportedVersionError, for_code
from pyclient.net.throttling import client_waits
from pyclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from pyclient.protocol.registry import ApiVersionRange, choose_version
from pyclient.protocol.schema import Message

FIRST_TRIED: Final = ApiVersionsRequest.stable.highest
LAST_RESORT: Final = 0
_HEAD: Final = struct.Struct(">ih")  # correlation id, error code: the same in all versions
_CORRELATION_ID_BYTES: Final = 4


class BrokerVersions(NamedTuple):
    """The APIs that a broker serves, and the cluster's `transaction.version`.

    Attributes:
        throttle_time_ms: for how long it wants to hear nothing after this answer.
    """

    served: Mapping[int, ApiVersionRange]
    transaction_version: int = 0
    throttle_time_ms: int = 0

    def choose(self, request: Message) -> int:
        """The version to send a request in.

        Raises:
            UnsupportedVersionError: the broker has none that fits.
        """
        assert request.api_key is not None
        return choose_version(request, self.served.get(request.api_key), self.transaction_version)


def read_api_versions(
    frame: memoryview, correlation_id: int, version: int
) -> BrokerVersions | None:
    """Read the answer to an ApiVersions request; None if it must be repeated in `LAST_RESORT`.

    Raises:
        KafkaError: it is not an answer that a broker gives to this request.
    """
    if len(frame) < _HEAD.size:
        raise ProtocolError(f"a response of only {len(frame)} bytes")
    answered, error_code = _HEAD.unpack_from(frame)
    if answered != correlation_id:
        raise CorrelationIdError(f"a response to request {answered}, expected was {correlation_id}")
    if error_code == UnsupportedVersionError.code and version != LAST_RESORT:
        # Do not parse anything behind the error code: some brokers fill it
        # in the version that was asked for, some in version 0, some wrongly.
        return None
    if error_code:
        raise for_code(error_code)()
    answer = ApiVersionsResponse.decode(frame[_CORRELATION_ID_BYTES:], version)
    levels = {one.name: one.max_version_level for one in answer.finalized_features}
    return BrokerVersions(
        {one.api_key: ApiVersionRange(one.min_version, one.max_version) for one in answer.api_keys},
        levels.get("transaction.version", 0),
        answer.throttle_time_ms if client_waits(ApiVersionsRequest.api_key or 0, version) else 0,
    )
