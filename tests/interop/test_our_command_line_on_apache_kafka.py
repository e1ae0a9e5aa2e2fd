"""`pyclient` on Apache Kafka: groups, users, quotas, transactions and the cluster.

Access control lists need an authorizer: test_our_security_admin_on_apache_kafka.py has them.
"""

from collections.abc import Callable

import pytest

from tests.interop.apache_kafka import ApacheKafka
from tests.support.command_line import Done, Shell


@pytest.fixture
def shell(
    apache: ApacheKafka, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    return Shell(apache, capfd, monkeypatch)


def until(look: Callable[[], Done], is_there: Callable[[Done], bool]) -> Done:
    """Brokers learn of changes a moment after the controller has made them."""
    for _ in range(200):
        found = look()
        if is_there(found):
            return found
    raise AssertionError(f"it stays {found}")


def test_records_and_a_group(shell: Shell) -> None:
    assert shell("topics", "create", "cli-orders", "-p", "1").code == 0
    assert shell("produce", "cli-orders", "-K", ":", stdin=b"a:1\nb:2\n").code == 0
    shown = shell("consume", "cli-orders", "-B", "-n", "2", "-g", "cli-billing", "-f", "%k%s ")
    assert shown.out == "a1 b2 "
    (group,) = shell("groups", "describe", "cli-billing", "--json").json
    assert (group["state"], group["partitions"][0]["committed"], group["lag"]) == ("Empty", 2, 0)
    reset = ("groups", "reset-offsets", "cli-billing", "--to-earliest", "--json")
    assert shell(*reset).json == [{"topic": "cli-orders", "partition": 0, "from": 2, "to": 0}]
    assert shell("groups", "describe", "cli-billing", "--json").json[0]["lag"] == 2
    assert shell("groups", "delete", "cli-billing").code == 0
    assert shell("groups", "describe", "cli-billing").code == 4


def test_users_and_quotas(shell: Shell) -> None:
    assert shell("users", "set", "cli-alice", stdin=b"secret\n").code == 0
    listed = until(
        lambda: shell("users", "list", "cli-alice", "--json"), lambda done: not done.code
    )
    assert listed.json == [{"user": "cli-alice", "mechanism": "scram-sha-512", "iterations": 4096}]
    assert shell("users", "delete", "cli-alice").code == 0
    assert until(lambda: shell("users", "list", "cli-alice"), lambda done: done.code == 4).err
    whom = ("--user", "cli-alice", "--client-defaults")
    assert shell("quotas", "alter", *whom, "--set", "producer_byte_rate=1048576").code == 0
    quotas = until(lambda: shell("quotas", "list", *whom, "--json"), lambda done: bool(done.json))
    assert quotas.json == [
        {
            "entity": {"user": "cli-alice", "client-id": None},
            "quotas": {"producer_byte_rate": 1048576.0},
        }
    ]
    row = shell("quotas", "list", *whom).out.splitlines()[1]
    assert row.split() == ["cli-alice", "<default>", "producer_byte_rate", "1,048,576"]
    assert shell("quotas", "alter", *whom, "--delete", "producer_byte_rate").code == 0


def test_the_cluster(shell: Shell) -> None:
    (broker,) = shell("cluster", "describe", "--json").json["brokers"]
    assert broker["release"] == "Kafka 4.3"
    assert shell("cluster", "log-dirs").code == 0
    assert len(shell("cluster", "api-versions", "--json").json) > 50
    assert "metadata.version" in shell("cluster", "features").out
    assert shell("cluster", "quorum", "--json").json[0]["role"] == "leader"
    assert shell("transactions", "list", "--json").code == 0
    assert shell("transactions", "describe", "cli-nope").code == 4
