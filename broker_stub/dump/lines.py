"""A line of a dump, and the faults that were found on the way."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Line(NamedTuple):
    """What is printed: as Kafka's text, or the facts in it as JSON."""

    text: str
    facts: Mapping[str, Any]


class Faults:
    """What is wrong with the files, under Kafka's headings, in the order of discovery."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, heading: str, line: str | None = None) -> None:
        """Note a fault below its heading."""
        lines = self._found.setdefault(heading, [])
        if line is not None:
            lines.append(line)

    def lines(self) -> list[str]:
        """Each heading, and its faults behind it."""
        return [line for heading, found in self._found.items() for line in (heading, *found)]


def spelled(facts: Mapping[str, Any]) -> str:
    """`name: value` pairs, with Java's spelling of truth."""
    return " ".join(f"{name}: {_java(value)}" for name, value in facts.items())


def _java(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
