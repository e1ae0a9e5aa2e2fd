"""The broker's options in force, and the options of topics that follow from them.

A topic's own options override the broker's, and dynamic options override those that the broker
was started with. Only the defaults of topics are dynamic here. Serving thread only (while the
node opens: the thread that opens it).
"""

from collections.abc import Mapping
from typing import Any, Final

from broker_stub import diagnostics
from broker_stub.config.keys import (
    BROKER_DEFINITION,
    COARSER_UNITS,
    MIN_INSYNC_REPLICAS,
    TOPIC_DEFINITION,
    TOPIC_SYNONYMS,
)
from broker_stub.config.objections import objection
from broker_stub.config.tls_keys import TLS_NAMES
from broker_stub.log.log_config import LogConfig
from pyclient.config.definition import Config, ConfigDefinition, dotted
from pyclient.error_codes import (
    BrokerResponseError,
    InvalidConfigurationError,
    InvalidRequestError,
)
from pyclient.errors import KafkaConfigurationError

_PER_LISTENER: Final = "listener.name."
_COMPACTION_LAGS: Final = ("min.compaction.lag.ms", "max.compaction.lag.ms")

DYNAMIC_NAMES: Final = frozenset(TOPIC_SYNONYMS.values())
"""The broker's options that can be changed while it runs."""


class BrokerConfig:
    """The broker's options, and the options of topics that follow from them.

    Attributes:
        dynamic_broker: what was set for this broker while it runs.
        dynamic_default: what was set for all brokers; `dynamic_broker` overrides it.
    """

    def __init__(self, options: Mapping[str, object] | None = None) -> None:
        """Parse options by Kafka's names; warn about those without an effect here.

        Raises:
            KafkaConfigurationError: an option is unknown, or its value is not allowed.
        """
        for_all, self._for_listener = _by_listener(options or {})
        self._config: Config = BROKER_DEFINITION.parse(_effective(for_all))
        self._ignored: set[tuple[str, str]] = set()
        self.dynamic_broker: Mapping[str, str] = {}
        self.dynamic_default: Mapping[str, str] = self._cluster_minimum()
        self._topic_defaults = self._static_topic_defaults()

    def __getitem__(self, name: str) -> Any:
        return self._config[name]

    def is_explicit(self, name: str) -> bool:
        """Whether the broker was started with a value for it, even if that is the default."""
        return self._config.is_explicit(name)

    @property
    def listeners_with_options(self) -> list[str]:
        """The listeners that have `listener.name.NAME.` options."""
        return list(self._for_listener)

    def tls_options(self, listener: str) -> dict[str, Any]:
        """The `ssl.` options of a listener: its own override those for all."""
        own = self._for_listener.get(listener.lower())
        return {
            name: own[name] if own is not None and own.is_explicit(name) else self[name]
            for name in TLS_NAMES
        }

    def set_dynamic(self, broker: Mapping[str, str], default: Mapping[str, str]) -> None:
        """Apply what was set while the broker runs, for it or for all brokers."""
        self.dynamic_broker = dict(broker)
        self.dynamic_default = {**self._cluster_minimum(), **default}
        self._topic_defaults = self._static_topic_defaults()
        texts = {**self.dynamic_default, **broker}
        for topic_name, server_name in TOPIC_SYNONYMS.items():
            if server_name in texts:
                given = self._converted(TOPIC_DEFINITION, {topic_name: texts[server_name]})
                self._topic_defaults.update(given)

    def static_topic_default(self, name: str) -> Any:
        """The value that the broker was started with, or the default."""
        return self._server_value(TOPIC_SYNONYMS[name])

    def topic_default_is_explicit(self, name: str) -> bool:
        """Whether the broker was started with a value for it, in any unit."""
        server_name = TOPIC_SYNONYMS[name]
        units = [coarser for coarser, _ in COARSER_UNITS.get(server_name, ())]
        return any(map(self.is_explicit, (server_name, *units)))

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, Any]:
        """All options of a topic with these overrides, converted to their types."""
        return {**self._topic_defaults, **self._converted(TOPIC_DEFINITION, overrides)}

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """The options of a topic's log."""
        return LogConfig.from_values(self.topic_values(overrides))

    def check_topic(
        self, configs: Mapping[str, str | None], beside: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Check options to set for a topic, together with those that are set (`beside`).

        Raises:
            InvalidConfigurationError: an option is unknown, null, has a wrong value, or
                contradicts another.
        """
        checked = _checked(TOPIC_DEFINITION, configs, InvalidConfigurationError)
        if not checked.keys().isdisjoint(_COMPACTION_LAGS):
            values = self.topic_values({**(beside or {}), **checked})
            least, most = (values[name] for name in _COMPACTION_LAGS)
            if least > most:
                raise InvalidConfigurationError(
                    f"conflict topic config setting {_COMPACTION_LAGS[0]} ({least}) > "
                    f"{_COMPACTION_LAGS[1]} ({most})"
                )
        return checked

    def check_dynamic(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Check options to set for the running broker.

        Raises:
            InvalidRequestError: an option can't be changed while the broker runs, or has a wrong
                value.
            InvalidConfigurationError: an option is unknown.
        """
        checked = _checked(BROKER_DEFINITION, configs, InvalidRequestError)
        fixed = sorted(checked.keys() - DYNAMIC_NAMES)
        if fixed:
            raise InvalidRequestError(
                f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
            )
        return checked

    def _converted(self, definition: ConfigDefinition, texts: Mapping[str, str]) -> dict[str, Any]:
        """Convert the values that are valid here, and warn once about others.

        A data folder of Apache Kafka may have others; they stay in its metadata.
        """
        values: dict[str, Any] = {}
        for name, text in texts.items():
            row = definition.keys.get(name)
            try:
                if row is not None:
                    values[name] = row.convert(text)
                    continue
                reason = "this broker has no such option"
            except ValueError as error:
                reason = str(error)
            if (name, text) not in self._ignored:
                self._ignored.add((name, text))
                diagnostics.warn("%s=%s has no effect: %s", name, text, reason)
        return values

    def _cluster_minimum(self) -> dict[str, str]:
        """Since 4.1, Apache Kafka sets this option for the whole cluster when it is made."""
        return {MIN_INSYNC_REPLICAS.name: str(self._config[MIN_INSYNC_REPLICAS.name])}

    def _static_topic_defaults(self) -> dict[str, Any]:
        return {name: self.static_topic_default(name) for name in TOPIC_SYNONYMS}

    def _server_value(self, name: str) -> Any:
        if name not in COARSER_UNITS or self._config[name] is not None:
            return self._config[name]
        for coarser, unit_ms in COARSER_UNITS[name]:
            value = self._config[coarser]
            if value is not None:
                return value if value < 0 else value * unit_ms
        raise AssertionError(f"{name} has no default in any unit")


def _by_listener(
    options: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, Config]]:
    """The options for all listeners, and those of `listener.name.NAME.` by the name."""
    for_all: dict[str, object] = {}
    own: dict[str, dict[str, object]] = {}
    for option, value in options.items():
        if not isinstance(option, str):
            raise KafkaConfigurationError(f"option names must be strings, not {option!r}")
        listener, _, name = option.removeprefix(_PER_LISTENER).partition(".")
        if option.startswith(_PER_LISTENER) and name in TLS_NAMES:
            own.setdefault(listener, {})[name] = value
        else:
            for_all[option] = value
    return for_all, {one: BROKER_DEFINITION.parse(given) for one, given in own.items()}


def _effective(options: Mapping[str, object]) -> dict[str, object]:
    """The options with an effect; warns about others that Apache Kafka has."""
    unfamiliar = [name for name in options if not BROKER_DEFINITION.knows(name)]
    if not unfamiliar:
        return dict(options)
    from broker_stub.config.kafka_keys import is_known_to_kafka, nearest  # seldom needed

    idle = [name for name in unfamiliar if is_known_to_kafka(dotted(name))]
    for name in sorted(set(unfamiliar) - set(idle)):
        near = nearest(dotted(name))
        if near is not None and not BROKER_DEFINITION.knows(near):
            raise KafkaConfigurationError(
                f"broker has no option {name!r}; did you mean {near!r}, which has no effect here?",
                key=name,
            )
    if idle:
        diagnostics.warn("these options have no effect on this broker: %s", ", ".join(sorted(idle)))
    return {name: value for name, value in options.items() if name not in idle}


def _checked(
    definition: ConfigDefinition,
    configs: Mapping[str, str | None],
    wrong_value: type[BrokerResponseError],
) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, text in configs.items():
        row = definition.keys.get(name)
        if row is None:
            near = definition.nearest(name)
            raise InvalidConfigurationError(
                f"Unknown {definition.owner} config name: {name}"
                + (f"; did you mean {near}?" if near else "")
            )
        if text is None:
            raise InvalidConfigurationError(
                f"Null value not supported for {definition.owner} configs: {name}"
            )
        reason = objection(row, text)
        if reason is not None:
            raise wrong_value(reason)
        checked[name] = text
    return checked
