"""Access control lists: who may do what to which resources."""

from enum import IntEnum
from typing import Final

from pyclient.admin.types.enums import FromTheWire
from pyclient.errors import IllegalArgumentError

_NOT_TOLD: Final = -(2**31)


class ResourceType(FromTheWire):
    """What an entry protects; ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class ACLOperation(FromTheWire):
    """What may be done; ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class ACLPermissionType(FromTheWire):
    """Whether it is allowed or denied, which is stronger; ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ACLResourcePatternType(FromTheWire):
    """How a pattern's name is compared; the first three are for filters only.

    MATCH finds every pattern that applies to a resource of this name: the literal ones, the
    prefixed ones and `*`.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class _Comparable:
    """Compares by fields, and with objects of the same class only."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


class ResourcePatternFilter(_Comparable):
    """Finds resources by type, name (None for any) and kind of pattern."""

    def __init__(
        self,
        resource_type: ResourceType,
        resource_name: str | None,
        pattern_type: ACLResourcePatternType,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.validate()

    def validate(self) -> None:
        """Check the types of the fields.

        Raises:
            IllegalArgumentError: one is wrong.
        """
        _check("resource_type", self.resource_type, ResourceType)
        _check("pattern_type", self.pattern_type, ACLResourcePatternType)

    def __repr__(self) -> str:
        return (
            f"<ResourcePattern type={self.resource_type.name}, name={self.resource_name},"
            f" pattern={self.pattern_type.name}>"
        )


class ResourcePattern(ResourcePatternFilter):
    """The resources that an entry is about: one by name, or all with a prefix."""

    def __init__(
        self,
        resource_type: ResourceType,
        resource_name: str,
        pattern_type: ACLResourcePatternType = ACLResourcePatternType.LITERAL,
    ) -> None:
        super().__init__(resource_type, resource_name, pattern_type)

    def validate(self) -> None:
        """Check the fields; what only filters may have is refused."""
        super().validate()
        _check_concrete("resource_type", self.resource_type, ResourceType.ANY)
        _check_concrete(
            "pattern_type",
            self.pattern_type,
            ACLResourcePatternType.ANY,
            ACLResourcePatternType.MATCH,
        )


class ACLFilter(_Comparable):
    """Finds entries; a principal or host of None matches any."""

    def __init__(
        self,
        principal: str | None,
        host: str | None,
        operation: ACLOperation,
        permission_type: ACLPermissionType,
        resource_pattern: ResourcePatternFilter,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type
        self.resource_pattern = resource_pattern
        self.validate()

    def validate(self) -> None:
        """Check the types of the fields.

        Raises:
            IllegalArgumentError: one is wrong.
        """
        _check("operation", self.operation, ACLOperation)
        _check("permission_type", self.permission_type, ACLPermissionType)
        _check("resource_pattern", self.resource_pattern, ResourcePatternFilter)

    def __repr__(self) -> str:
        return (
            f"<ACL principal={self.principal}, resource={self.resource_pattern},"
            f" operation={self.operation.name}, type={self.permission_type.name},"
            f" host={self.host}>"
        )


class ACL(ACLFilter):
    """An entry: a principal (`User:alice`), a host (`*` for any), and what it may do to what."""

    def __init__(
        self,
        principal: str,
        host: str,
        operation: ACLOperation,
        permission_type: ACLPermissionType,
        resource_pattern: ResourcePattern,
    ) -> None:
        super().__init__(principal, host, operation, permission_type, resource_pattern)

    def validate(self) -> None:
        """Check the fields; what only filters may have is refused."""
        super().validate()
        _check_concrete("operation", self.operation, ACLOperation.ANY)
        _check_concrete("permission_type", self.permission_type, ACLPermissionType.ANY)
        _check("resource_pattern", self.resource_pattern, ResourcePattern)


def _check(name: str, value: object, wanted: type) -> None:
    if not isinstance(value, wanted):
        raise IllegalArgumentError(f"{name} must be of type {wanted.__name__}, not {value!r}")


def _check_concrete(name: str, value: IntEnum, *filters: IntEnum) -> None:
    if value in filters:
        raise IllegalArgumentError(f"{name} cannot be {value.name}: that is for filters only")


def operation_names(bits: int) -> list[str] | None:
    """The operations that a response lists as bits; None where it does not tell them."""
    if bits == _NOT_TOLD:
        return None
    return [one.name for one in ACLOperation if one > ACLOperation.ALL and bits >> one & 1]
