"""A topic's options about its log: Kafka's defaults and rules."""

import pytest

from broker_stub.log.log_config import (
    DEFAULT_LOG_CONFIG,
    SERVER_SYNONYMS,
    TOPIC_KEYS,
    LogConfig,
)
from pyclient.config.definition import ConfigDefinition
from pyclient.errors import KafkaConfigurationError

DEFINITION = ConfigDefinition("topic", TOPIC_KEYS)


def test_defaults_are_kafkas():
    assert DEFAULT_LOG_CONFIG.segment_bytes == 1_073_741_824
    assert DEFAULT_LOG_CONFIG.max_message_bytes == 1_048_588
    assert DEFAULT_LOG_CONFIG.retention_ms == 604_800_000
    assert DEFAULT_LOG_CONFIG.retention_bytes == -1
    assert DEFAULT_LOG_CONFIG.cleanup_policy == {"delete"}


def test_every_row_has_a_field_and_a_name_for_the_broker():
    names = {key.name for key in TOPIC_KEYS}
    assert {name.replace(".", "_") for name in names} == set(LogConfig._fields)
    assert set(SERVER_SYNONYMS) == names


def test_text_of_a_properties_file_becomes_typed_values():
    parsed = DEFINITION.parse({"cleanup.policy": "compact, delete", "segment.bytes": "2000"})
    settings = LogConfig.from_values(parsed)
    assert settings.cleanup_policy == {"compact", "delete"}
    assert settings.segment_bytes == 2000
    assert settings.is_compacted
    assert LogConfig.from_values(DEFINITION.parse({"cleanup.policy": ""})).cleanup_policy == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "shred"),
        ("segment.bytes", "3"),
        ("retention.ms", "-2"),
        ("message.timestamp.type", "Now"),
        ("segment.ms", "0"),
    ],
)
def test_values_that_are_not_allowed_are_refused(name, value):
    with pytest.raises(KafkaConfigurationError, match=name):
        DEFINITION.parse({name: value})
