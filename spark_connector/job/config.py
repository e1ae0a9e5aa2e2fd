"""What a job consists of: topics, views and queries, checked key by key.

The keys are the same in both kinds of file; docs/spark.md lists them. A key that is unknown,
missing or contradicts another is an error that names it.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spark_connector.job.files import JobError

TOP_KEYS: Final = ("brokers", "name", "checkpoint", "trigger")
_GROUPS: Final = ("kafka", "spark", "topic", "view", "query")
TOPIC_KEYS: Final = (
    "schema", "schema.file", "view", "watermark", "startingOffsets", "maxOffsetsPerTrigger",
    "failOnDataLoss", "includeHeaders",
)  # fmt: skip
_SOURCE_OPTIONS: Final = (
    "startingOffsets", "maxOffsetsPerTrigger", "failOnDataLoss", "includeHeaders",
)  # fmt: skip
QUERY_KEYS: Final = (
    "sql", "sink", "mode", "topic", "path", "format", "partitionBy", "checkpoint", "trigger",
)  # fmt: skip
_SINK_KEYS: Final = {
    "console": set(),
    "topic": {"topic"},
    "files": {"path", "format", "partitionBy"},
}
_MODES: Final = ("append", "update", "complete")
_FORMATS: Final = ("parquet", "json", "csv", "orc", "text")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WATERMARK: Final = re.compile(r"(\S+)\s+(.+)")


@dataclass(frozen=True)
class Topic:
    """A topic to read, as a view."""

    name: str
    schema: str | None  # of its JSON values; None for Kafka's columns as they are
    schema_file: str | None
    view: str
    watermark: tuple[str, str] | None  # a column, and how late events may come
    options: Mapping[str, str]


@dataclass(frozen=True)
class Query:
    """A query that runs as a stream."""

    name: str
    sql: str
    sink: str
    mode: str
    topic: str | None
    path: str | None
    format: str
    partition_by: tuple[str, ...]
    checkpoint: str | None
    trigger: str | None


@dataclass(frozen=True)
class Job:
    """All of a job's file."""

    path: str
    name: str
    brokers: str
    kafka: Mapping[str, str]
    spark: Mapping[str, str]
    topics: tuple[Topic, ...]
    views: Mapping[str, str] = field(default_factory=dict)
    queries: tuple[Query, ...] = ()


def parse_job(settings: Mapping[str, Any], path: str) -> Job:
    """Check a job's settings.

    Raises:
        JobError: a key is unknown, missing or malformed.
    """
    return _Parser(settings, path).job()


class _Parser:
    def __init__(self, settings: Mapping[str, Any], path: str) -> None:
        self._path = path
        self._flat = {key: self._text(key, value) for key, value in _flattened(settings)}

    def job(self) -> Job:
        flat = self._flat
        topics, queries = self._named("topic", TOPIC_KEYS), self._named("query", QUERY_KEYS)
        views = self._group("view")
        for key in flat:
            if key not in TOP_KEYS and key.split(".", 1)[0] not in _GROUPS:
                raise self._unknown(key, [*TOP_KEYS, *(f"{group}." for group in _GROUPS)])
        for name in views:
            self._check_name(f"view.{name}", name)
        if not topics:
            raise self._error("there is no topic: add one as topic.NAME.schema = ...")
        if not queries:
            raise self._error("there is no query: add one as query.NAME.sql = ...")
        job = Job(
            path=self._path,
            name=flat.get("name", "kafka job"),
            brokers=self._required("brokers", "a list such as host1:9092,host2:9092"),
            kafka=self._group("kafka"),
            spark=self._group("spark"),
            topics=tuple(self._topic(name, keys) for name, keys in topics.items()),
            views=views,
            queries=tuple(self._query(name, keys) for name, keys in queries.items()),
        )
        names = [*(topic.view for topic in job.topics), *views]
        for name in names:
            if names.count(name) > 1:
                raise self._error(
                    f"two views are called '{name}': name a topic's own by topic.NAME.view"
                )
        return job

    def _topic(self, name: str, keys: Mapping[str, str]) -> Topic:
        where = f"topic.{name}"
        if "schema" in keys and "schema.file" in keys:
            raise self._error(f"{where}: give 'schema' or 'schema.file', not both")
        view = keys.get("view", re.sub(r"[^A-Za-z0-9_]", "_", name))
        self._check_name(f"{where}.view", view)
        watermark = None
        if "watermark" in keys:
            match = _WATERMARK.fullmatch(keys["watermark"].strip())
            if match is None:
                raise self._error(
                    f"{where}.watermark is a column and a time, such as 'at 10 minutes', not "
                    f"'{keys['watermark']}'"
                )
            watermark = (match[1], match[2])
        options = {key: keys[key] for key in _SOURCE_OPTIONS if key in keys}
        return Topic(name, keys.get("schema"), keys.get("schema.file"), view, watermark, options)

    def _query(self, name: str, keys: Mapping[str, str]) -> Query:
        where = f"query.{name}"
        self._check_name(where, name)
        if not keys.get("sql", "").strip():
            raise self._error(f"{where}.sql is missing: the query")
        sink = self._one_of(f"{where}.sink", keys.get("sink", "console"), _SINK_KEYS)
        others = {key for keys_of in _SINK_KEYS.values() for key in keys_of} - _SINK_KEYS[sink]
        for key in keys:
            if key in others:
                raise self._error(f"{where}.{key} has no meaning for the sink '{sink}'")
        for key in ("topic", "path"):
            if key in _SINK_KEYS[sink] and not keys.get(key, "").strip():
                raise self._error(f"{where}.{key} is missing: where the sink '{sink}' writes")
        mode = self._one_of(f"{where}.mode", keys.get("mode", "append"), _MODES)
        if sink == "files" and mode != "append":
            raise self._error(f"{where}.mode is '{mode}', and files can only be appended to")
        checkpoint = keys.get("checkpoint")
        if checkpoint is None and "checkpoint" in self._flat:
            checkpoint = f"{self._flat['checkpoint'].rstrip('/')}/{name}"
        if checkpoint is None and sink != "console":
            raise self._error(
                f"{where} needs a folder to keep its progress in: set 'checkpoint' for the job, "
                f"or {where}.checkpoint"
            )
        partition_by = (one.strip() for one in keys.get("partitionBy", "").split(","))
        return Query(
            name=name,
            sql=keys["sql"],
            sink=sink,
            mode=mode,
            topic=keys.get("topic"),
            path=keys.get("path"),
            format=self._one_of(f"{where}.format", keys.get("format", "parquet"), _FORMATS),
            partition_by=tuple(one for one in partition_by if one),
            checkpoint=checkpoint,
            trigger=keys.get("trigger", self._flat.get("trigger")),
        )

    def _group(self, prefix: str) -> dict[str, str]:
        start = f"{prefix}."
        return {
            key.removeprefix(start): value
            for key, value in self._flat.items()
            if key.startswith(start)
        }

    def _named(self, prefix: str, known: Iterable[str]) -> dict[str, dict[str, str]]:
        """The settings of each name; a topic's name may have dots itself."""
        found: dict[str, dict[str, str]] = {}
        for rest, value in self._group(prefix).items():
            ending = next(
                (one for one in sorted(known, key=len, reverse=True) if rest.endswith(f".{one}")),
                None,
            )
            if ending is None:
                name, _, key = rest.rpartition(".")
                candidates = [f"{prefix}.{name or 'NAME'}.{one}" for one in known]
                raise self._unknown(
                    f"{prefix}.{name}.{key}" if name else f"{prefix}.{rest}", candidates
                )
            found.setdefault(rest.removesuffix(f".{ending}"), {})[ending] = value
        return found

    def _required(self, key: str, what: str) -> str:
        value = self._flat.get(key, "").strip()
        if not value:
            raise self._error(f"'{key}' is missing: {what}")
        return value

    def _one_of(self, key: str, value: str, allowed: Iterable[str]) -> str:
        if value not in allowed:
            raise self._error(f"{key} is one of {', '.join(allowed)}, not '{value}'")
        return value

    def _check_name(self, key: str, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise self._error(f"{key}: '{name}' is not a name for SQL: use letters, digits and _")

    def _text(self, key: str, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            return str(value)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return ",".join(value)
        raise self._error(f"'{key}' is a text or a number, not {type(value).__name__}")

    def _unknown(self, key: str, known: Iterable[str]) -> JobError:
        near = difflib.get_close_matches(key, list(known), n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        return self._error(f"unknown key '{key}'{hint}")

    def _error(self, text: str) -> JobError:
        return JobError(f"{self._path}: {text}")


def _flattened(settings: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
