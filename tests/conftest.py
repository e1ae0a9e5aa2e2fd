"""Fixtures for every test: the twins."""

from types import ModuleType

import pytest

from pyclient import _twin


@pytest.fixture(params=list(_twin.PACKAGES))
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Run the test once on each twin: its `batch` module, and all that reads `_twin`.

    A twin that cannot be loaded fails the test, for a fallback would hide it.
    """
    modules = _twin.load(request.param)
    for module, names in _twin.MODULES.items():
        for name in names:
            monkeypatch.setattr(_twin, name, getattr(modules[module], name))
    monkeypatch.setattr(_twin, "NATIVE", request.param == "native")
    return modules["batch"]
