"""`pyclient.compat.kafka_python`: `import kafka` means this package, for as long as is wanted."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyclient
from pyclient.compat import kafka_python
from tests.support.source_tree import ROOT


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    yield
    kafka_python.uninstall()


def test_every_module_is_the_same_object_under_both_names() -> None:
    with kafka_python.installed():
        for name in sorted(kafka_python.MODULES):
            theirs, ours = (f"{package}.{name}".rstrip(".") for package in ("kafka", "pyclient"))
            exec(f"import {theirs}, {ours}")
            module = sys.modules[ours]
            assert sys.modules[theirs] is module
            assert module.__name__ == ours
            assert module.__spec__ is not None
            assert module.__spec__.name == ours


def test_kafka_python_is_back_after_uninstalling() -> None:
    import kafka
    import kafka.errors

    before = kafka, kafka.errors, kafka.KafkaProducer
    with kafka_python.installed():
        import kafka as ours

        assert ours is pyclient
    import kafka as again
    import kafka.errors as errors_again

    assert (again, errors_again, again.KafkaProducer) == before
    assert not any(name in sys.modules for name in ("kafka.structs.x", "pyclient.kafka"))


def test_installing_twice_and_uninstalling_twice_do_no_harm() -> None:
    kafka_python.install()
    kafka_python.install()
    kafka_python.uninstall()
    import kafka

    assert kafka is not pyclient
    kafka_python.uninstall()


@pytest.mark.parametrize("module", ["kafka.net", "kafka.conn", "kafka.protocol.admin"])
def test_a_module_without_a_counterpart_is_refused_by_name(module: str) -> None:
    with kafka_python.installed(), pytest.raises(ModuleNotFoundError) as raised:
        exec(f"import {module}")
    assert raised.value.name == module or module.startswith(f"{raised.value.name}.")
    assert "docs/drop-in.md" in str(raised.value)


PROGRAM = """
import sys
import helper
from kafka import KafkaProducer
from kafka.errors import KafkaError

print(__name__, KafkaProducer.__module__, KafkaError.__module__, *sys.argv[1:])
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_a_program_runs_from_the_command_line(tmp_path: Path, as_module: bool) -> None:
    (tmp_path / "app.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "helper.py").write_text("", encoding="utf-8")  # beside it, as programs have them
    program = ["-m", "app"] if as_module else [str(tmp_path / "app.py")]
    done = subprocess.run(
        [sys.executable, "-m", "pyclient.compat.kafka_python", *program, "--fast"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout == "__main__ pyclient.producer.producer pyclient.error_codes --fast\n"


def test_without_a_program_it_says_how_to_name_one() -> None:
    with pytest.raises(SystemExit, match="usage: python -m pyclient"):
        kafka_python.main([])
