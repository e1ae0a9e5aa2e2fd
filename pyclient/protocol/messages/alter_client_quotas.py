"""AlterClientQuotas (API key 49): set or remove quotas."""

from pyclient.protocol.primitives import BOOL, FLOAT64, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class EntityData(Struct):
    """One part of whom a quota is for; null for the default."""

    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable="0+")


class OpData(Struct):
    """A quota to set or to remove."""

    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOL)


class EntryData(Struct):
    """An entity and the changes to its quotas."""

    entity: list[EntityData] = field(array(EntityData))
    ops: list[OpData] = field(array(OpData))


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+"):
    entries: list[EntryData] = field(array(EntryData))
    validate_only: bool = field(BOOL)


class EntryResult(Struct):
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    entity: list[EntityData] = field(array(EntityData))


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    """Whose quotas were changed."""

    throttle_time_ms: int = field(INT32)
    entries: list[EntryResult] = field(array(EntryResult))
