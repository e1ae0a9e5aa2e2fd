"""Parses files like Kafka's `server.properties`: one `key=value` a line.

As in Java, a colon or a space separates too, a backslash at the end of a line joins the next one,
and elsewhere it escapes the next character. Pure functions, but for reading the file.
"""

import re
from pathlib import Path
from typing import Final

from pyclient.errors import KafkaConfigurationError

_LINE: Final = re.compile(
    r"(?P<key>(?:[^\\=:\s]|\\.)+)(?P<separator>\s*[=:]\s*|\s+)(?P<value>.*)", re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: Path) -> dict[str, str]:
    """The options in a file; of a repeated key the last value wins, as in Java.

    Raises:
        KafkaConfigurationError: the file can't be read, or a line has no value.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except OSError as error:
        raise KafkaConfigurationError(f"can't read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise KafkaConfigurationError(f"can't read {path}: {error}") from error
    options: dict[str, str] = {}
    for number, line in _logical_lines(text):
        try:
            key, value = parse_property(line, space_separates=True)
        except ValueError as error:
            raise KafkaConfigurationError(f"{path}, line {number}: {error}") from None
        options[key] = value
    return options


def parse_property(line: str, *, space_separates: bool = False) -> tuple[str, str]:
    """Split `key=value`.

    Raises:
        ValueError: there is no key or no separator.
    """
    found = _LINE.fullmatch(line.strip())
    if found is None or not (space_separates or found["separator"].strip()):
        raise ValueError(f"{line!r} is not of the form key=value")
    return _unescaped(found["key"]), _unescaped(found["value"])


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)

    return _ESCAPE.sub(character, text)


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Lines without comments and blank ones, joined where one ends in a backslash."""
    lines: list[tuple[int, str]] = []
    pending: tuple[int, str] | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if pending is None and (not line or line[0] in "#!"):
            continue
        start, before = pending or (number, "")
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            pending = (start, before + line[:-1])
            continue
        lines.append((start, before + line))
        pending = None
    if pending is not None:
        lines.append(pending)
    return lines
