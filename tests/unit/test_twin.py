"""Which twin is picked, and the error if it cannot be loaded."""

import os
import subprocess
import sys
from types import ModuleType

import pytest

import pyclient
from pyclient import _twin

# Makes the compiled modules fail to import, as if they had not been built.
WITHOUT_NATIVE = "import sys; sys.modules['pyclient._native.batch'] = None; "
REPORT = "import pyclient; from pyclient import _twin; print(pyclient.NATIVE, _twin.crc32c(b'x'))"


def run(script: str, implementation: str | None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYCLIENT_IMPL", None)
    if implementation is not None:
        environment["PYCLIENT_IMPL"] = implementation
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("implementation", "native"), [(None, True), ("", True), ("native", True), ("python", False)]
)
def test_the_environment_picks_the_twin(implementation: str | None, native: bool) -> None:
    done = run(REPORT, implementation)
    assert done.stdout.split() == [str(native), str(_twin.crc32c(b"x"))], done.stderr


@pytest.mark.parametrize("implementation", [None, "python"])
def test_without_compiled_modules_the_pure_twin_is_used(implementation: str | None) -> None:
    done = run(WITHOUT_NATIVE + REPORT, implementation)
    assert done.stdout.split()[0] == "False", done.stderr


def test_forcing_a_missing_twin_says_why() -> None:
    done = run(WITHOUT_NATIVE + REPORT, "native")
    assert done.returncode != 0
    assert "PYCLIENT_IMPL=native" in done.stderr
    assert "C compiler" in done.stderr
    assert "direct cause" in done.stderr  # the failed import itself


def test_an_unknown_choice_is_refused() -> None:
    done = run(REPORT, "rust")
    assert "PYCLIENT_IMPL is 'rust'; it can be 'native' or 'python'" in done.stderr


def test_pyclient_tells_which_twin_is_in_use() -> None:
    assert pyclient.NATIVE is _twin.NATIVE


def test_the_reason_for_the_pure_twin_is_told() -> None:
    report = "import pyclient; print(pyclient.NATIVE_REASON)"
    assert run(report, "native").stdout == "\n"
    assert run(report, "python").stdout == "PYCLIENT_IMPL=python\n"
    told = run(WITHOUT_NATIVE + report, None).stdout
    assert told.startswith("the compiled modules cannot be loaded (")
    assert "pyclient._native.batch" in told


def test_what_the_build_has_noted_is_part_of_the_reason() -> None:
    note = (
        "import types; note = types.ModuleType('note'); note.REASON = 'built without Cython'; "
        "sys.modules['pyclient._native.not_built'] = note; "
    )
    report = "import pyclient; print(pyclient.NATIVE_REASON)"
    told = run(WITHOUT_NATIVE + note + report, None).stdout
    assert told.endswith("; built without Cython)\n")


def test_both_twins_export_the_same_names() -> None:
    for module, names in _twin.MODULES.items():
        for modules in map(_twin.load, _twin.PACKAGES):
            assert [name for name in names if not hasattr(modules[module], name)] == []


def test_the_fixture_swaps_what_everything_reads(twin: ModuleType) -> None:
    assert _twin.BatchBuilder is twin.BatchBuilder
    assert twin.__name__.startswith(_twin.PACKAGES["native" if _twin.NATIVE else "python"])


def test_importing_the_package_loads_no_codec_and_no_arrow() -> None:
    heavy = ["lz4", "zstandard", "cramjam", "pyarrow", "ssl", "asyncio", "isal"]
    for implementation in ("native", "python"):
        script = (
            "import pyclient, pyclient.records.batch, pyclient.records.columns, sys; "
            f"print([name for name in {heavy!r} if name in sys.modules])"
        )
        assert run(script, implementation).stdout.strip() == "[]"
