"""Objects of a program's own that an option names: as they are, or as classes to make one of."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from pyclient.errors import KafkaConfigurationError


def create(option: str, configured: Iterable[Any] | None, configs: Mapping[str, Any]) -> list[Any]:
    """What a program asked for, each configured if it has a method `configure(configs)`.

    A class may be named, as in a properties file: `package.module.Class`.

    Raises:
        KafkaConfigurationError: there is no such class, or it could not be made or configured.
    """
    made: list[Any] = []
    for one in configured or ():
        try:
            made.append(_create(one))
            configure = getattr(made[-1], "configure", None)
            if configure is not None:
                configure(configs)
        except Exception as error:
            for plugin in made:
                close = getattr(plugin, "close", None)
                if close is not None:
                    close()
            raise KafkaConfigurationError(
                f"{option}: {one!r} cannot be used: {error}", key=option, value=one
            ) from error
    return made


def _create(configured: Any) -> Any:
    if isinstance(configured, str):
        module, _, name = configured.rpartition(".")
        if not module:
            raise ValueError("a class is named with its module, as in package.module.Class")
        configured = getattr(import_module(module), name)
    return configured() if isinstance(configured, type) else configured
