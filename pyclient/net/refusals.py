"""Errors for what other clients have and ours do not: each is refused by name, with what to do."""

from collections.abc import Mapping, Sequence
from typing import NoReturn


def refuse_missing(client: object, name: str, reasons: Mapping[str, str]) -> NoReturn:
    """Raise the AttributeError of a client's `__getattr__`, with the reason if there is one."""
    kind = type(client).__name__
    text = f"{kind!r} object has no attribute {name!r}"
    if name in reasons:
        text = f"{kind} has no method {name}(): {reasons[name]}; see docs/drop-in.md"
    raise AttributeError(text, name=name, obj=client)


def refuse_positional(client: object, given: Sequence[object]) -> None:
    """Raise if options were given as a positional argument, as confluent-kafka takes them."""
    if given:
        kind = type(client).__name__
        # The value stays out of the text: it may hold a password.
        raise TypeError(
            f"{kind} takes its options as keyword arguments, not as a"
            f" {type(given[0]).__name__}: write {kind}(**configuration)"
        )
