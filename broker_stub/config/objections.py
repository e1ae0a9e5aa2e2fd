"""Why a value is no good for an option, in Apache Kafka's words: tools show them to people.

Pure functions over the rows of the tables.
"""

from collections.abc import Mapping
from typing import Any, Final

from broker_stub.integer_types import INT, LONG, SHORT
from pyclient.config.definition import ConfigKey, Rule, config_type

_NUMBERS: Final[Mapping[object, str]] = {INT: "INT", SHORT: "SHORT", LONG: "LONG", float: "DOUBLE"}


def objection(row: ConfigKey, text: str) -> str | None:
    """What is wrong with a value; None if nothing is."""
    try:
        value = config_type(row.type).convert(text)
    except (TypeError, ValueError):
        return _invalid(row, text, _wrong_type(row))
    if row.rule is None or row.rule.accepts(value):
        return None
    if row.rule.choices and isinstance(value, list):
        value = next(item for item in value if item not in row.rule.choices)
    return _invalid(row, value, _broken_rule(row, row.rule, value))


def _invalid(row: ConfigKey, value: object, reason: str) -> str:
    return f"Invalid value {value} for configuration {row.name}: {reason}"


def _wrong_type(row: ConfigKey) -> str:
    if row.type in _NUMBERS:
        return f"Not a number of type {_NUMBERS[row.type]}"
    if row.type is bool:
        return "Expected value to be either true or false"
    return f"it must be {row.allowed()}"


def _broken_rule(row: ConfigKey, rule: Rule, value: Any) -> str:
    if rule.least is not None and value < rule.least:
        return f"Value must be at least {rule.least}"
    if rule.most is not None and value > rule.most:
        return f"Value must be no more than {rule.most}"
    if rule.choices:
        return f"String must be one of: {', '.join(map(str, rule.choices))}"
    if row.type in _NUMBERS:
        return f"Value must be {rule.text}"
    return f"it must be {row.allowed()}"
