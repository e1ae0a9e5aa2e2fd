"""The schema of a topic's JSON values: Spark's own JSON, DDL, or a JSON Schema.

{"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": true}]}
id long, at timestamp
{"type": "object", "properties": {"id": {"type": "integer"}}}
"""

import json
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_connector.job.files import JobError, first_line

_SIMPLE: Final[dict[str, DataType]] = {
    "string": StringType(),
    "integer": LongType(),
    "number": DoubleType(),
    "boolean": BooleanType(),
}
_FORMATS: Final[dict[str, DataType]] = {"date-time": TimestampType(), "date": DateType()}


def parse_schema(text: str, where: str) -> StructType:
    """A schema out of any of the three notations. Needs an active session for DDL.

    Raises:
        JobError: it is none of these, or has no columns.
    """
    text = text.strip()
    schema = _from_json(text, where) if text.startswith("{") else _from_ddl(text, where)
    if not schema.fields:
        raise JobError(f"{where}: the schema has no columns")
    return schema


def _from_ddl(text: str, where: str) -> StructType:
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise JobError(
            f"{where}: not a schema such as 'id long, at timestamp': {first_line(error)}"
        ) from None
    if not isinstance(schema, StructType):
        raise JobError(f"{where}: '{text}' is a type, and columns are needed: 'id long, ...'")
    return schema


def _from_json(text: str, where: str) -> StructType:
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise JobError(f"{where}: not valid JSON: {error}") from None
    if isinstance(given, dict) and given.get("type") == "struct":
        try:
            return StructType.fromJson(given)
        except (PySparkException, KeyError, TypeError, AttributeError) as error:
            raise JobError(f"{where}: not a schema of Spark: {first_line(error)}") from None
    found = _of_json_schema(given, where)
    if not isinstance(found, StructType):
        raise JobError(f"{where}: the type of a JSON Schema is 'object', not {given.get('type')!r}")
    return found


def _of_json_schema(given: Any, where: str) -> DataType:
    """The type that a JSON Schema describes, as far as Spark can hold it."""
    if not isinstance(given, dict):
        raise JobError(f"{where}: a JSON Schema is an object, not {given!r}")
    kind = given.get("type")
    if isinstance(kind, list):  # such as ["string", "null"]: every column may be null
        kinds = [one for one in kind if one != "null"]
        kind = kinds[0] if len(kinds) == 1 else kind
    if kind == "string" and given.get("format") in _FORMATS:
        return _FORMATS[given["format"]]
    if isinstance(kind, str) and kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind == "array":
        return ArrayType(_of_json_schema(given.get("items"), f"{where}, items"))
    if kind == "object" and "properties" in given:
        return StructType(
            [
                StructField(name, _of_json_schema(one, f"{where}, {name}"))
                for name, one in given["properties"].items()
            ]
        )
    if kind == "object" and isinstance(given.get("additionalProperties"), dict):
        values = _of_json_schema(given["additionalProperties"], f"{where}, values")
        return MapType(StringType(), values)
    raise JobError(f"{where}: no column can be of the type {kind!r}")
