"""`pyclient produce` and `pyclient consume` against the broker."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker_stub import Broker
from tests.support.command_line import Shell


@pytest.fixture
def topic(shell: Shell) -> str:
    shell("topics", "create", "orders", "-p", "1")
    return "orders"


def test_lines_come_out_as_they_went_in(shell: Shell, topic: str) -> None:
    sent = shell("produce", topic, stdin=b"one\ntwo\nthree")
    assert (sent.code, sent.err) == (0, "3 records sent to orders.\n")
    assert shell("consume", topic, "--from-beginning", "--exit").out == "one\ntwo\nthree\n"


def test_keys_headers_and_nulls(shell: Shell, topic: str) -> None:
    arguments = ("-K", ":", "--null-marker", "NULL", "-H", "app=shop")
    assert shell("produce", topic, *arguments, stdin=b"a:1\nb:NULL\n").code == 0
    shown = shell("consume", topic, "-B", "-e", "-f", r"%t/%p@%o %k=%s (%K,%S) %h %%\n")
    assert shown.out == "orders/0@0 a=1 (1,1) app=shop %\norders/0@1 b= (1,-1) app=shop %\n"


def test_a_record_is_found_by_its_key(shell: Shell, topic: str) -> None:
    shell("produce", topic, "-K", "\\t", stdin=b"a\t1\nb\t2\na\t3\n")
    assert shell("consume", topic, "-B", "-e", "--key", "a").out == "1\n3\n"


def test_json_goes_in_and_out(shell: Shell, topic: str) -> None:
    record = {"key": "k", "value": {"n": 1}, "headers": {"h": "x"}, "timestamp": 1234}
    assert shell("produce", topic, "--json-lines", stdin=json.dumps(record).encode()).code == 0
    assert shell("consume", topic, "-B", "-e", "--json").json == {
        "topic": "orders",
        "partition": 0,
        "offset": 0,
        "timestamp": 1234,
        "key": "k",
        "value": '{"n": 1}',
        "headers": [["h", "x"]],
    }


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("-o", "2"), "2\n3\n"),
        (("-o", "-1"), "3\n"),
        (("-B", "-n", "1"), "0\n"),
        (("--since", "3000"), "2\n3\n"),
        (("-B", "--until", "3000"), "0\n1\n"),
    ],
)
def test_a_part_of_a_topic_is_read(
    shell: Shell, topic: str, arguments: tuple[str, ...], printed: str
) -> None:
    lines = [json.dumps({"value": str(n), "timestamp": 1000 * (n + 1)}) for n in range(4)]
    shell("produce", topic, "--json-lines", stdin="\n".join(lines).encode())
    assert shell("consume", topic, *arguments, "--exit").out == printed


def test_a_group_goes_on_where_it_stopped(shell: Shell, topic: str) -> None:
    shell("produce", topic, stdin=b"1\n2\n")
    arguments = ("consume", topic, "--group", "g", "--from-beginning", "--exit")
    assert shell(*arguments).out == "1\n2\n"
    shell("produce", topic, stdin=b"3\n")
    assert shell(*arguments).out == "3\n"


def test_commits_of_groups_are_decoded(shell: Shell, topic: str) -> None:
    shell("produce", topic, stdin=b"1\n2\n")
    shell("consume", topic, "--group", "g", "--from-beginning", "--exit")
    offsets = ("consume", "__consumer_offsets", "-B", "-e", "--decode", "offsets")
    decoded = [json.loads(line) for line in shell(*offsets).out.splitlines()]
    commit = {"type": "1", "data": {"group": "g", "topic": topic, "partition": 0}}
    assert [each["value"]["data"]["offset"] for each in decoded if each["key"] == commit][-1] == 2
    assert "2" in {each["key"]["type"] for each in decoded}  # the group itself
    first = json.loads(shell(*offsets, "--json").out.splitlines()[0])
    assert list(first) == ["topic", "partition", "offset", "timestamp", "key", "value"]


def test_a_record_that_cannot_be_decoded_says_why(shell: Shell, topic: str) -> None:
    shell("produce", topic, stdin=b"1\n")
    shown = shell("consume", topic, "-B", "-e", "--decode", "offsets").json
    assert shown["error"] == "a record of an internal topic without a key"


def test_mistakes_are_one_line(shell: Shell, topic: str) -> None:
    for arguments, text, code in (
        (("produce", topic, "-K", ":"), "record 1 has no key separator ':': 'abc'", 2),
        (("produce", topic, "--json-lines"), "record 1 is not a JSON record", 2),
        (("consume", topic, "-f", "%y"), "the format has no %y", 2),
        (("consume", topic, "-p", "7"), "topic 'orders' has no partition 7", 2),
        (("consume", "nope"), "topic 'nope' does not exist", 4),
        (("consume", topic, "-X", "grup.id=3"), "did you mean 'group.id'?", 2),
    ):
        done = shell(*arguments, stdin=b"abc\n")
        assert done.code == code, arguments
        assert text in done.err
        assert done.err.count("\n") == 1


def test_a_reader_that_goes_away_ends_the_command(kafka_broker: Broker, tmp_path: Path) -> None:
    kafka_broker.create_topic("orders", partitions=1)
    environment = {**os.environ, "PYCLIENT_BOOTSTRAP_SERVERS": kafka_broker.bootstrap_servers}
    pyclient = f"{sys.executable} -m pyclient"
    (tmp_path / "lines").write_text("".join(f"{n}\n" for n in range(50_000)))
    script = (
        f"{pyclient} produce orders < {tmp_path}/lines && "
        f"{pyclient} consume orders --from-beginning | head -2; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n1\n141\n"
    assert done.stderr == "50,000 records sent to orders.\n"


def test_ctrl_c_ends_a_reader_that_follows(shell: Shell, topic: str) -> None:
    shell("produce", topic, stdin=b"one\n")
    command = [sys.executable, "-m", "pyclient", "consume", topic, "--from-beginning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"one\n"
        reader.send_signal(signal.SIGINT)
        out, err = reader.communicate(timeout=60)
    assert (reader.returncode, out, err) == (130, b"", b"")
