"""ACLs: answered as by a Kafka that has no authorizer."""

import pytest

from pyclient.error_codes import SecurityDisabledError
from pyclient.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pyclient.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from pyclient.protocol.messages.describe_acls import DescribeAclsRequest

DISABLED = SecurityDisabledError.code
ENTRY = {
    "resource_type": 2,
    "resource_name": "orders",
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}

EVERYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@pytest.mark.parametrize("version", range(1, 4))
def test_describe_acls_tells_that_security_is_disabled(harness, version):
    request = DescribeAclsRequest(**EVERYTHING)
    response = harness.ask(request, version)
    assert (response.error_code, response.resources) == (DISABLED, [])
    assert "Authorizer" in response.error_message


@pytest.mark.parametrize("version", range(1, 4))
def test_create_acls_tells_it_of_each(harness, version):
    request = CreateAclsRequest(creations=[AclCreation(**ENTRY), AclCreation(**ENTRY)])
    response = harness.ask(request, version)
    assert [one.error_code for one in response.results] == [DISABLED, DISABLED]


@pytest.mark.parametrize("version", range(1, 4))
def test_delete_acls_tells_it_of_each(harness, version):
    every = DeleteAclsFilter(**EVERYTHING)
    response = harness.ask(DeleteAclsRequest(filters=[every, every]), version)
    assert [one.error_code for one in response.filter_results] == [DISABLED, DISABLED]
