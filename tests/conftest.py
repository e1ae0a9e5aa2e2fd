"""Fixtures for every test: the twins."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from pyclient import _twin
from tests.support.twins import names_of, use


@pytest.fixture(params=list(_twin.PACKAGES))
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Run the test once on each twin: its `batch` module, and all that reads `_twin`.

    A twin that cannot be loaded fails the test, for a fallback would hide it.
    """
    use(names_of(request.param), monkeypatch.setattr)
    return _twin.load(request.param)["batch"]


@pytest.fixture
def twin_in_use() -> Iterator[None]:
    """Give back the twin that is in use to what comes after a test that switches by itself."""
    before = names_of("native" if _twin.NATIVE else "python")
    yield
    use(before)
