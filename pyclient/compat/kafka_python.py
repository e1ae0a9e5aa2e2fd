"""Runs programs that import `kafka` (kafka-python) on this package, unchanged.

    from pyclient.compat import kafka_python

    kafka_python.install()  # before the program imports kafka

From then on `import kafka` and `from kafka.errors import ...` give this package's modules, whether
kafka-python is installed or not. `uninstall` undoes it; `installed` does both, for a `with`.
From the command line, with the program's own arguments behind it:

    python -m pyclient.compat.kafka_python app.py
    python -m pyclient.compat.kafka_python -m package.module

Modules of kafka-python that this package has no counterpart for are a ModuleNotFoundError that says
so. What was imported from `kafka` before stays what it was.
"""

import importlib
import runpy
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NoReturn

__all__ = ["MODULES", "install", "installed", "main", "uninstall"]

MODULES = frozenset(
    {
        "",
        "admin",
        "admin.acl_resource",
        "admin.client",
        "admin.config_resource",
        "admin.new_partitions",
        "admin.new_topic",
        "cluster",
        "codec",
        "consumer",
        "consumer.fetcher",
        "consumer.group",
        "consumer.subscription_state",
        "coordinator",
        "coordinator.assignors",
        "coordinator.assignors.abstract",
        "coordinator.assignors.cooperative_sticky",
        "coordinator.assignors.range",
        "coordinator.assignors.roundrobin",
        "coordinator.assignors.sticky",
        "coordinator.assignors.sticky.sticky_assignor",
        "coordinator.protocol",
        "errors",
        "future",
        "metrics",
        "partitioner",
        "partitioner.abc",
        "partitioner.default",
        "partitioner.sticky",
        "producer",
        "producer.future",
        "producer.kafka",
        "serializer",
        "serializer.abstract",
        "serializer.default",
        "serializer.json",
        "serializer.wrapper",
        "structs",
        "version",
    }
)
"""kafka-python's modules that this package has under the same names."""

_lock = threading.Lock()  # guards the two below, and sys.modules while they change
_finder: "_Finder | None" = None
_replaced: dict[str, ModuleType] = {}


def install() -> None:
    """Let `import kafka` mean this package. A second call does nothing."""
    global _finder
    with _lock:
        if _finder is None:
            _replaced.update(_take_modules())
            _finder = _Finder()
            sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Let `import kafka` mean kafka-python again; modules of it that were loaded are back."""
    global _finder
    with _lock:
        if _finder is not None:
            sys.meta_path.remove(_finder)
            _finder = None
            _take_modules()
            sys.modules.update(_replaced)
            _replaced.clear()


@contextmanager
def installed() -> Iterator[None]:
    """Within the `with` block, `import kafka` means this package."""
    install()
    try:
        yield
    finally:
        uninstall()


def _take_modules() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == "kafka" or name.startswith("kafka.")]
    return {name: sys.modules.pop(name) for name in names}


class _Finder(MetaPathFinder):
    """Finds `kafka` and all below it, so that nothing else does."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != "kafka":
            return None
        if rest not in MODULES:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: `kafka` is pyclient here, which has no counterpart"
                " to this module of kafka-python; docs/drop-in.md lists what there is",
                name=fullname,
            )
        return ModuleSpec(fullname, _Loader(f"pyclient.{rest}".rstrip(".")))


class _Loader(Loader):
    """Loads a module of this package: the same object under a second name."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002
        module = importlib.import_module(self._module)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # the import system has set the alias's


def main(arguments: Sequence[str]) -> None:
    """Run a program: a file, or `-m` and a module, and its arguments."""
    if not arguments or arguments[0] in ("-h", "--help") or list(arguments) == ["-m"]:
        _usage()
    install()
    if arguments[0] == "-m":
        sys.argv = list(arguments[1:])
        sys.path[0] = str(Path.cwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = list(arguments)
    sys.path[0] = str(Path(arguments[0]).resolve().parent)
    runpy.run_path(arguments[0], run_name="__main__")


def _usage() -> NoReturn:
    sys.exit(
        "usage: python -m pyclient.compat.kafka_python [-m MODULE | FILE] [ARGUMENT ...]\n"
        "Runs a program that imports kafka (kafka-python) on pyclient."
    )


if __name__ == "__main__":
    # Under its own name, so that the program and this module share one state.
    importlib.import_module("pyclient.compat.kafka_python").main(sys.argv[1:])
