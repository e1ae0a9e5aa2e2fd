"""kafka-python's own tests, unmodified, on this package and its broker.

Their integration tests are the black-box part: they use the clients, and here and there internals
of kafka-python. `NOT_HERE` lists every test that does not pass, and why; docs/drop-in.md tells the
numbers. Their other tests are unit tests of internals (`kafka.net`, `kafka.protocol`, metrics).
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from tests.interop.drop_in.source_packages import source_package
from tests.support.source_tree import ROOT

FILES = (
    "integration/test_admin_integration.py",
    "integration/test_consumer_integration.py",
    "integration/test_producer_integration.py",
    "test_future.py",
    "test_serializer.py",
)
NOT_HERE = {
    "test_alter_partition_reassignments": "reads `_manager`, an internal attribute",
    "test_consumer": "calls `bootstrap`, which is not there: the constructor connects",
    "test_consumer_topics": "calls `bootstrap`, which is not there: the constructor connects",
    "test_create_describe_delete_acls": "the broker has no authorizer yet",
    "test_describe_configs_broker_resource_returns_configs": "reads `_client`, internal",
    "test_describe_configs_mixed_resources_returns_configs": "reads `_client`, internal",
    "test_describe_log_dirs": "reads `_manager`, an internal attribute",
    "test_group": "reads `_coordinator`, an internal attribute",
    "test_heartbeat_thread": "reads `_coordinator`, an internal attribute",
    "test_kafka_consumer_unsupported_encoding": "patches `kafka.codec.has_gzip`, internal",
    "test_kafka_version_infer": "`api_version` is not inferred: each API's version is negotiated",
}
TOO_LONG = {
    "test_kafka_consumer_offsets_for_times_errors": "ends after default_api_timeout_ms, a minute",
}
_OURS = "from tests.interop.drop_in.kafka_python_fixtures import *\n"


def outcomes(folder: Path) -> tuple[set[str], set[str], str]:
    """The names of the tests that passed and that did not, and what pytest printed."""
    tests = folder / "test"
    shutil.copytree(source_package("kafka-python") / "test", tests)
    (tests / "__init__.py").touch()  # else `test` is the standard library's
    for replaced in ("conftest.py", "fixtures.py"):
        (tests / "integration" / replaced).write_text(_OURS)
    left_out = [f"--deselect=test/integration/test_consumer_integration.py::{n}" for n in TOO_LONG]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pyclient.compat.kafka_python", "-m", "pytest"),
            *("-q", "-p", "no:cacheprovider", "--tb=short", "--timeout=60", "--junitxml=found.xml"),
            *left_out,
            *(f"test/{file}" for file in FILES),
        ],
        cwd=folder,
        env={**os.environ, "KAFKA_VERSION": "4.1.0", "PYTHONPATH": f"{ROOT}:{folder}"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert (folder / "found.xml").exists(), printed
    passed, failed = set(), set()
    for case in ElementTree.parse(folder / "found.xml").iter("testcase"):
        tags = {child.tag for child in case}
        if "skipped" not in tags:
            (failed if tags & {"failure", "error"} else passed).add(case.attrib["name"])
    return passed, failed, printed


def test_all_pass_but_those_of_internals(tmp_path: Path) -> None:
    passed, failed, printed = outcomes(tmp_path)
    assert failed == set(NOT_HERE), printed
    assert len(passed) == 61, "docs/drop-in.md tells the number"
