"""Makes `format("kafka")` mean `format("pykafka")`, for jobs written for the JVM connector.

Spark itself refuses a Python source of that name. So the four reader and writer classes of
PySpark are changed, for all sessions of this process; Spark Connect has four of its own.
"""

import functools
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

FORMAT: Final = "pykafka"
_HOMES: Final = (
    ("pyspark.sql.readwriter", "pyspark.sql.streaming.readwriter"),
    ("pyspark.sql.connect.readwriter", "pyspark.sql.connect.streaming.readwriter"),
)
_NEEDED_BY_CONNECT: Final = ("grpc", "grpc_status", "pandas", "pyarrow")
_DONE: Final = "_pykafka_is_kafka"


def use_as_kafka() -> None:
    """Make `format("kafka")` of readers and writers mean this connector, in this process.

    A batch write needs no mode then, as with the JVM connector, and `outputMode("update")`
    works: it is written by `foreachBatch`. Calling it again changes nothing.
    """
    for batch, stream in _modules():
        if getattr(batch.DataFrameReader, _DONE, False):
            continue
        _alias(batch.DataFrameReader)
        _alias(stream.DataStreamReader)
        _alias(batch.DataFrameWriter, then=lambda writer: writer.mode("append"))
        _alias(stream.DataStreamWriter)
        _add_update_mode(stream.DataStreamWriter)
        setattr(batch.DataFrameReader, _DONE, True)


def _modules() -> Iterator[tuple[Any, Any]]:
    classic, connect = _HOMES
    yield import_module(classic[0]), import_module(classic[1])
    # Without its dependencies, an import of Spark Connect may end a program that has no file.
    if all(find_spec(name) is not None for name in _NEEDED_BY_CONNECT):
        with suppress(ImportError):  # too old
            yield import_module(connect[0]), import_module(connect[1])


def _alias(cls: Any, then: Any = None) -> None:
    original = cls.format

    @functools.wraps(original)
    def of_format(self: Any, source: str) -> Any:
        if source.lower() not in ("kafka", FORMAT):
            return original(self, source)
        made = original(self, FORMAT)
        return made if then is None or source.lower() == FORMAT else then(made)

    cls.format = of_format


def _add_update_mode(cls: Any) -> None:
    """Python sinks have no output mode update: write each micro-batch as a batch instead."""
    for name in ("format", "outputMode", "option", "options"):
        setattr(cls, name, _noting(cls, name))
    start = cls.start

    @functools.wraps(start)
    def of_start(
        self: Any,
        path: str | None = None,
        format: str | None = None,  # noqa: A002
        outputMode: str | None = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> Any:
        self.options(**options)
        if format is not None:
            self.format(format)
        if outputMode is not None:
            self.outputMode(outputMode)
        noted = self.__dict__.get("_pykafka", {})
        if noted.get("format", "").lower() in ("kafka", FORMAT) and noted.get("mode") == "update":
            self.foreachBatch(_write_batch(dict(noted.get("options", {}))))
        return start(self, path, partitionBy=partitionBy, queryName=queryName)

    cls.start = of_start


def _noting(cls: Any, name: str) -> Any:
    original = getattr(cls, name)

    @functools.wraps(original)
    def noting(self: Any, *arguments: Any, **named: Any) -> Any:
        noted = self.__dict__.setdefault("_pykafka", {})
        if name == "format":
            noted["format"] = arguments[0]
        elif name == "outputMode":
            noted["mode"] = arguments[0].lower()
        elif name == "option":
            noted.setdefault("options", {})[arguments[0]] = arguments[1]
        else:
            noted.setdefault("options", {}).update(named)
        return original(self, *arguments, **named)

    return noting


def _write_batch(options: dict[str, Any]) -> Any:
    options = {key: value for key, value in options.items() if key.lower() != "checkpointlocation"}

    def write(frame: Any, _batch_id: int) -> None:
        frame.write.format("pykafka").mode("append").options(**options).save()

    return write
