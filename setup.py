"""Build the native twins where a C compiler works; package the pure-Python ones where none does.

`PYCLIENT_BUILD=native` makes a missing compiler an error, `PYCLIENT_BUILD=python` leaves the
native twins out. Without it a small trial compilation decides, before setuptools picks the
wheel's tag: a build that falls back is tagged `py3-none-any`, says so in the build log, and tells
`pyclient.NATIVE_REASON` why. A native module that fails to compile after that fails the build:
half of the twins is worse than none.
"""

import os
import sys
import tempfile
from pathlib import Path

from setuptools import Distribution, Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import BaseError, CCompilerError

NATIVE = Path("pyclient/_native")
POSIX_ONLY = {"exchange"}
# Both what setuptools is asked to do by pip and what people type.
BUILDING = {"bdist_wheel", "build", "build_ext", "develop", "editable_wheel", "install"}

TRIAL = """
#include <Python.h>
#include "crc32c.h"
PyMODINIT_FUNC PyInit_trial(void) { crc32c_prepare(); return NULL; }
"""


def why_not_native() -> str:
    """Why the native twins cannot be built here; empty if they can."""
    if os.environ.get("PYCLIENT_BUILD") == "python":
        return "built with PYCLIENT_BUILD=python"
    try:
        import Cython  # noqa: F401
    except ImportError:
        return "built without Cython"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "trial.c")
        source.write_text(TRIAL, encoding="utf-8")
        trial = Extension("trial", [str(source)], include_dirs=[str(NATIVE.absolute())])
        command = build_ext(Distribution({"name": "trial", "ext_modules": [trial]}))
        command.build_lib = command.build_temp = folder
        try:
            command.ensure_finalized()
            command.run()
        except (BaseError, CCompilerError, OSError) as error:
            print(f"The trial compilation failed: {error}", file=sys.stderr)
            tool = getattr(command.compiler, "compiler", ["no compiler"])[0]
            return f"built where no C compiler works, or Python's headers are missing ({tool})"
    return ""


def native_extensions() -> list[Extension]:
    """The Cython modules."""
    from Cython.Build import cythonize

    compile_args, link_args = ["-O3", "-g0"], []
    if os.environ.get("PYCLIENT_SANITIZE"):
        compile_args, link_args = ["-O3", "-g", "-fsanitize=address"], ["-fsanitize=address"]
    elif sys.platform == "linux":
        link_args = ["-Wl,--strip-all"]
    extensions: list[Extension] = cythonize(
        [
            Extension(
                f"pyclient._native.{source.stem}",
                [str(source)],
                extra_compile_args=compile_args,
                extra_link_args=link_args,
            )
            for source in sorted(NATIVE.glob("*.pyx"))
            if sys.platform != "win32" or source.stem not in POSIX_ONLY
        ],
        language_level=3,
    )
    return extensions


class BuildPy(build_py):
    """Leaves a note in a pure build."""

    def run(self) -> None:
        """Copy the modules, and write down why the native ones are not among them."""
        super().run()
        note = Path(self.build_lib, *NATIVE.parts, "not_built.py")
        if reason and not self.editable_mode:
            note.write_text(
                f'"""Written by the build of this package."""\n\nREASON = {reason!r}\n',
                encoding="utf-8",
            )
        else:
            note.unlink(missing_ok=True)  # from an earlier build in the same folder


wanted = os.environ.get("PYCLIENT_BUILD", "")
if wanted not in ("", "native", "python"):
    sys.exit(f"PYCLIENT_BUILD is {wanted!r}; it can be 'native' or 'python'")
is_building = not BUILDING.isdisjoint(sys.argv)
reason = why_not_native() if is_building else ""
if reason:
    if wanted == "native":
        sys.exit(f"PYCLIENT_BUILD=native, but the compiled modules cannot be built: {reason}")
    print(
        f"WARNING: kafka-pyclient is installed as pure Python, several times slower: {reason}.\n"
        "WARNING: For the compiled modules install a C compiler and Python's headers"
        " (apt install gcc python3-dev), then install again.",
        file=sys.stderr,
    )

# Spark looks for a top-level module of such a name; see spark_connector/discovery.
DISCOVERY = "pyspark_pykafka"

setup(
    packages=[
        *find_packages(include=["pyclient*", "broker_stub*", "spark_connector*"]),
        DISCOVERY,
    ],
    package_dir={DISCOVERY: "spark_connector/discovery"},
    ext_modules=native_extensions() if is_building and not reason else [],
    cmdclass={"build_py": BuildPy},
)
