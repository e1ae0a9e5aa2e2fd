"""Options by the names of Java's and librdkafka's files, sorted by the client they are for.

A file may hold options of every client, as Kafka's own tools allow; each client gets its own. An
option that no client knows is an error.
"""

from collections.abc import Mapping
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError

CLIENTS: Final = ("producer", "consumer", "admin")
_JAVA_CLASSES: Final = ("key.serializer", "value.serializer", "key.deserializer",
                        "value.deserializer")  # fmt: skip


def options_for(client: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The options that one client knows, by our names.

    Raises:
        KafkaConfigurationError: no client knows an option, or its value cannot be translated.
    """
    from importlib import import_module

    definitions = {name: import_module(f"pyclient.config.{name}").DEFINITION for name in CLIENTS}
    options: dict[str, Any] = {}
    for name, value in given.items():
        if name in _JAVA_CLASSES and value.startswith("org.apache.kafka."):
            continue  # the command line reads and writes bytes
        plain = name.removeprefix("topic.")  # kcat's mark of options that belong to a topic
        if definitions[client].knows(plain):
            options[plain] = value
        elif not any(definition.knows(plain) for definition in definitions.values()):
            options.update(_from_librdkafka(client, plain, value, definitions))
    return options


def _from_librdkafka(client: str, name: str, value: str, definitions: Any) -> Mapping[str, Any]:
    from pyclient.compat.confluent import configuration

    dialects = {each: getattr(configuration, each.upper()) for each in CLIENTS}
    dialect = dialects[client]
    try:
        if name in dialect.converted:
            converted: Mapping[str, Any] = dialect.converted[name](value)
            return converted
    except ValueError as error:
        raise KafkaConfigurationError(f"{name}={value}: {error}", key=name) from error
    if name in dialect.renamed:
        return {dialect.renamed[name]: value}
    for each in dialects.values():
        if name in each.converted or name in each.renamed or name in each.own:
            return {}  # another client's, or librdkafka's own queues
        if name in each.ignored:
            return {}
    near = next((near for each in definitions.values() if (near := each.nearest(name))), None)
    suggestion = f"; did you mean {near!r}?" if near else ""
    raise KafkaConfigurationError(f"no client has an option {name!r}{suggestion}", key=name)
