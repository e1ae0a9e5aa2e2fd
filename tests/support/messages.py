"""Every message that is declared, for tests that go through all of them."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

import pyclient.protocol.messages
from pyclient.protocol import header
from pyclient.protocol.schema import Message


def declared_messages() -> dict[str, type[Message]]:
    """All requests, responses, headers and records, by name."""
    package = pyclient.protocol.messages
    modules = [
        import_module(f"{package.__name__}.{m.name}") for m in iter_modules(package.__path__)
    ]
    return {
        cls.__name__: cls
        for module in (header, *modules)
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Message) and cls is not Message
    }


def declared_versions() -> Iterator[tuple[type[Message], int]]:
    """Every message in every version it is defined in."""
    for cls in declared_messages().values():
        for version in cls.versions:
            yield cls, version
