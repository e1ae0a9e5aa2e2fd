"""Fixtures for every test: the twins, and the end of a soak."""

import os
import time
from collections.abc import Callable, Iterator
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


@pytest.fixture
def soak_is_over(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Whether a soak test has had its share: `MINUTES` are for all that run together."""
    minutes = float(os.environ.get("MINUTES", "30")) / len(request.session.items)
    end = time.monotonic() + 60 * minutes
    return lambda: time.monotonic() > end
