"""`pyclient cluster` against the broker."""

from broker_stub import Broker
from tests.support.command_line import Shell


def test_the_cluster_is_described(shell: Shell, kafka_broker: Broker) -> None:
    described = shell("cluster", "describe", "--json").json
    (broker,) = described["brokers"]
    host, _, port = kafka_broker.bootstrap_servers.partition(":")
    assert (broker["host"], broker["port"], broker["controller"]) == (host, int(port), True)
    assert broker["release"].startswith("Kafka 4.")
    assert described["id"] in shell("cluster", "describe").out


def test_disks_show_what_topics_take(shell: Shell) -> None:
    shell("topics", "create", "orders", "-p", "2")
    shell("produce", "orders", "-p", "0", stdin=b"x" * 5000)
    ((folder,),) = [of["log_dirs"] for of in shell("cluster", "log-dirs", "--json").json]
    (topic,) = [one for one in folder["topics"] if one["name"] == "orders"]
    assert sum(one["partition_size"] for one in topic["partitions"]) > 5000
    shown = shell("cluster", "log-dirs", "--topic", "orders").out.splitlines()
    assert shown[1].split()[-4:] == ["orders", "2", "5.0", "KiB"]


def test_api_versions_are_listed_by_name(shell: Shell) -> None:
    rows = {row["api"]: row for row in shell("cluster", "api-versions", "--json").json}
    assert rows["Metadata"]["key"] == 3
    assert rows["Metadata"]["lowest"] <= rows["Metadata"]["used"] <= rows["Metadata"]["highest"]
    by_broker = shell("cluster", "api-versions", "--broker", "1", "--json").json
    assert {row["api"] for row in by_broker} == set(rows)
    assert shell("cluster", "api-versions", "--broker", "77").code == 4


def test_features_and_the_quorum_are_shown(shell: Shell) -> None:
    features = {one["feature"]: one for one in shell("cluster", "features", "--json").json}
    lowest, highest = features["metadata.version"]["supported"]
    assert lowest <= features["metadata.version"]["level"] <= highest
    (node,) = shell("cluster", "quorum", "--json").json
    assert (node["role"], node["lag"]) == ("leader", 0)
    assert "High watermark" in shell("cluster", "quorum").out
