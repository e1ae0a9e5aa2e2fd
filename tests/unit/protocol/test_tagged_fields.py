"""Tagged fields of versions to come survive a round trip through ours."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyclient.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from pyclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from pyclient.protocol.schema import Message
from tests.support.message_strategies import messages
from tests.support.messages import declared_messages

FLEXIBLE = [
    (name, version)
    for name, cls in sorted(declared_messages().items())
    for version in [cls.versions.highest]
    if version in cls.flexible
]
# Above every tag that is in use.
UNKNOWN = st.dictionaries(st.integers(100, 2**32 - 1), st.binary(max_size=200), max_size=3)


@pytest.mark.parametrize(("name", "version"), FLEXIBLE)
def test_unknown_tagged_fields_survive_a_round_trip(name: str, version: int) -> None:
    cls = declared_messages()[name]

    @settings(max_examples=10, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    @given(messages(cls, version), UNKNOWN)
    def survive(message: Any, unknown: dict[int, bytes]) -> None:
        message.unknown_tagged_fields = unknown
        body = message.encode_bytes(version)
        decoded = cls.decode(body, version)
        assert dict(decoded.unknown_tagged_fields) == unknown
        assert decoded == message
        assert decoded.encode_bytes(version) == body

    survive()


def test_they_survive_at_every_depth() -> None:
    partition = PartitionData(unknown_tagged_fields={50: b"partition"})
    partition.current_leader.unknown_tagged_fields = {7: b"inside a tagged struct"}
    topic = FetchableTopicResponse(partitions=[partition], unknown_tagged_fields={60: b"topic"})
    response = FetchResponse(responses=[topic], unknown_tagged_fields={70: b"response"})
    assert FetchResponse.decode(response.encode_bytes(16), 16) == response


def test_they_are_written_between_known_ones_in_the_order_of_tags() -> None:
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=1)],
        supported_features=[SupportedFeatureKey(name="f")],  # tag 0
        zk_migration_ready=True,  # tag 3
        unknown_tagged_fields={200: b"", 9: b"nine"},
    )
    body = response.encode_bytes(3)
    assert body.endswith(b"\x03\x01\x01" + b"\x09\x04nine" + b"\xc8\x01\x00")
    assert ApiVersionsResponse.decode(body, 3) == response


def test_a_message_without_them_holds_no_dictionary_of_its_own() -> None:
    body = ApiVersionsResponse().encode_bytes(3)
    one: Message = ApiVersionsResponse.decode(body, 3)
    other: Message = ApiVersionsResponse.decode(body, 3)
    assert one.unknown_tagged_fields is other.unknown_tagged_fields
