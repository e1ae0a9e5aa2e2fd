"""DescribeClientQuotas (API key 48): the quotas that match a filter."""

from pyclient.protocol.primitives import BOOL, FLOAT64, INT8, INT16, INT32, STRING
from pyclient.protocol.schema import Message, Struct, array, field


class ComponentData(Struct):
    """What one kind of entity has to match."""

    entity_type: str = field(STRING)
    match_type: int = field(INT8)  # 0 exact, 1 default, 2 any
    match: str | None = field(STRING, nullable="0+")


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+"):
    components: list[ComponentData] = field(array(ComponentData))
    strict: bool = field(BOOL)


class EntityData(Struct):
    """One part of whom a quota is for; null for the default."""

    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable="0+")


class ValueData(Struct):
    key: str = field(STRING)
    value: float = field(FLOAT64)


class EntryData(Struct):
    entity: list[EntityData] = field(array(EntityData))
    values: list[ValueData] = field(array(ValueData))


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    """The quotas that match."""

    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+")
    entries: list[EntryData] | None = field(array(EntryData), nullable="0+")
