"""Generates the reference page of all options: `make docs` runs this module."""

from collections.abc import Iterable

from pyclient.config import admin, consumer, producer
from pyclient.config.common import COMMON_KEYS, COMMON_REFUSED
from pyclient.config.definition import ConfigDefinition, ConfigKey, RefusedKey

_INTRODUCTION = """\
# Configuration

Options can be spelt as in Java (`linger.ms`) or as in kafka-python (`linger_ms`). Values may be
text, as in a properties file. An unknown option raises an error that suggests the nearest name; a
wrong value raises an error that lists the allowed ones.

The defaults are Kafka 4's. They differ from kafka-python's in two options: `linger_ms` is 5, not 0,
and `reconnect_backoff_max_ms` is 1000, not 30000. More than five requests in flight need
`enable_idempotence=False`; kafka-python turns idempotence off silently.
"""


def page() -> str:
    """The whole page, in Markdown."""
    parts = [_INTRODUCTION, _section("All clients", COMMON_KEYS, COMMON_REFUSED)]
    parts += [_client_section(d.DEFINITION) for d in (producer, consumer, admin)]
    return "\n".join(parts)


def _client_section(definition: ConfigDefinition) -> str:
    keys = [key for key in definition.keys.values() if key not in COMMON_KEYS]
    refused = [row for row in definition.refused.values() if row not in COMMON_REFUSED]
    return _section(definition.owner, keys, refused)


def _section(title: str, keys: Iterable[ConfigKey], refused: Iterable[RefusedKey]) -> str:
    lines = [f"## {title}", "", "| option | default | value | meaning |", "|---|---|---|---|"]
    lines += [_row(key) for key in keys]
    by_reason: dict[str, list[str]] = {}
    for row in refused:
        by_reason.setdefault(row.reason, []).append(f"`{row.name}`")
    if by_reason:
        lines += ["", "Not supported, and refused unless the value has no effect:", ""]
        lines += [f"- {', '.join(names)}: {reason}." for reason, names in by_reason.items()]
    return "\n".join([*lines, ""])


def _row(key: ConfigKey) -> str:
    also = f" (also `{'`, `'.join(key.aliases)}`)" if key.aliases else ""
    return f"| `{key.name}`{also} | {_default(key)} | {key.allowed()} | {key.doc} |"


def _default(key: ConfigKey) -> str:
    if key.default is None or key.default == ():
        return ""
    if isinstance(key.default, list):
        return f"`{','.join(key.default)}`"
    return f"`{str(key.default).lower() if isinstance(key.default, bool) else key.default}`"


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
