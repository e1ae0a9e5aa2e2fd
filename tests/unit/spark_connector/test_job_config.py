"""A job's file: both notations, and errors that name the key."""

from pathlib import Path
from typing import Any

import pytest

from spark_connector.job.config import parse_job
from spark_connector.job.files import JobError, parse_properties, read_job

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"

JOB: dict[str, Any] = {
    "brokers": "b:9092",
    "checkpoint": "/c/",
    "topic.in.schema": "id long",
    "query.q.sql": "select 1",
    "query.q.sink": "topic",
    "query.q.topic": "out",
}


def no_session() -> Any:
    raise AssertionError("a local file needs no session")


def test_properties_are_read_as_java_reads_them() -> None:
    text = "# a comment\n! another\n\na=1\nb : two \\\n    words\n"
    text += "c\\=d = \\u00e9\\t|\n  e    f=g\nlast\\"
    assert dict(parse_properties(text, "x")) == {
        "a": "1",
        "b": "two words",
        "c=d": "é\t|",
        "e": "f=g",
        "last": "",
    }


def test_the_examples_say_what_they_mean() -> None:
    orders = parse_job(read_job(str(EXAMPLES / "orders.properties"), no_session), "o")
    assert [topic.view for topic in orders.topics] == ["orders"]
    assert [(one.name, one.sink, one.mode) for one in orders.queries] == [
        ("big", "topic", "append"),
        ("turnover", "console", "complete"),
    ]
    assert orders.queries[0].checkpoint == "/tmp/orders-checkpoint/big"
    assert orders.spark == {"sql.shuffle.partitions": "2"}
    clicks = parse_job(read_job(str(EXAMPLES / "clicks.toml"), no_session), "c")
    assert [topic.watermark for topic in clicks.topics] == [
        ("shown", "10 minutes"),
        ("clicked", "10 minutes"),
    ]
    assert [one.trigger for one in clicks.queries] == ["1 second", "1 second"]


def test_a_topics_name_may_have_dots() -> None:
    settings = {**JOB, "topic.a.b-c.schema": "id long", "topic.a.b-c.startingOffsets": "earliest"}
    topic = parse_job(settings, "j").topics[1]
    assert (topic.name, topic.view) == ("a.b-c", "a_b_c")
    assert topic.options == {"startingOffsets": "earliest"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"brokers": None}, "'brokers' is missing"),
        ({"broker": "x"}, "unknown key 'broker'; did you mean 'brokers'"),
        ({"topic.in.shema": "x"}, r"key 'topic\.in\.shema'; did you mean 'topic\.in\.schema'"),
        ({"query.q.mod": "x"}, r"unknown key 'query\.q\.mod'; did you mean 'query\.q\.mode'"),
        ({"query.q.sink": "kafka"}, r"query\.q\.sink is one of console, topic, files, not 'kafka'"),
        ({"query.q.mode": "upsert"}, r"query\.q\.mode is one of append, update, complete"),
        ({"query.q.topic": None}, r"query\.q\.topic is missing"),
        ({"query.q.path": "/x"}, r"query\.q\.path has no meaning for the sink 'topic'"),
        ({"query.q.sql": " "}, r"query\.q\.sql is missing"),
        ({"query.q.sql": None, "query.q.sink": None, "query.q.topic": None}, "there is no query"),
        ({"topic.in.schema": None}, "there is no topic"),
        ({"checkpoint": None}, r"query\.q needs a folder to keep its progress in"),
        ({"view.in": "select 1"}, "two views are called 'in'"),
        ({"view.a-b": "select 1"}, r"view\.a-b: 'a-b' is not a name for SQL"),
        ({"topic.in.watermark": "at"}, r"topic\.in\.watermark is a column and a time"),
        ({"topic.in.schema.file": "x"}, "give 'schema' or 'schema.file', not both"),
        ({"query.q.sink": "files", "query.q.topic": None, "query.q.path": "/x",
          "query.q.mode": "complete"}, "files can only be appended to"),
        ({"brokers": {"x": [1]}}, r"'brokers\.x' is a text or a number, not list"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_named(change: dict[str, Any], words: str) -> None:
    settings = {key: value for key, value in {**JOB, **change}.items() if value is not None}
    with pytest.raises(JobError, match=r"^job\.properties: .*" + words):
        parse_job(settings, "job.properties")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("job.properties", "a=1\na=2", "line 2: 'a' is there twice"),
        ("job.properties", "= x", "line 1: expected 'key = value'"),
        ("job.toml", "a = ", "not valid TOML"),
        ("job.yaml", "", r"ends in \.properties or \.toml"),
        ("job.toml", None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, text: str | None, words: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(JobError, match=words):
        read_job(str(tmp_path / name), no_session)
