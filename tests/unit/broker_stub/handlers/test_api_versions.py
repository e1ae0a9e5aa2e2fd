"""ApiVersions: the first thing that a client asks."""

import pytest

from broker_stub.handlers import SERVED
from pyclient.error_codes import InvalidRequestError
from pyclient.protocol.messages.api_versions import ApiVersionsRequest
from tests.support.node_harness import NodeHarness


@pytest.mark.parametrize("version", range(5))
def test_it_lists_what_is_served_and_nothing_else(harness, version):
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = harness.ask(request, version)
    listed = {row.api_key: row.max_version for row in response.api_keys}
    assert listed == {key: versions.highest for key, versions in SERVED.items()}


def test_produce_is_advertised_from_version_0_on(harness):
    (produce,) = (row for row in harness.ask(ApiVersionsRequest(), 0).api_keys if not row.api_key)
    assert (produce.min_version, produce.max_version) == (0, 13)


@pytest.mark.parametrize(
    ("level", "finalized"),
    [
        (0, [("metadata.version", 30)]),
        (1, [("metadata.version", 30), ("transaction.version", 1)]),
        (2, [("metadata.version", 30), ("transaction.version", 2)]),
    ],
)
def test_the_transaction_version_is_the_one_configured(tmp_path, level, finalized):
    harness = NodeHarness(tmp_path, transaction_version=level)
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = harness.ask(request, 4)
    features = [(one.name, one.max_version_level) for one in response.finalized_features]
    assert features == finalized
    supported = [
        (one.name, one.min_version, one.max_version) for one in response.supported_features
    ]
    assert supported == [("metadata.version", 30, 30), ("transaction.version", 0, 2)]
    assert response.finalized_features_epoch >= 0


@pytest.mark.parametrize(
    ("name", "version"), [("", "1.0"), ("bad name", "1.0"), ("ok", "-1"), ("trailing-", "1.0")]
)
def test_a_malformed_software_name_or_version_is_refused(harness, name, version):
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert harness.ask(request, 3).error_code == InvalidRequestError.code
