"""Creates the program's own objects that an option names: instances, classes or class names."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from pyclient.errors import KafkaConfigurationError


def create(option: str, configured: Iterable[Any] | None, configs: Mapping[str, Any]) -> list[Any]:
    """The configured objects; `configure(configs)` is called on those that have it.

    A class may be given by name, as in a properties file: `package.module.Class`.

    Raises:
        KafkaConfigurationError: a class does not exist, or could not be created or configured.
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
            raise ValueError("give a class with its module, as in package.module.Class")
        configured = getattr(import_module(module), name)
    return configured() if isinstance(configured, type) else configured
