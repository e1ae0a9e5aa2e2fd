"""kcat, as Debian packages it, against `python -m broker_stub`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.support.server_process import ServerProcess

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_SECONDS = 30
PARTITIONS = 2

pytestmark = pytest.mark.skipif(
    KCAT is None and not os.environ.get("CI"),  # CI installs it, and must not pass without
    reason="kcat is not on the PATH; install it (Debian: apt-get install kcat)",
)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with ServerProcess("--config", f"num.partitions={PARTITIONS}") as running:
        yield running


def kcat(server: ServerProcess, *arguments: str, text: str = "") -> str:
    """Run kcat to its end; what it printed."""
    done = subprocess.run(
        [str(KCAT), "-b", server.bootstrap_servers, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", CODECS)
def test_keys_headers_and_values_come_back_with_every_codec(server, codec):
    topic = f"codec-{codec}"
    lines = [f"key-{index}:value-{index}" for index in range(100)]
    produce = ("-P", "-t", topic, "-p", "0", "-K", ":", "-z", codec, "-H", "trace=7")
    kcat(server, *produce, "-X", "enable.idempotence=true", text="\n".join(lines) + "\n")
    consume = ("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q")
    printed = kcat(server, *consume, "-f", "%o %h %k:%s\n")
    assert printed.splitlines() == [f"{i} trace=7 {line}" for i, line in enumerate(lines)]


def test_the_cluster_is_listed(server):
    kcat(server, "-P", "-t", "listed", text="value\n")
    cluster = json.loads(kcat(server, "-L", "-J"))
    assert [broker["name"] for broker in cluster["brokers"]] == [server.bootstrap_servers]
    (topic,) = [one for one in cluster["topics"] if one["topic"] == "listed"]
    assert [one["partition"] for one in topic["partitions"]] == list(range(PARTITIONS))


def test_offsets_are_found_by_time(server):
    kcat(server, "-P", "-t", "timed", "-p", "0", text="a\nb\n")
    assert kcat(server, "-Q", "-t", "timed:0:1000").split() == ["timed", "[0]", "offset", "0"]
    assert kcat(server, "-Q", "-t", "timed:0:-1").split() == ["timed", "[0]", "offset", "2"]


def test_a_group_goes_on_from_its_commits(server):
    group = ("-X", "auto.offset.reset=earliest", "-e", "-q", "-G", "kcat-group", "grouped")
    kcat(server, "-P", "-t", "grouped", text="a\nb\nc\n")
    assert sorted(kcat(server, *group).split()) == ["a", "b", "c"]
    kcat(server, "-P", "-t", "grouped", text="d\n")
    assert kcat(server, *group).split() == ["d"]
