"""Reads a job's file into nested dicts: TOML as it is, `.properties` by the dots of its keys.

`topic.orders.schema = ...` in a properties file is `schema` below `[topic.orders]` in TOML.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://|[a-zA-Z][a-zA-Z0-9+.-]+:/")


class JobError(ValueError):
    """A job's file is wrong; the text says where, and what to do."""


def read_job(path: str, session: Callable[[], SparkSession]) -> dict[str, Any]:
    """The settings of a job's file.

    Args:
        path: a local path, or a URL that Hadoop's file systems open (`hdfs://`, `s3a://`).
        session: makes a Spark session; only asked for a URL.

    Raises:
        JobError: it cannot be read, or is malformed.
    """
    text = read_text(path, session)
    if path.endswith(".toml"):
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise JobError(f"{path}: not valid TOML: {error}") from None
    if path.endswith(".properties"):
        return dict(parse_properties(text, path))
    raise JobError(f"{path}: a job's file ends in .properties or .toml")


def read_text(path: str, session: Callable[[], SparkSession]) -> str:
    """The text of a file."""
    try:
        if not _SCHEME.match(path):
            return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise JobError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise JobError(f"{path}: not UTF-8: {error}") from None
    from pyspark.errors import PySparkException

    try:
        rows = session().read.text(path, wholetext=True).collect()
    except PySparkException as error:
        raise JobError(f"{path}: cannot be read: {first_line(error)}") from None
    if len(rows) != 1:
        raise JobError(f"{path}: cannot be read: it is a folder of {len(rows)} files")
    return str(rows[0][0])


def first_line(error: BaseException) -> str:
    """The first line of an error's text: Spark's go on with a plan or a stack trace."""
    return str(error).strip().split("\n", 1)[0]


def parse_properties(text: str, path: str) -> Iterator[tuple[str, str]]:
    """Java's properties: keys and values, with comments, continued lines and escapes."""
    seen = set()
    for number, line in _logical_lines(text):
        match = re.match(r"((?:\\.|[^\\=:\s])+)\s*[=:]?\s*(.*)", line, re.DOTALL)
        if match is None:
            raise JobError(f"{path}, line {number}: expected 'key = value', got '{line}'")
        key = _unescaped(match[1])
        if key in seen:
            raise JobError(f"{path}, line {number}: '{key}' is there twice")
        seen.add(key)
        yield key, _unescaped(match[2])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty or comments, with continued ones joined, and their numbers."""
    held, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.lstrip()
        if not held and (not line or line[0] in "#!"):
            continue
        first = first if held else number
        held += line
        if (len(held) - len(held.rstrip("\\"))) % 2:
            held = held[:-1]
            continue
        yield first, held.rstrip()
        held = ""
    if held:
        yield first, held.rstrip()


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2], match[2])

    return re.sub(r"\\u([0-9a-fA-F]{4})|\\(.)", replace, text, flags=re.DOTALL)
