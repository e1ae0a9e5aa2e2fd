"""Rows, spellings, conversion, and the words of each refusal."""

from typing import Any

import pytest

from pyclient.config.definition import (
    ConfigDefinition,
    ConfigKey,
    RefusedKey,
    at_least,
    between,
    not_empty,
    one_of,
)
from pyclient.errors import KafkaConfigurationError

DEFINITION = ConfigDefinition(
    "Client",
    (
        ConfigKey("linger.ms", int, 5, at_least(0), "How long a batch waits."),
        ConfigKey("ratio", float, 0.5, between(0, 1), "A share."),
        ConfigKey("check.crcs", bool, True, None, "Verify."),
        ConfigKey("codec", str, "none", one_of("none", "gzip"), "Compress."),
        ConfigKey("names", list, ["a"], not_empty(), "Names.", aliases=("name.list",)),
        ConfigKey("group.id", str, None, None, "The group."),
    ),
    (
        RefusedKey("selector", "the loop cannot be replaced"),
        RefusedKey("sasl.password", "SASL is not there", (None, "")),
    ),
)


def test_nothing_given_means_all_defaults_and_nothing_explicit() -> None:
    config = DEFINITION.parse({})
    assert dict(config) == {
        "linger.ms": 5,
        "ratio": 0.5,
        "check.crcs": True,
        "codec": "none",
        "names": ["a"],
        "group.id": None,
    }
    assert not any(config.is_explicit(name) for name in config)


@pytest.mark.parametrize("spelling", ["linger.ms", "linger_ms"])
def test_java_and_kafka_python_spellings_mean_the_same_option(spelling: str) -> None:
    config = DEFINITION.parse({spelling: 0})
    assert config["linger.ms"] == config["linger_ms"] == 0
    assert "linger_ms" in config
    assert config.is_explicit("linger.ms")


def test_an_alias_sets_its_option() -> None:
    assert DEFINITION.parse({"name_list": "b, c"})["names"] == ["b", "c"]


def test_giving_the_default_counts_as_explicit() -> None:
    assert DEFINITION.parse({"linger_ms": 5}).is_explicit("linger.ms")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("linger_ms", "7", 7),
        ("linger_ms", 7.0, 7),
        ("ratio", "0.25", 0.25),
        ("ratio", 1, 1.0),
        ("check_crcs", "False", False),
        ("check_crcs", " true ", True),
        ("names", "a,b", ["a", "b"]),
        ("names", ("a", "b"), ["a", "b"]),
        ("group_id", "g", "g"),
        ("group_id", None, None),
    ],
)
def test_text_and_near_types_are_converted(option: str, value: object, expected: Any) -> None:
    converted = DEFINITION.parse({option: value})[option.replace("_", ".")]
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("linger_ms", -1, "an integer, at least 0"),
        ("linger_ms", 0.5, "an integer, at least 0"),
        ("linger_ms", True, "an integer, at least 0"),
        ("linger_ms", None, "an integer, at least 0"),
        ("linger_ms", "soon", "an integer, at least 0"),
        ("linger_ms", "1_000", "an integer, at least 0"),
        ("linger_ms", "\u0663", "an integer, at least 0"),
        ("linger_ms", float("inf"), "an integer, at least 0"),
        ("ratio", 2, "a number, from 0 to 1"),
        ("ratio", float("nan"), "a number, from 0 to 1"),
        ("check_crcs", 1, "true or false"),
        ("check_crcs", "yes", "true or false"),
        ("codec", "brotli", "a string, one of none, gzip"),
        ("codec", 3, "a string, one of none, gzip"),
        ("names", [], "a list, not empty"),
        ("names", 3, "a list, not empty"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_what_is(
    option: str, value: object, allowed: str
) -> None:
    with pytest.raises(KafkaConfigurationError) as raised:
        DEFINITION.parse({option: value})
    assert (
        str(raised.value) == f"Client option {option!r} cannot be {value!r}: it must be {allowed}"
    )
    assert raised.value.key == option.replace("_", ".")


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [("linger", "linger_ms"), ("linger.m", "linger.ms"), ("check_crc", "check_crcs")],
)
def test_a_misspelt_option_gets_the_nearest_name_in_the_same_spelling(
    misspelt: str, nearest: str
) -> None:
    with pytest.raises(KafkaConfigurationError) as raised:
        DEFINITION.parse({misspelt: 1})
    assert str(raised.value) == f"Client has no option {misspelt!r}; did you mean {nearest!r}?"


def test_an_option_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"no option 'zzz'; docs/configuration.md"):
        DEFINITION.parse({"zzz": 1})


def test_an_option_with_two_values_in_two_spellings_is_refused_with_both() -> None:
    with pytest.raises(KafkaConfigurationError, match=r"'linger.ms' and 'linger_ms'.*same option"):
        DEFINITION.parse({"linger.ms": 1, "linger_ms": 2})
    assert DEFINITION.parse({"linger.ms": 1, "linger_ms": "1"})["linger.ms"] == 1


def test_a_refused_option_says_why_and_keeps_its_value_secret() -> None:
    with pytest.raises(KafkaConfigurationError) as raised:
        DEFINITION.parse({"sasl_password": "hunter2"})
    assert str(raised.value) == (
        "Client option 'sasl_password' is not supported: SASL is not there"
    )
    assert "hunter2" not in repr(vars(raised.value))


def test_a_refused_option_may_have_a_value_that_changes_nothing() -> None:
    assert "selector" not in DEFINITION.parse({"selector": None, "sasl.password": ""})


def test_two_rows_of_one_name_fail_when_the_table_is_made() -> None:
    row = ConfigKey("linger.ms", int, 5, None, "")
    with pytest.raises(TypeError, match=r"two rows for linger.ms"):
        ConfigDefinition("Client", (row, row))
    with pytest.raises(TypeError, match=r"two rows for linger.ms"):
        ConfigDefinition("Client", (row,), (RefusedKey("linger.ms", "why"),))


def test_a_derived_value_does_not_become_explicit() -> None:
    config = DEFINITION.parse({"codec": "gzip"}).derive({"linger.ms": 0})
    assert config["linger.ms"] == 0
    assert not config.is_explicit("linger.ms")
    assert config.is_explicit("codec")
