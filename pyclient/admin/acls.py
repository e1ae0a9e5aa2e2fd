"""Access control lists: describe, create, delete. Any broker serves them."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from pyclient.admin.sending.calls import AdminCalls
from pyclient.admin.types.acls import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)
from pyclient.admin.types.result import AdminResult
from pyclient.errors import BrokerResponseError, IllegalArgumentError, NoError, for_code
from pyclient.protocol.messages.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from pyclient.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from pyclient.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


class CreatedAcls(AdminResult):
    """The entries that were created, and the errors of those that were not.

    `failed` has the classes of the errors, `errors` the errors with their texts by entry.
    """

    succeeded: list[ACL]
    failed: list[type[BrokerResponseError]]
    errors: dict[ACL, BrokerResponseError]


class DeletedAcls(NamedTuple):
    """A filter, the entries that it deleted, and `NoError` or the class of its error."""

    acl_filter: ACLFilter
    matching_acls: list[ACL]
    error: type[BrokerResponseError]


class AclCalls(AdminCalls):
    """The calls about access control lists."""

    def describe_acls(self, acl_filter: ACLFilter) -> tuple[list[ACL], type[BrokerResponseError]]:
        """The entries that match a filter, and `NoError`, as in kafka-python.

        Raises:
            SecurityDisabledError: the brokers have no authorizer.
        """
        _check_types([acl_filter], ACLFilter)
        pattern = acl_filter.resource_pattern
        request = DescribeAclsRequest(
            resource_type_filter=pattern.resource_type,
            resource_name_filter=pattern.resource_name,
            pattern_type_filter=pattern.pattern_type,
            principal_filter=acl_filter.principal,
            host_filter=acl_filter.host,
            operation=acl_filter.operation,
            permission_type=acl_filter.permission_type,
        )
        response = self._requests.ask(request, DescribeAclsResponse, self._requests.deadline())
        found = [
            _acl(one, resource.resource_type, resource.resource_name, resource.pattern_type)
            for resource in response.resources
            for one in resource.acls
        ]
        return found, NoError

    def create_acls(self, acls: Iterable[ACL]) -> CreatedAcls:
        """Create entries; those that exist already count as created."""
        wanted = list(acls)
        _check_types(wanted, ACL)
        request = CreateAclsRequest(creations=[_creation(one) for one in wanted])
        # Creating an entry twice does no harm, so that the whole request may be repeated.
        response = self._requests.ask(request, CreateAclsResponse, self._requests.deadline())
        errors = {
            acl: for_code(one.error_code)(f"{acl}: {one.error_message}")
            for acl, one in zip(wanted, response.results, strict=True)
            if one.error_code
        }
        return CreatedAcls(
            succeeded=[acl for acl in wanted if acl not in errors],
            failed=[type(error) for error in errors.values()],
            errors=errors,
        )

    def delete_acls(self, acl_filters: Iterable[ACLFilter]) -> list[DeletedAcls]:
        """Delete the entries that match any of the filters; the outcome for each filter.

        If a connection breaks, the request is repeated; entries that the first attempt has
        deleted are then missing in the result.
        """
        filters = list(acl_filters)
        _check_types(filters, ACLFilter)
        request = DeleteAclsRequest(filters=[_deletion(one) for one in filters])
        response = self._requests.ask(request, DeleteAclsResponse, self._requests.deadline())
        return [
            DeletedAcls(
                acl_filter,
                [
                    _acl(acl, acl.resource_type, acl.resource_name, acl.pattern_type)
                    for acl in result.matching_acls
                    if not acl.error_code
                ],
                for_code(
                    result.error_code
                    or next((one.error_code for one in result.matching_acls if one.error_code), 0)
                ),
            )
            for acl_filter, result in zip(filters, response.filter_results, strict=True)
        ]


class _AclFields(Protocol):
    """What the responses have in common."""

    principal: str
    host: str
    operation: int
    permission_type: int


def _acl(fields: _AclFields, resource_type: int, resource_name: str, pattern_type: int) -> ACL:
    return ACL(
        principal=fields.principal,
        host=fields.host,
        operation=ACLOperation(fields.operation),
        permission_type=ACLPermissionType(fields.permission_type),
        resource_pattern=ResourcePattern(
            ResourceType(resource_type), resource_name, ACLResourcePatternType(pattern_type)
        ),
    )


def _check_types(given: Iterable[ACLFilter], wanted: type[ACLFilter]) -> None:
    for one in given:
        if not isinstance(one, wanted):
            raise IllegalArgumentError(f"{one!r} is not of type {wanted.__name__}")


def _creation(acl: ACL) -> AclCreation:
    return AclCreation(
        resource_type=acl.resource_pattern.resource_type,
        resource_name=acl.resource_pattern.resource_name or "",
        resource_pattern_type=acl.resource_pattern.pattern_type,
        principal=acl.principal or "",
        host=acl.host or "",
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _deletion(acl_filter: ACLFilter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=acl_filter.resource_pattern.resource_type,
        resource_name_filter=acl_filter.resource_pattern.resource_name,
        pattern_type_filter=acl_filter.resource_pattern.pattern_type,
        principal_filter=acl_filter.principal,
        host_filter=acl_filter.host,
        operation=acl_filter.operation,
        permission_type=acl_filter.permission_type,
    )
