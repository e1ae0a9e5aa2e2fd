"""The calls of the admin client are kafka-python's, to the names and defaults of arguments."""

import inspect
from typing import Any

import kafka.admin
import pytest

import pyclient.admin

OURS, THEIRS = pyclient.admin.KafkaAdminClient, kafka.admin.KafkaAdminClient
CALLS = [name for name in dir(OURS) if not name.startswith("_")]
# Accepted there, and without an effect.
WITHOUT_EFFECT = {"include_authorized_operations"}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_takes_the_same_arguments(call: str) -> None:
    assert arguments(OURS, call) == {
        name: default
        for name, default in arguments(THEIRS, call).items()
        if name not in WITHOUT_EFFECT
    }


def arguments(client: type, call: str) -> dict[str, Any]:
    """The names of a call's arguments in order, with their defaults; enums by their numbers."""
    parameters = inspect.signature(getattr(client, call)).parameters
    return {
        name: int(one.default) if isinstance(one.default, int) else one.default
        for name, one in parameters.items()
    }


@pytest.mark.parametrize(
    "name",
    [
        "AlterConfigOp",
        "ConfigFilterType",
        "ConfigResourceType",
        "ConfigSourceType",
        "ConfigType",
        "OffsetSpec",
    ],
)
def test_an_enum_has_the_same_members(name: str) -> None:
    ours, theirs = getattr(pyclient.admin, name), getattr(kafka.admin, name)
    assert {one.name: one.value for one in ours} == {one.name: one.value for one in theirs}
