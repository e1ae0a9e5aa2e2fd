"""kcat, as Debian packages it, against `python -m broker_stub`."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.interop.confluent_client import Confluent
from tests.interop.foreign_records import Record
from tests.support.server_process import ServerProcess

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMEOUT_SECONDS = 30
PARTITIONS = 2
START_MS = 1_700_000_000_000

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


def test_a_time_is_looked_up_and_read_on_from(server):
    # kcat gives its own records the time of day, so another client writes these.
    sent = [Record(0, None, b"value-%d" % index, (), START_MS + index) for index in range(0, 90, 3)]
    for start in range(0, len(sent), 10):  # in batches of their own
        Confluent().produce(server.bootstrap_servers, "timed", sent[start : start + 10])
    since = START_MS + 40
    found = kcat(server, "-Q", "-t", f"timed:0:{since}")
    assert found.split() == ["timed", "[0]", "offset", "14"]
    read = ("-C", "-t", "timed", "-p", "0", "-o", f"s@{since}", "-e", "-q")
    printed = kcat(server, *read, "-f", "%o %T %s\n")
    assert printed.splitlines() == [
        f"{offset} {one.timestamp_ms} {one.value.decode()}"
        for offset, one in enumerate(sent)
        if one.timestamp_ms >= since
    ]


def test_the_end_is_looked_up(server):
    kcat(server, "-P", "-t", "ended", "-p", "0", text="a\nb\n")
    assert kcat(server, "-Q", "-t", "ended:0:-1").split() == ["ended", "[0]", "offset", "2"]


def test_null_keys_and_values_come_back_as_such(server):
    produce = ("-P", "-t", "nulls", "-p", "0", "-K", ":", "-Z")
    kcat(server, *produce, text=":no key\nno value:\nkey:value\n")
    consume = ("-C", "-t", "nulls", "-p", "0", "-o", "beginning", "-e", "-q")
    printed = kcat(server, *consume, "-f", "%K %S\n")
    assert printed.splitlines() == ["-1 6", "8 -1", "3 5"]


def test_a_group_goes_on_from_its_commits(server):
    group = ("-X", "auto.offset.reset=earliest", "-e", "-q", "-G", "kcat-group", "grouped")
    kcat(server, "-P", "-t", "grouped", text="a\nb\nc\n")
    assert sorted(kcat(server, *group).split()) == ["a", "b", "c"]
    kcat(server, "-P", "-t", "grouped", text="d\n")
    assert kcat(server, *group).split() == ["d"]
