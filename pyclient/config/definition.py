"""One row per option: its name, type, default, rule and meaning.

`ConfigDefinition.parse` turns what a program gave into a `Config`; the same rows write the
reference page. An option may be spelt as in Java (`linger.ms`) or as in kafka-python
(`linger_ms`), and values may be text, as in a properties file. A leaf: client and broker share it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pyclient.errors import KafkaConfigurationError


class ConfigType(NamedTuple):
    """Converts a value; `convert` raises ValueError for a value of another type."""

    name: str
    convert: Callable[[Any], Any]


class Rule(NamedTuple):
    """Which values of the type are allowed; with its bounds or choices if it has any."""

    text: str
    accepts: Callable[[Any], bool]
    least: float | None = None
    most: float | None = None
    choices: tuple[object, ...] = ()


class Secret:
    """A password or a private key, which no message or repr shows."""

    __slots__ = ("_value",)

    def __init__(self, value: "str | bytes") -> None:
        self._value = value

    def reveal(self) -> "str | bytes":
        """Return the value that `repr` and messages hide."""
        return self._value

    def __repr__(self) -> str:
        return "[hidden]"


class ConfigKey(NamedTuple):
    """An option under Kafka's dotted name. None is allowed only if it is the default."""

    name: str
    type: "type | ConfigType"
    default: Any
    rule: Rule | None
    doc: str
    aliases: tuple[str, ...] = ()

    def convert(self, value: object) -> Any:
        """Convert and check a value.

        Raises:
            ValueError: the value is of another type, or breaks the rule; says what is allowed.
        """
        if value is None and self.default is None:
            return None
        try:
            converted = config_type(self.type).convert(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"it must be {self.allowed()}") from error
        if self.rule is not None and not self.rule.accepts(converted):
            raise ValueError(f"it must be {self.allowed()}")
        return converted

    def allowed(self) -> str:
        """The allowed values, for error messages and the reference page."""
        name = config_type(self.type).name
        return f"{name}, {self.rule.text}" if self.rule else name


class RefusedKey(NamedTuple):
    """An option of other clients that is refused, unless its value is one without effect."""

    name: str
    reason: str
    harmless: tuple[object, ...] = (None,)


class Config(Mapping[str, Any]):
    """Options by Kafka's dotted names: the given values, and defaults for the rest.

    kafka-python's spelling works too, since programs read `producer.config`.
    """

    def __init__(self, values: Mapping[str, Any], explicit: frozenset[str]) -> None:
        self._values = dict(values)
        self._explicit = explicit

    def __getitem__(self, name: str) -> Any:
        values = self._values
        return values[name] if name in values else values[dotted(name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def is_explicit(self, name: str) -> bool:
        """Whether the program set the option, even to its default."""
        return name in self._explicit

    def derive(self, changes: Mapping[str, Any]) -> "Config":
        """A copy with derived values; options that were set stay explicit."""
        return Config({**self._values, **changes}, self._explicit)


class ConfigDefinition:
    """The options of one client, or of the broker."""

    def __init__(
        self,
        owner: str,
        keys: Iterable[ConfigKey],
        refused: Iterable[RefusedKey] = (),
        elsewhere: Mapping[str, str] = MappingProxyType({}),
        *,
        listing: str = "docs/configuration.md",
        dotted_only: bool = False,
    ) -> None:
        """Build the tables.

        Args:
            owner: the client or broker, for messages.
            keys: the options.
            refused: options of other clients that are not supported.
            elsewhere: librdkafka's names for options, to suggest ours.
            listing: where all options are listed, for messages.
            dotted_only: always suggest the dotted spelling.
        """
        self.owner = owner
        self.listing = listing
        self.dotted_only = dotted_only
        self.elsewhere = elsewhere
        self.keys: dict[str, ConfigKey] = {}
        self.refused: dict[str, RefusedKey] = {}
        self._by_spelling: dict[str, ConfigKey] = {}
        for key in keys:
            self.keys[key.name] = key
            for spelling in (key.name, *key.aliases):
                self._claim(spelling)
                self._by_spelling[spelling] = key
        for row in refused:
            self._claim(row.name)
            self.refused[row.name] = row

    def _claim(self, name: str) -> None:
        if name in self._by_spelling or name in self.refused:
            raise TypeError(f"{self.owner} has two rows for {name}")

    def knows(self, option: str) -> bool:
        """Whether the option exists, in either spelling."""
        name = dotted(option)
        return name in self._by_spelling or name in self.refused

    def parse(self, options: Mapping[str, object]) -> Config:
        """Check the given options and fill in the defaults.

        Raises:
            KafkaConfigurationError: an option is unknown, refused, given twice, or has a value
                that is not allowed.
        """
        values = {key.name: key.default for key in self.keys.values()}
        spelt: dict[str, str] = {}
        for option, value in options.items():
            key = self._by_spelling.get(dotted(option))
            if key is None:
                self._refuse(option, value)
                continue
            before = values[key.name]
            try:
                values[key.name] = key.convert(value)
            except ValueError as error:
                shown = Secret("") if key.type is SECRET else value
                raise KafkaConfigurationError(
                    f"{self.owner} option {option!r} cannot be {shown!r}: {error}",
                    key=key.name,
                    value=shown,
                ) from None
            if key.name in spelt and values[key.name] != before:
                raise KafkaConfigurationError(
                    f"{self.owner} got {spelt[key.name]!r} and {option!r}, which are the same"
                    " option: give one of them",
                    key=key.name,
                )
            spelt[key.name] = option
        return Config(values, frozenset(spelt))

    def _refuse(self, option: str, value: object) -> None:
        name = dotted(option)
        row = self.refused.get(name)
        if row is None:
            raise KafkaConfigurationError(
                f"{self.owner} has no option {option!r}{self._suggestion(option)}", key=name
            )
        if not any(value is harmless or value == harmless for harmless in row.harmless):
            # The value stays out of the text: it may be a password.
            raise KafkaConfigurationError(
                f"{self.owner} option {option!r} is not supported: {row.reason}", key=name
            )

    def nearest(self, option: str) -> str | None:
        """The option with the most similar name."""
        import difflib  # only an error needs it

        known = self.elsewhere.get(dotted(option))
        near = (
            [known] if known else difflib.get_close_matches(dotted(option), self._by_spelling, n=1)
        )
        return near[0] if near else None

    def _suggestion(self, option: str) -> str:
        near = self.nearest(option)
        if near is None:
            return f"; {self.listing} lists all"
        is_dotted = self.dotted_only or "." in option
        return f"; did you mean {near if is_dotted else near.replace('.', '_')!r}?"


def contradiction(config: Config, first: str, second: str, reason: str) -> KafkaConfigurationError:
    """The error for two options that cannot both hold."""
    return KafkaConfigurationError(
        f"{first}={config[first]} contradicts {second}={config[second]}: {reason}",
        key=first,
        value=config[first],
    )


def dotted(option: str) -> str:
    """Java's spelling of an option."""
    return option.replace("_", ".")


def config_type(declared: "type | ConfigType") -> ConfigType:
    """The type of a row; Python's builtin types stand for the plain ones."""
    return declared if isinstance(declared, ConfigType) else _PLAIN_TYPES[declared]


def at_least(low: float) -> Rule:
    return Rule(f"at least {low}", lambda value: bool(value >= low), least=low)


def between(low: float, high: float) -> Rule:
    """From `low` to `high`, both included."""
    return Rule(
        f"from {low} to {high}", lambda value: bool(low <= value <= high), least=low, most=high
    )


def one_of(*choices: object) -> Rule:
    texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in choices]
    text = f"one of {', '.join(texts)}" if len(texts) > 1 else f"here only {texts[0]}"
    # A single choice is all that this library can do, not all that there is.
    return Rule(text, lambda value: value in choices, choices=choices if len(choices) > 1 else ())


def not_empty() -> Rule:
    """At least one item or character."""
    return Rule("not empty", lambda value: len(value) > 0)


def _to_int(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(value)
    return int(_as_kafka_writes(value))


def _to_float(value: Any) -> float:
    number = float(_as_kafka_writes(value))
    if isinstance(value, bool) or number != number:  # a NaN passes every comparison rule wrongly
        raise ValueError(value)
    return number


def _as_kafka_writes(number: Any) -> Any:
    # Python would take other alphabets' digits too, and underscores between them.
    if isinstance(number, str) and (not number.isascii() or "_" in number):
        raise ValueError(number)
    return number


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    texts = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in texts:
        return texts[value.strip().lower()]
    raise ValueError(value)


def _to_str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(value)


def _to_secret(value: Any) -> Secret:
    if isinstance(value, str | bytes):
        return Secret(value)
    raise ValueError(value)


def _to_list(value: Any) -> list[Any]:
    if isinstance(value, str):
        return [item.strip() for item in value.split(",") if item.strip()]
    if isinstance(value, list | tuple):
        return list(value)
    raise ValueError(value)


SECRET = ConfigType("a string", _to_secret)
"""The type of an option that is never logged or shown; its values are `Secret`."""

_PLAIN_TYPES: dict[object, ConfigType] = {
    int: ConfigType("an integer", _to_int),
    float: ConfigType("a number", _to_float),
    bool: ConfigType("true or false", _to_bool),
    str: ConfigType("a string", _to_str),
    list: ConfigType("a list", _to_list),
}
