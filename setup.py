"""Build the native twins where there is a compiler; install on the pure-Python ones where not."""

import os
from pathlib import Path

from setuptools import Extension, setup

SOURCES = sorted(Path("pyclient/_native").glob("*.pyx"))


def native_extensions() -> list[Extension]:
    """The Cython modules, each optional: a failing compiler must not fail the install."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    sanitize = ["-fsanitize=address", "-g"] if os.environ.get("PYCLIENT_SANITIZE") else []
    extensions = cythonize(
        [
            Extension(
                f"pyclient._native.{source.stem}",
                [str(source)],
                extra_compile_args=["-O3", *sanitize],
                extra_link_args=sanitize,
            )
            for source in SOURCES
        ],
        language_level=3,
    )
    for extension in extensions:
        extension.optional = True  # cythonize() drops the flag when given beforehand
    return extensions


setup(ext_modules=native_extensions())
