"""ApiVersions: the first thing that a client asks."""

import pytest

from broker_stub.handlers import SERVED
from pyclient.error_codes import InvalidRequestError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest


@pytest.mark.parametrize("version", range(5))
def test_it_lists_what_is_served_and_nothing_else(harness, version):
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = harness.ask(request, version)
    listed = {row.api_key: row.max_version for row in response.api_keys}
    assert listed == {key: versions.highest for key, versions in SERVED.items()}


def test_produce_is_advertised_from_version_0_on(harness):
    (produce,) = (row for row in harness.ask(ApiVersionsRequest(), 0).api_keys if not row.api_key)
    assert (produce.min_version, produce.max_version) == (0, 13)


def test_the_metadata_version_is_the_only_feature(harness):
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = harness.ask(request, 4)
    assert [(one.name, one.max_version_level) for one in response.finalized_features] == [
        ("metadata.version", 30)
    ]
    assert [one.name for one in response.supported_features] == ["metadata.version"]
    assert response.finalized_features_epoch >= 0


@pytest.mark.parametrize(
    ("name", "version"), [("", "1.0"), ("bad name", "1.0"), ("ok", "-1"), ("trailing-", "1.0")]
)
def test_a_malformed_software_name_or_version_is_refused(harness, name, version):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert harness.ask(request, 3).error_code == InvalidRequestError.code
