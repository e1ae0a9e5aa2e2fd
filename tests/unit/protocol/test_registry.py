"""Which APIs there are, and which version of one to use."""

import subprocess
import sys

import pytest

from pyclient.errors import UnsupportedVersionError
from pyclient.protocol import registry
from pyclient.protocol.messages.fetch import FetchRequest, FetchTopic
from pyclient.protocol.messages.init_producer_id import InitProducerIdRequest
from pyclient.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from pyclient.protocol.registry import ApiVersionRange, choose_version


def test_key_and_name_lead_to_each_other() -> None:
    assert registry.API_NAMES[2] == "ListOffsets"
    assert registry.API_KEYS["ListOffsets"] == 2
    assert len(registry.API_KEYS) == len(registry.API_NAMES)


def test_classes_are_found_by_key() -> None:
    assert registry.request_class(2) is ListOffsetsRequest
    assert registry.response_class(2) is ListOffsetsResponse
    assert [cls.api_key for cls in registry.request_classes()] == list(registry.API_NAMES)


@pytest.mark.parametrize("api_key", [-1, 4, 52, 76, 88, 1000])
def test_an_api_that_is_not_spoken_is_refused_by_its_key(api_key: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"API key {api_key} "):
        registry.request_class(api_key)
    with pytest.raises(UnsupportedVersionError, match=f"API key {api_key} "):
        registry.response_class(api_key)


def test_messages_are_imported_when_asked_for_and_not_before() -> None:
    program = (
        "import sys\n"
        "from pyclient.protocol import registry\n"
        "loaded = lambda: [m for m in sys.modules if m.startswith('pyclient.protocol.messages.')]\n"
        "assert loaded() == [], loaded()\n"
        "registry.request_class(12)\n"
        "assert loaded() == ['pyclient.protocol.messages.heartbeat'], loaded()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("served", "version"),
    [
        (ApiVersionRange(0, 30), 11),  # a newer broker: our highest
        (ApiVersionRange(1, 7), 7),  # an older one: its highest
        (ApiVersionRange(0, 1), 1),
        (ApiVersionRange(11, 12), 11),
    ],
)
def test_version_is_the_highest_that_both_know(served: ApiVersionRange, version: int) -> None:
    assert choose_version(ListOffsetsRequest(), served) == version


def test_version_is_below_the_cap_of_the_request() -> None:
    by_name = FetchRequest(topics=[FetchTopic(topic="orders")])
    assert choose_version(by_name, ApiVersionRange(4, 17)) == 12
    by_id = FetchRequest(topics=[FetchTopic(topic_id=b"\x01" * 16)])
    assert choose_version(by_id, ApiVersionRange(4, 17)) == 17


def test_version_that_is_not_stable_is_never_chosen() -> None:
    assert 6 in InitProducerIdRequest.versions
    assert choose_version(InitProducerIdRequest(), ApiVersionRange(0, 6)) == 5


@pytest.mark.parametrize("served", [ApiVersionRange(0, 0), ApiVersionRange(12, 20)])
def test_no_common_version_names_both_ranges(served: ApiVersionRange) -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        choose_version(ListOffsetsRequest(), served)
    assert "ListOffsetsRequest" in str(caught.value)
    assert "1 to 11" in str(caught.value)
    assert f"{served.lowest} to {served.highest}" in str(caught.value)


def test_cap_below_what_the_broker_still_serves_is_refused() -> None:
    by_name = FetchRequest(topics=[FetchTopic(topic="orders")])
    with pytest.raises(UnsupportedVersionError, match="no common version of FetchRequest"):
        choose_version(by_name, ApiVersionRange(13, 18))


def test_api_that_the_broker_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match="does not serve ListOffsetsRequest"):
        choose_version(ListOffsetsRequest(), None)
