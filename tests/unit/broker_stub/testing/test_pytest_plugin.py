"""The fixtures, as a user's tests use them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker_stub import Broker

ROOT = Path(__file__).parents[4]

SOMEBODYS_TESTS = """
import pytest

TOPICS = []

@pytest.fixture(scope="session")
def kafka_broker_config():
    return {"num.partitions": 3}

@pytest.mark.parametrize("name", ["a/b", "a/b"])
def test_every_test_gets_a_topic_of_its_own(kafka_broker_session, kafka_topic, name):
    TOPICS.append(kafka_topic)
    assert len(set(TOPICS)) == len(TOPICS)
    topic = kafka_broker_session.call(lambda node: node.image.topic(kafka_topic))
    assert len(topic.partitions) == 3

def test_the_sessions_broker_is_the_same_for_all(kafka_broker_session):
    seen = kafka_broker_session.call(lambda node: {one.name for one in node.image.topics()})
    assert set(TOPICS) <= seen

def test_the_other_one_is_empty(kafka_broker, kafka_broker_session):
    assert kafka_broker.port != kafka_broker_session.port
    assert kafka_broker.call(lambda node: list(node.image.topics())) == []
"""


def test_a_broker_is_running_and_empty(kafka_broker):
    assert isinstance(kafka_broker, Broker)
    assert kafka_broker.running
    assert kafka_broker.bootstrap_servers == f"127.0.0.1:{kafka_broker.port}"
    kafka_broker.create_topic("orders", partitions=3)
    names = kafka_broker.call(lambda node: [topic.name for topic in node.image.topics()])
    assert names == ["orders"]


def test_a_topic_is_named_after_its_test(kafka_topic):
    assert kafka_topic.startswith("test_a_topic_is_named_after_its_test-")


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        # Other plugins take longer to import than the tests to run.
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_somebodys_own_tests_pass_with_the_plugin_named_twice(tmp_path):
    (tmp_path / "test_orders.py").write_text(SOMEBODYS_TESTS)
    (tmp_path / "conftest.py").write_text(
        'pytest_plugins = ["broker_stub.testing.pytest_plugin"]\n'
    )
    done = run_pytest(tmp_path, "-p", "broker_stub.testing.pytest_plugin")
    assert "4 passed" in done.stdout, done.stdout + done.stderr


PLUGIN = ("-p", "broker_stub.testing.pytest_plugin")

OVERRIDE = """
import pytest

@pytest.fixture(scope="session")
def kafka_broker_config():
    return {"num.partitions": 5}
"""

USES = """
def partitions(broker):
    return broker.call(lambda node: node.config["num.partitions"])

def test_own(kafka_broker):
    assert partitions(kafka_broker) == EXPECTED

def test_session(kafka_broker_session):
    assert partitions(kafka_broker_session) == EXPECTED

def test_topic(kafka_topic):
    assert kafka_topic

def test_none():
    pass
"""


def uses(expected: int) -> str:
    return f"{USES}\nEXPECTED = {expected}\n"


def test_options_of_the_top_conftest_reach_every_broker(tmp_path):
    (tmp_path / "conftest.py").write_text(OVERRIDE)
    (tmp_path / "test_a.py").write_text(uses(5))
    (tmp_path / "test_b.py").write_text(uses(5))
    done = run_pytest(tmp_path, *PLUGIN)
    assert "8 passed" in done.stdout, done.stdout + done.stderr


def test_no_options_at_all_are_none(tmp_path):
    (tmp_path / "conftest.py").write_text(OVERRIDE.replace('{"num.partitions": 5}', "None"))
    (tmp_path / "test_a.py").write_text(uses(1))
    done = run_pytest(tmp_path, *PLUGIN)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("first", "second", "running", "wanted"),
    [
        (uses(1), OVERRIDE + uses(5), "{}", "{'num.partitions': 5}"),
        (OVERRIDE + uses(5), uses(1), "{'num.partitions': 5}", "{}"),
    ],
)
def test_options_that_would_not_reach_the_sessions_broker_fail_its_tests(
    tmp_path, first, second, running, wanted
):
    (tmp_path / "test_a.py").write_text(first)
    (tmp_path / "test_b.py").write_text(second)
    done = run_pytest(tmp_path, *PLUGIN)
    assert "2 failed, 6 passed" in done.stdout, done.stdout + done.stderr
    for test in ("test_session", "test_topic"):
        assert f"FAILED test_b.py::{test}" in done.stdout
    assert f"kafka_broker_session runs with the options {running}" in done.stdout
    assert f"kafka_broker_config, {wanted}" in done.stdout
