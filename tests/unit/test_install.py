"""What is built and installed: the source distribution, the wheel, and the wheel without C."""

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pyclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.broker_stub.raw_client import RawClient
from tests.support.node_harness import batch, produce_request
from tests.support.server_process import serving

ROOT = Path(__file__).parents[2]
PACKAGES = ("pyclient", "broker_stub", "spark_connector")
NOT_SOURCES = shutil.ignore_patterns(
    ".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "build", "dist", "*.egg-info",
    "*.so", "*.c", "spark-warehouse", "metastore_db",
)  # fmt: skip
MB = 1 << 20

pytestmark = [pytest.mark.install, pytest.mark.timeout(300)]


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
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of the sources, with nothing built and no git."""
    folder = tmp_path_factory.mktemp("clean") / "sources"
    shutil.copytree(ROOT, folder, ignore=NOT_SOURCES)
    return folder


def built(sources: Path, *options: str, **environment: str) -> tuple[Path, str]:
    """Build a distribution without downloading anything; where it is, and the build's log."""
    out = sources / "dist"
    before = set(out.glob("*"))
    done = run(
        "-m", "build", "--no-isolation", *options, "--outdir", str(out), cwd=sources, **environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = set(out.glob("*")) - before
    return made, done.stdout + done.stderr


@pytest.fixture(scope="module")
def sdist(sources: Path) -> Path:
    return built(sources, "--sdist")[0]


@pytest.fixture(scope="module")
def native_wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `make dist` makes: from the source distribution."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return built(unpacked, "--wheel", PYCLIENT_BUILD="native")[0]


@pytest.fixture(scope="module")
def pure_build(sources: Path) -> tuple[Path, str]:
    """The wheel of a build in which every compilation fails."""
    return built(sources, "--wheel", CC="/bin/false", CXX="/bin/false")


@pytest.fixture(scope="module")
def wheel(pure_build: tuple[Path, str]) -> Path:
    return pure_build[0]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    done = run("-m", "pip", "install", "--no-deps", "--target", str(target), str(wheel), cwd=target)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_the_source_distribution_holds_all_that_the_repository_does(
    sources: Path, sdist: Path
) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*")
        if path.is_file() and not {"dist", "build"} & set(path.relative_to(sources).parts)
        if not path.parent.name.endswith(".egg-info")
    }
    assert wanted - names == set()
    assert {"CHANGELOG.md", "docs/architecture.md", "tests/test_tidy.py"} <= names
    assert not [name for name in names if name.endswith((".so", ".c", ".pyc"))]


def test_the_wheel_is_lean(native_wheel: Path) -> None:
    assert "-none-any" not in native_wheel.name
    with zipfile.ZipFile(native_wheel) as archive:
        names = archive.namelist()
        compiled = [name for name in names if name.endswith((".so", ".pyd"))]
        assert len(compiled) == 3  # batch, exchange, send
        if sys.platform == "linux":
            assert not [name for name in compiled if b".debug_info" in archive.read(name)]
    assert not [name for name in names if name.endswith((".c", ".h", ".pxd", ".pxi", ".pyx"))]
    assert "pyclient/_native/not_built.py" not in names
    assert native_wheel.stat().st_size < 1.5 * MB


@pytest.mark.skipif(sys.platform != "linux", reason="manylinux is Linux's")
def test_the_wheel_runs_on_every_linux_of_manylinux(native_wheel: Path, tmp_path: Path) -> None:
    tools = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
    done = run(
        "-m", "auditwheel", "repair", "--wheel-dir", str(tmp_path), str(native_wheel),
        cwd=tmp_path, PATH=tools,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (repaired,) = tmp_path.glob("*.whl")
    assert "manylinux" in repaired.name
    assert not [name for name in zipfile.ZipFile(repaired).namelist() if ".libs/" in name]


ROUND_TRIP = ROOT / "tests" / "support" / "round_trip.py"


def installed_elsewhere(distribution: Path, folder: Path, path: str) -> list[str]:
    """Install into an empty environment with this PATH, and run a round trip there.

    Answers with the twin that was used; the package is sure to be the installed one.

    What the distribution depends on comes by pip, as this machine has it configured.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYCLIENT_", "PYTHON", "VIRTUAL_ENV", "CC", "CXX"))
    }
    environment["PATH"] = path
    subprocess.run([sys.executable, "-m", "venv", folder / "empty"], check=True)
    python = folder / "empty" / "bin" / "python"
    commands: list[list[str | Path]] = [
        [python, "-m", "pip", "install", "--quiet", distribution],
        [python, ROUND_TRIP],
    ]
    for command in commands:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    imported, *twin = done.stdout.split()
    assert imported.startswith(str(folder))
    return twin


def test_the_wheel_works_where_there_is_no_compiler(native_wheel: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    assert installed_elsewhere(native_wheel, tmp_path, str(nothing)) == ["True"]


def test_the_source_distribution_works_where_there_is_no_git(sdist: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in reversed(os.environ["PATH"].split(os.pathsep)):
        for tool in Path(folder).glob("*"):
            if not tool.name.startswith("git"):
                (tools / tool.name).unlink(missing_ok=True)
                (tools / tool.name).symlink_to(tool)
    assert shutil.which("git", path=str(tools)) is None
    assert installed_elsewhere(sdist, tmp_path, str(tools)) == ["True"]


def test_a_build_without_a_compiler_is_tagged_as_pure_and_says_why(
    pure_build: tuple[Path, str],
) -> None:
    made, log = pure_build
    assert made.name.endswith("-py3-none-any.whl")
    assert "WARNING: kafka-pyclient is installed as pure Python" in log
    assert "several times slower: built where no C compiler works" in log
    with zipfile.ZipFile(made) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/WHEEL"))
        assert "Root-Is-Purelib: true\nTag: py3-none-any" in archive.read(metadata).decode()


def test_a_build_that_must_be_native_fails_without_a_compiler(
    sources: Path, tmp_path: Path
) -> None:
    done = run(
        "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path),
        cwd=sources, CC="/bin/false", PYCLIENT_BUILD="native",
    )  # fmt: skip
    assert done.returncode != 0
    assert "PYCLIENT_BUILD=native, but the compiled modules cannot be built" in (
        done.stdout + done.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_the_pure_wheel_has_every_module_and_the_type_markers_but_nothing_compiled(
    wheel: Path, sources: Path
) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {
        file.relative_to(sources).as_posix()
        for package in PACKAGES
        for file in (sources / package).rglob("*.py")
    }
    assert modules <= names
    assert "pyspark_pykafka/__init__.py" in names  # Spark looks for such a module
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert not [name for name in names if name.endswith(".so")]


def test_the_pure_python_twin_is_in_use_and_says_why(installed: Path) -> None:
    program = (
        "import pyclient; print(pyclient.__file__, pyclient.NATIVE); print(pyclient.NATIVE_REASON)"
    )
    done = run("-c", program, cwd=installed, PYTHONPATH=str(installed), PYCLIENT_IMPL="")
    used, reason = done.stdout.splitlines()
    assert used.split() == [str(installed / "pyclient" / "__init__.py"), "False"]
    assert reason.endswith(
        "built where no C compiler works, or Python's headers are missing (/bin/false))"
    )


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
    command = [installed / "bin" / "broker-stub", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    with serving(command, cwd=tmp_path, env=environment) as (process, address):
        with RawClient(int(address.partition(":")[2])) as client:
            client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
            response = client.ask(produce_request("orders", batch(b"value")), 9)
        (written,) = response.responses[0].partition_responses
        assert (written.error_code, written.base_offset) == (0, 0)
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=30) == ("", "")  # that line was all
    assert process.returncode == 0
