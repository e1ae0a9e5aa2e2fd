"""The admin client is kafka-python's: calls, arguments, types, enums."""

import enum
import inspect
from typing import Any

import kafka.admin
import pytest

import pyclient.admin

OURS, THEIRS = pyclient.admin.KafkaAdminClient, kafka.admin.KafkaAdminClient
CALLS = [name for name in dir(THEIRS) if callable(getattr(THEIRS, name)) and name[0] != "_"]
TYPES = [name for name in kafka.admin.__all__ if inspect.isclass(getattr(kafka.admin, name))]
# kafka-python 2's calls that 3 has renamed.
OLDER = {
    "delete_consumer_groups": ["group_ids", "group_coordinator_id"],
    "describe_consumer_groups": [
        "group_ids",
        "group_coordinator_id",
        "include_authorized_operations",
    ],
    "list_consumer_group_offsets": ["group_id", "group_coordinator_id", "partitions"],
    "list_consumer_groups": ["broker_ids"],
    "perform_leader_election": ["election_type", "topic_partitions", "timeout_ms"],
}
# As docs/admin.md lists them.
ONLY_HERE = {"alter_client_quotas", "describe_client_quotas", "end_transaction", "lag"}
MORE_ARGUMENTS = {
    "describe_topics": ["include_authorized_operations"],
    "list_group_offsets": ["require_stable"],
    "reset_group_offsets": ["dry_run"],
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_takes_the_same_arguments(call: str) -> None:
    ours, theirs = arguments(getattr(OURS, call)), arguments(getattr(THEIRS, call))
    assert list(ours.items())[: len(theirs)] == list(theirs.items())
    assert list(ours)[len(theirs) :] == MORE_ARGUMENTS.get(call, [])


@pytest.mark.parametrize("call", OLDER)
def test_a_call_of_kafka_python_2_takes_the_same_arguments(call: str) -> None:
    assert list(arguments(getattr(OURS, call)))[1:] == OLDER[call]


def test_the_calls_that_kafka_python_lacks_are_listed() -> None:
    ours = {name for name in dir(OURS) if name[0] != "_" and callable(getattr(OURS, name))}
    assert ours == {*CALLS, *OLDER, *ONLY_HERE}


def test_no_two_nouns_define_the_same_name() -> None:
    """The nouns are base classes of one client: the first would silently win."""
    seen: dict[str, type] = {}
    for noun in OURS.__mro__[1:-1]:
        for name in vars(noun):
            if not name.startswith("__"):
                assert name not in seen, f"{name} is in {seen[name]} and {noun}"
                seen[name] = noun


def arguments(call: Any) -> dict[str, Any]:
    """The names of a call's arguments in order, with their defaults; enums by their numbers."""
    parameters = inspect.signature(call).parameters
    return {
        name: int(one.default) if isinstance(one.default, int) else one.default
        for name, one in parameters.items()
    }


@pytest.mark.parametrize("name", TYPES)
def test_a_type_has_the_same_members_and_arguments(name: str) -> None:
    ours, theirs = getattr(pyclient.admin, name), getattr(kafka.admin, name)
    if issubclass(theirs, enum.Enum):
        assert {one.name: one.value for one in ours} == {one.name: one.value for one in theirs}
    elif issubclass(theirs, int):
        assert (ours(5), repr(ours(5))) == (theirs(5), repr(theirs(5)))
    elif name != "KafkaAdminClient":
        assert arguments(ours) == arguments(theirs)
