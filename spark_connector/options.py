"""What the options of the source and the sink have in common: keys, types, `kafka.*`.

Keys are case-insensitive; Spark passes them in lower case. A wrong value raises an error that
names the option, on the driver. Jobs often share one dictionary between a source and a sink, so
an option of the other side is accepted with a warning; so is an unknown one.
"""

import difflib
import logging
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from pyclient.errors import KafkaConfigurationError

log = logging.getLogger(__name__)

CLIENT_PREFIX: Final = "kafka."
_BOOTSTRAP: Final = "kafka.bootstrap.servers"
# Spark itself passes these along on some paths.
_SPARKS_OWN: Final = frozenset({"path", "checkpointlocation", "queryname", "outputmode", "mode"})
_UNITS_MS: Final = {
    "us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
}  # fmt: skip


class Options:
    """The options of one source or sink, by their names in any case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {key.lower(): value for key, value in given.items()}

    def __contains__(self, option: str) -> bool:
        return option.lower() in self._given

    def text(self, option: str) -> str | None:
        """The value without surrounding blanks; None if the option is not given."""
        value = self._given.get(option.lower())
        return None if value is None else value.strip()

    def boolean(self, option: str, *, default: bool) -> bool:
        """Whether the option is `true`."""
        text = self.text(option)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise ValueError(f"Option '{option}' is true or false, not '{text}'")
        return text.lower() == "true"

    def integer(self, option: str) -> int | None:
        """A whole number."""
        text = self.text(option)
        if text is None:
            return None
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError(f"Option '{option}' is a whole number, not '{text}'")
        return int(text)

    def positive(self, option: str) -> int | None:
        """A whole number above 0."""
        number = self.integer(option)
        if number is not None and number <= 0:
            raise ValueError(f"{option} must be positive, not {number}")
        return number

    def duration_ms(self, option: str, default: str) -> int:
        """A time such as `15m`, `10s` or `500ms`; a number alone is milliseconds."""
        text = self.text(option) or default
        match = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text.lower())
        if match is None or (match[2] or "ms") not in _UNITS_MS:
            raise ValueError(f"Option '{option}' is a time such as 15m or 10s, not '{text}'")
        return int(int(match[1]) * _UNITS_MS[match[2] or "ms"])

    def warn_of_others(self, own: Collection[str], other: Collection[str]) -> None:
        """Warn of options that have no effect here: those of the other side, and unknown ones."""
        names = {name.lower(): name for name in own}
        others = {name.lower(): name for name in other}
        for key in self._given:
            if key in names or key in _SPARKS_OWN or key.startswith(CLIENT_PREFIX):
                continue
            if key in others:
                log.warning("option '%s' has no effect here", others[key])
                continue
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"; did you mean '{names[near[0]]}'?" if near else ""
            log.warning("option '%s' is unknown and has no effect%s", key, hint)

    def client(
        self, kind: str, known: Collection[str], other: Collection[str], ignored: Collection[str]
    ) -> dict[str, str]:
        """The `kafka.*` options, without the prefix, for a Kafka client of this kind.

        Args:
            kind: `consumer` or `producer`, for error texts.
            known: the options of that client, as in its `DEFAULT_CONFIG`.
            other: those of the client of the other side.
            ignored: options that the connector decides by itself.

        Raises:
            ValueError: there is no `kafka.bootstrap.servers`.
        """
        if not self.text(_BOOTSTRAP):
            raise ValueError(
                f"Option '{_BOOTSTRAP}' must be specified for configuring Kafka {kind}"
            )
        client = {}
        for key, value in self._given.items():
            if not key.startswith(CLIENT_PREFIX):
                continue
            name = key.removeprefix(CLIENT_PREFIX)
            field = name.replace(".", "_")
            if name in ignored:
                log.warning("option '%s' has no effect: the connector decides it", key)
            elif field in other and field not in known:
                log.warning("option '%s' has no effect: it is not for a %s", key, kind)
            else:
                client[name] = value
        return client


def check_client(parse: Any, client: Mapping[str, Any]) -> None:
    """Check `kafka.*` options on the driver, with a client's own rules, before any task.

    Raises:
        ValueError: one is unknown or has a wrong value.
    """
    try:
        parse(dict(client))
    except KafkaConfigurationError as error:
        raise ValueError(f"an option that starts with 'kafka.' is wrong: {error}") from None
