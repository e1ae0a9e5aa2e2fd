"""Installing where there is no C compiler: the pure-Python twins take over, and say so."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request

ROOT = Path(__file__).parents[2]
PACKAGES = ("pyclient", "broker_stub", "spark_connector")

pytestmark = pytest.mark.install


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run with the interpreter of these tests."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that comes out of a clean copy of the sources when every compilation fails."""
    folder = tmp_path_factory.mktemp("sources")
    built = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=built)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    # Without isolation: the tools are those of these tests, and nothing is downloaded.
    build = ("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "out", ".")
    done = run(*build, cwd=folder, CC="/bin/false", CXX="/bin/false")
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (folder / "out").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    done = run("-m", "pip", "install", "--no-deps", "--target", str(target), str(wheel), cwd=target)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_the_wheel_has_every_module_and_the_type_markers_but_nothing_compiled(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = wheel.parents[1]
    modules = {
        file.relative_to(sources).as_posix()
        for package in PACKAGES
        for file in (sources / package).rglob("*.py")
    }
    assert modules <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert not [name for name in names if name.endswith(".so")]


def test_the_pure_python_twin_is_in_use(installed: Path) -> None:
    program = "import pyclient; print(pyclient.__file__, pyclient.NATIVE)"
    done = run("-c", program, cwd=installed, PYTHONPATH=str(installed), PYCLIENT_IMPL="")
    assert done.stdout.split() == [str(installed / "pyclient" / "__init__.py"), "False"]


def test_forcing_the_native_twin_says_what_is_missing_and_the_remedy(installed: Path) -> None:
    program = "import pyclient"
    done = run("-c", program, cwd=installed, PYTHONPATH=str(installed), PYCLIENT_IMPL="native")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: PYCLIENT_IMPL=native")
    assert "pyclient._native" in last
    assert "C compiler" in last


def test_forcing_a_twin_that_does_not_exist_names_those_that_do(installed: Path) -> None:
    done = run(
        "-c", "import pyclient", cwd=installed, PYTHONPATH=str(installed), PYCLIENT_IMPL="rust"
    )
    assert "PYCLIENT_IMPL is 'rust'; it can be 'native' or 'python'" in done.stderr


def test_pytest_finds_the_fixtures_of_the_installed_package(
    installed: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_orders.py").write_text(
        "def test_orders(kafka_broker):\n    kafka_broker.create_topic('orders')\n"
    )
    done = run("-m", "pytest", "-p", "no:cacheprovider", cwd=tmp_path, PYTHONPATH=str(installed))
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_installed_command_says_where_it_serves_and_stops_when_it_is_told(
    installed: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [installed / "bin" / "broker-stub", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"broker_stub listening on 127\.0\.0\.1:(\d+)\n", line)
        assert found, line or process.communicate(timeout=30)
        with RawClient(int(found[1])) as client:
            client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
            response = client.ask(produce_request("orders", batch(b"value")), 9)
        (written,) = response.responses[0].partition_responses
        assert (written.error_code, written.base_offset) == (0, 0)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=30) == ("", "")  # that line was all
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
