"""Fixtures for every test: the twins, and the end of a soak."""

import gc
import os
import time
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from pyclient import _twin
from tests.support.threads import switching
from tests.support.twins import names_of, use

# A busy machine is no failure.
settings.register_profile("tests", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With PYCLIENT_IMPL=python, leave out the native half of tests that run on both twins.

    A process that has started on the pure twin cannot switch all of itself to the native one.
    """
    if _twin.NATIVE or "PYCLIENT_IMPL" not in os.environ:
        return
    native = [item for item in items if _is_on_native_twin(item)]
    if native:
        config.hook.pytest_deselected(items=native)
        items[:] = [item for item in items if not _is_on_native_twin(item)]


def pytest_collection_finish() -> None:
    """Keep what is imported and collected out of every garbage collection of the run."""
    gc.freeze()


def _is_on_native_twin(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    values = () if callspec is None else callspec.params.values()
    return any(isinstance(value, str) and value == "native" for value in values)


@pytest.fixture
def restless() -> Iterator[None]:
    """Let threads switch as often as the interpreter can."""
    with switching():
        yield


@pytest.fixture(params=list(_twin.PACKAGES))
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Run the test once on each twin: its `batch` module, and all that reads `_twin`.

    A twin that cannot be loaded fails the test: a fallback would hide it.
    """
    use(names_of(request.param), monkeypatch.setattr)
    return _twin.load(request.param)["batch"]


@pytest.fixture
def twin_in_use() -> Iterator[None]:
    """Restore the twin after a test that switches it itself."""
    before = names_of("native" if _twin.NATIVE else "python")
    yield
    use(before)


@pytest.fixture
def soak_is_over(request: pytest.FixtureRequest) -> Callable[[], bool]:
    """Whether a soak test has used its share of `MINUTES`, which all soak tests of a run divide."""
    minutes = float(os.environ.get("MINUTES", "30")) / len(request.session.items)
    end = time.monotonic() + 60 * minutes
    return lambda: time.monotonic() > end
