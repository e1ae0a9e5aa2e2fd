"""Files in the style of Kafka's `server.properties`: one `key=value` a line."""

from __future__ import annotations

from pathlib import Path

from pyclient.errors import KafkaConfigurationError


def read_properties(path: Path) -> dict[str, str]:
    """The options in a file; the last of a repeated key counts, as in Java.

    Raises:
        KafkaConfigurationError: the file can't be read, or a line has no value.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KafkaConfigurationError(f"can't read {path}: {error}") from error
    options: dict[str, str] = {}
    for number, line in _logical_lines(text):
        try:
            key, value = parse_property(line)
        except ValueError as error:
            raise KafkaConfigurationError(f"{path}, line {number}: {error}") from None
        options[key] = value
    return options


def parse_property(line: str) -> tuple[str, str]:
    """Split `key=value`.

    Raises:
        ValueError: there is no key or no equals sign.
    """
    key, separator, value = line.partition("=")
    if not separator or not key.strip():
        raise ValueError(f"{line!r} is not of the form key=value")
    return key.strip(), value.strip()


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments and blank ones; a backslash at the end joins the next."""
    lines: list[tuple[int, str]] = []
    pending: tuple[int, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if pending is None and (not line or line[0] in "#!"):
            continue
        start, before = pending or (number, "")
        if line.endswith("\\"):
            pending = (start, before + line[:-1].rstrip())
            continue
        lines.append((start, before + line))
        pending = None
    if pending is not None:
        lines.append(pending)
    return lines
