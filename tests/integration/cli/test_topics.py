"""`pyclient topics` and `pyclient configs` against the broker."""

from tests.support.command_line import Shell


def test_a_topic_is_created_listed_altered_described_and_deleted(shell: Shell) -> None:
    created = shell("topics", "create", "orders", "-p", "3", "-c", "retention.ms=3600000")
    assert created.code == 0
    assert created.out.split() == [
        "TOPIC",
        "RESULT",
        "PARTITIONS",
        "REPLICAS",
        "orders",
        "created",
        "3",
        "1",
    ]
    assert shell("topics", "list", "--json").json == [
        {"topic": "orders", "partitions": 3, "replicas": 1, "internal": False}
    ]
    assert shell("topics", "alter", "orders", "-p", "4", "-c", "retention.ms=10").code == 0
    (described,) = shell("topics", "describe", "orders", "--json").json
    assert described["configs"] == {"retention.ms": "10"}
    assert [one["partition"] for one in described["partitions"]] == [0, 1, 2, 3]
    assert "retention.ms  10" in shell("topics", "describe", "orders").out
    assert shell("topics", "delete", "orders").code == 0
    assert shell("topics", "list").err == "There are no topics.\n"


def test_what_exists_already_is_an_error_unless_allowed(shell: Shell) -> None:
    assert shell("topics", "create", "orders").code == 0
    again = shell("topics", "create", "orders")
    assert again.code == 1
    assert again.err.count("\n") == 1
    assert "already exists" in again.err
    assert "Hint: --if-not-exists" in again.err
    assert shell("topics", "create", "orders", "--if-not-exists").code == 0


def test_what_does_not_exist_has_an_exit_code_of_its_own(shell: Shell) -> None:
    for arguments in (("describe", "nope"), ("delete", "nope"), ("offsets", "nope")):
        done = shell("topics", *arguments)
        assert done.code == 4, arguments
        assert "UNKNOWN_TOPIC_OR_PARTITION" in done.err
    assert shell("topics", "delete", "nope", "--if-exists").code == 0


def test_offsets_by_time(shell: Shell) -> None:
    shell("topics", "create", "orders", "-p", "1")
    shell("produce", "orders", stdin=b"a\nb\n")
    (latest,) = shell("topics", "offsets", "orders", "--json").json
    (since,) = shell("topics", "offsets", "orders", "--time", "-2h", "--json").json
    (future,) = shell("topics", "offsets", "orders", "-t", "2200-01-01", "--json").json
    assert (latest["offset"], since["offset"], future["offset"]) == (2, 0, None)


def test_configs_are_set_and_reset(shell: Shell) -> None:
    shell("topics", "create", "orders")
    assert shell("configs", "alter", "topic", "orders", "--set", "retention.ms=7").code == 0
    (entry,) = shell("configs", "describe", "topic", "orders", "--json").json
    assert (entry["name"], entry["value"], entry["source"]) == (
        "retention.ms",
        "7",
        "dynamic topic",
    )
    assert shell("configs", "alter", "topic", "orders", "--delete", "retention.ms").code == 0
    assert shell("configs", "describe", "topic", "orders", "--json").json == []
    assert len(shell("configs", "describe", "broker", "1", "--all", "--json").json) > 50
    wrong = shell("configs", "alter", "topic", "orders", "--set", "retntion.ms=7")
    assert wrong.code == 2
    assert "retntion.ms" in wrong.err
