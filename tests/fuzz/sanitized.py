"""The native modules built with AddressSanitizer, in a folder of their own.

`PYCLIENT_SANITIZE=1` makes `setup.py` add the flags. The sanitizer must be there before everything
else, hence the preload; Python's own allocator would hide what it looks for.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.mutator import SEED, SOAK_INPUTS

REPOSITORY = Path(__file__).parents[2]


def build(folder: Path) -> Path:
    """Build the packages into `folder`, native modules sanitized: where to import them from."""
    library = folder / "lib"
    command = [sys.executable, "setup.py", "--quiet", "build", "--force"]
    folders = [f"--build-lib={library}", f"--build-temp={folder / 'temp'}"]
    environment = {**os.environ, "PYCLIENT_SANITIZE": "1"}
    subprocess.run([*command, *folders], cwd=REPOSITORY, env=environment, check=True)
    return library


def soak(module: str, folder: Path, inputs: int, is_over: Callable[[], bool]) -> None:
    """Run a module with one seed after another, each with a number of inputs."""
    library = build(folder)
    for seed in range(SEED, SEED + SOAK_INPUTS // inputs):
        done = run(library, module, str(inputs), FUZZ_SEED=str(seed))
        assert done.returncode == 0, done.stderr
        print(f"\nFUZZ_SEED={seed}: {done.stdout.strip()} under AddressSanitizer", end="")
        if is_over():
            break


def run(
    library: Path, module: str, *arguments: str, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests on the sanitized build, with `settings` in its environment."""
    sanitizer = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    environment = {
        **os.environ,
        "LD_PRELOAD": sanitizer,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join([str(library), str(REPOSITORY)]),
        "PYCLIENT_IMPL": "native",
        **settings,
    }
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=library,  # `-m` looks in the working directory first
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
