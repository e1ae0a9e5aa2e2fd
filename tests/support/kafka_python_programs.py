"""Runs the programs of tests/integration/programs under kafka-python and under this package."""

import json
import os
import subprocess
import sys
from typing import Any

from pyclient import KafkaAdminClient
from pyclient.admin import NewTopic
from tests.support.source_tree import ROOT

FOLDER = ROOT / "tests" / "integration" / "programs"
PROGRAMS = sorted(file.name for file in FOLDER.glob("*.py"))
_TOPICS = {"web-events": 4, "orders": 4, "orders.dead": 1}


def outcomes(program: str, servers: str) -> tuple[Any, Any]:
    """What the unmodified program prints with kafka-python and with this package."""
    return tuple(  # type: ignore[return-value]
        _outcome(program, servers, f"{client}.{program}.", through)
        for client, through in (
            ("theirs", []),
            ("ours", ["-m", "pyclient.compat.kafka_python"]),
        )
    )


def _outcome(program: str, servers: str, prefix: str, through: list[str]) -> Any:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics(
            [
                NewTopic(prefix + name, count, replication_factor=1)
                for name, count in _TOPICS.items()
            ]
        )
    done = subprocess.run(
        [sys.executable, *through, str(FOLDER / program), "--servers", servers, "--prefix", prefix],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.replace(prefix, ""))
