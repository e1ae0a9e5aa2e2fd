"""Source distributions of other clients, from the package registry: for their tests and examples.

Each is that of the installed version, so that the tests belong to what is compared with. They are
kept outside the repository, beside Apache Kafka's jars, and fetched once.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.interop.apache_kafka import cache

FETCH_SECONDS = 120


def source_package(project: str) -> Path:
    """The unpacked source distribution; where it can't be had, a skip, and in CI a failure."""
    folder = cache() / f"{project}-{version(project)}-source"
    if not folder.is_dir():
        try:
            _fetch(project, folder)
        except subprocess.SubprocessError as error:
            reason = f"the source of {project} can't be fetched: {error}"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)
    return folder


def _fetch(project: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--no-binary", ":all:", "--no-build-isolation", "--dest", scratch),
                f"{project}=={version(project)}",
            ],
            capture_output=True,
            timeout=FETCH_SECONDS,
            check=True,
        )
        (archive,) = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(scratch, filter="data")
        (unpacked,) = (one for one in Path(scratch).iterdir() if one.is_dir())
        # Another run may have been faster; the two are equal.
        with suppress(OSError):
            unpacked.rename(folder)
