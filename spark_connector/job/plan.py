"""A job's views and queries as DataFrames, checked before anything starts.

Spark parses and analyses every view and query, each query's output mode is checked against its
plan, and the topics must exist. Errors name the key of the file that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from pyclient import KafkaConsumer
from pyclient.errors import KafkaError
from spark_connector.data_source import KafkaDataSource
from spark_connector.job.config import Job, Query, Topic
from spark_connector.job.files import JobError, first_line, read_text
from spark_connector.job.schemas import parse_schema
from spark_connector.sink_columns import check_sink_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RECORD_COLUMNS: Final = ("key", "topic", "partition", "headers")
"""Columns of a result that become parts of a record beside its value."""
_CHECK_SECONDS: Final = 15


@dataclass(frozen=True)
class PlannedQuery:
    """A query that can be started."""

    query: Query
    frame: DataFrame


def plan(job: Job, spark: SparkSession) -> list[PlannedQuery]:
    """Make the views and queries of a job; nothing is started.

    Raises:
        JobError: a schema, a view or a query is wrong, or a topic does not exist.
    """
    _check_topics(job)
    for topic in job.topics:
        _topic_view(job, topic, spark).createOrReplaceTempView(topic.view)
    for name, sql in job.views.items():
        _analysed(spark, sql, f"{job.path}: view.{name}").createOrReplaceTempView(name)
    return [_planned(job, query, spark) for query in job.queries]


def summary(job: Job, queries: list[PlannedQuery], spark: SparkSession) -> Iterator[str]:
    """What the job would run, for `--dry-run`."""
    yield f"brokers  {job.brokers}"
    for topic in job.topics:
        yield f"topic    {topic.name} as {topic.view}: {_columns(spark.table(topic.view))}"
    for name in job.views:
        yield f"view     {name}: {_columns(spark.table(name))}"
    for one in queries:
        query = one.query
        target = query.topic or query.path or ""
        sink = f"{query.sink} {target}".strip()
        yield f"query    {query.name} to {sink} ({query.mode}): {_columns(one.frame)}"


def _columns(frame: DataFrame) -> str:
    return ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in frame.schema.fields)


def source_options(job: Job, topic: Topic) -> dict[str, str]:
    """The options of a topic's stream."""
    client = {f"kafka.{key}": value for key, value in job.kafka.items()}
    return {
        **client,
        "kafka.bootstrap.servers": job.brokers,
        "subscribe": topic.name,
        **topic.options,
    }


def sink_options(job: Job, query: Query) -> dict[str, str]:
    """The options of a query that writes to a topic."""
    client = {f"kafka.{key}": value for key, value in job.kafka.items()}
    return {**client, "kafka.bootstrap.servers": job.brokers, "topic": str(query.topic)}


def _check_topics(job: Job) -> None:
    """Look for the topics once, within bounds: a stream would fail later, and say less."""
    options: dict[str, Any] = {key: value for key, value in job.kafka.items() if key != "group.id"}
    options.setdefault("bootstrap.timeout.ms", _CHECK_SECONDS * 1000)
    try:
        with KafkaConsumer(bootstrap_servers=job.brokers, **options) as consumer:
            known = consumer.topics()
    except KafkaError as error:
        raise JobError(f"{job.path}: brokers: {' '.join(str(error).split())}") from None
    for topic in job.topics:
        if topic.name not in known:
            raise JobError(f"{job.path}: topic '{topic.name}' does not exist on {job.brokers}")
        # A reader of the driver's own: Spark's would wrap what is wrong into a stack trace.
        reader = KafkaDataSource(source_options(job, topic)).streamReader(StructType())
        try:
            reader.initialOffset()
        except (ValueError, KafkaError) as error:
            raise JobError(f"{job.path}: topic.{topic.name}: {error}") from None
        finally:
            reader.stop()


def _topic_view(job: Job, topic: Topic, spark: SparkSession) -> DataFrame:
    """A topic as a stream: the columns of its JSON values, and Kafka's own as `kafka`."""
    where = f"{job.path}: topic.{topic.name}"
    stream = spark.readStream.format(KafkaDataSource.name())
    frame = stream.options(**source_options(job, topic)).load()
    text = topic.schema
    if topic.schema_file is not None:
        text = read_text(topic.schema_file, lambda: spark)
    if text is not None:
        schema = parse_schema(text, f"{where}.schema")
        kafka = f.struct(*(one for one in frame.columns if one != "value")).alias("kafka")
        value = f.from_json(f.col("value").cast("string"), schema).alias("value")
        frame = frame.select(value, kafka).select("value.*", "kafka")
    if topic.watermark is not None:
        column, delay = topic.watermark
        if column not in frame.columns:
            raise JobError(f"{where}.watermark: there is no column '{column}'")
        try:
            frame = frame.withWatermark(column, delay)
        except (PySparkException, ValueError) as error:
            raise JobError(f"{where}.watermark: {first_line(error)}") from None
    return frame


def _analysed(spark: SparkSession, sql: str, where: str) -> DataFrame:
    try:
        return spark.sql(sql)
    except PySparkException as error:
        raise JobError(f"{where}: {first_line(error)}") from None


def _planned(job: Job, query: Query, spark: SparkSession) -> PlannedQuery:
    where = f"{job.path}: query.{query.name}"
    frame = _analysed(spark, query.sql, f"{where}.sql")
    if not frame.isStreaming:
        raise JobError(f"{where}.sql reads no topic, so it is not a stream")
    if query.sink == "topic":
        frame = _as_records(frame)
        try:
            check_sink_schema(frame.schema, query.topic, include_timestamp=False)
        except ValueError as error:
            raise JobError(f"{where}: {error}") from None
    for column in query.partition_by:
        if column not in frame.columns:
            raise JobError(f"{where}.partitionBy: there is no column '{column}'")
    _check_mode(frame, query, spark, where)
    return PlannedQuery(query, frame)


def _as_records(frame: DataFrame) -> DataFrame:
    """Rows for the sink: as they are if there is a column `value`, else as JSON."""
    if "value" in frame.columns:
        return frame
    kept = [one for one in frame.columns if one in _RECORD_COLUMNS]
    rest = [one for one in frame.columns if one not in _RECORD_COLUMNS]
    return frame.select(*kept, f.to_json(f.struct(*rest)).alias("value"))


def _check_mode(frame: DataFrame, query: Query, spark: SparkSession, where: str) -> None:
    """What Spark would refuse when the stream starts, it refuses here."""
    jvm: Any = spark._jvm
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, query.mode.capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    plan = frame._jdf.queryExecution().analyzed()
    try:
        checker.checkForStreaming(plan, mode)
    except PySparkException as error:
        raise JobError(f"{where}.mode: {first_line(error)}") from None
