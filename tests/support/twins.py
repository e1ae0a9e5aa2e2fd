"""Running code on one twin or the other within a process."""

from collections.abc import Callable
from typing import Any

from pyclient import _twin


def names_of(implementation: str) -> dict[str, Any]:
    """What `_twin` exports when this twin is in use."""
    modules = _twin.load(implementation)
    names = {
        name: getattr(modules[module], name)
        for module, names in _twin.MODULES.items()
        for name in names
    }
    return {**names, "NATIVE": implementation == "native"}


def use(names: dict[str, Any], put: Callable[[Any, str, Any], object] = setattr) -> None:
    """Let everything that reads `_twin` find these names."""
    for name, value in names.items():
        put(_twin, name, value)
