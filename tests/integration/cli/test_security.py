"""`pyclient acls`, `users` and `quotas` where the brokers have none, and their own mistakes."""

import pytest

from tests.support.command_line import Shell


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--topic", "orders"),
        ("create", "--topic", "orders", "--allow", "alice", "-o", "read"),
        ("delete", "--group", "billing", "--principal", "alice"),
    ],
)
def test_without_an_authorizer_there_are_no_acls(shell: Shell, arguments: tuple[str, ...]) -> None:
    done = shell("acls", *arguments)
    assert done.code == 1
    assert "SECURITY_DISABLED" in done.err
    assert "Hint: the cluster has no authorizer" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("users", "list"),
        ("users", "set", "alice"),
        ("users", "delete", "alice"),
        ("quotas", "list"),
        ("quotas", "alter", "--user", "alice", "-s", "producer_byte_rate=1"),
    ],
)
def test_what_brokers_lack_is_said(shell: Shell, arguments: tuple[str, ...]) -> None:
    done = shell(*arguments, stdin=b"secret\n")
    assert done.code == 1
    assert "Hint: the brokers do not have this feature" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("acls", "create", "--allow", "a", "-o", "read"), "Give a resource, as in --topic NAME"),
        (("acls", "create", "--topic", "t", "-o", "read"), "and --allow or --deny"),
        (("acls", "list", "--topic", "t", "--group", "g"), "Give one resource at a time"),
        (("acls", "create", "--topic", "t", "-o", "fly"), "'fly' is not one of 'all'"),
        (("users", "set", "alice"), "The password is empty"),
        (("users", "set", "alice", "--iterations", "7"), "7 is not in the range"),
        (("quotas", "alter", "--set", "producer_byte_rate=1"), "Give whom, as in --user NAME"),
        (("quotas", "alter", "--user", "a", "-s", "producer_byte_rate=x"), "is not a number"),
        (("quotas", "list", "--user", "a", "--user-defaults"), "but not both"),
    ],
)
def test_mistakes_are_one_line(shell: Shell, arguments: tuple[str, ...], text: str) -> None:
    done = shell(*arguments)
    assert done.code == 2
    assert text in done.err
    assert done.err.count("\n") == 1
