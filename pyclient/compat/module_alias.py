"""Lets the name of another client's package mean modules of this one, and undoes it."""

import importlib
import runpy
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType


class ModuleAlias:
    """A package of another client, and this package's modules in its place."""

    def __init__(self, package: str, modules: Mapping[str, str], guide: str) -> None:
        """Replace nothing yet.

        Args:
            package: the other client's package, as in `kafka`.
            modules: this package's modules by the names of the other's, both in full.
            guide: the page that lists what there is, for errors.
        """
        self._package = package
        self._finder = _Finder(package, modules, guide)
        self._lock = threading.Lock()  # guards what follows, and sys.modules while it changes
        self._is_installed = False
        self._replaced: dict[str, ModuleType] = {}

    def install(self) -> None:
        """Let an import of the package mean this one. A second call does nothing."""
        with self._lock:
            if not self._is_installed:
                self._replaced.update(self._take_modules())
                sys.meta_path.insert(0, self._finder)
                self._is_installed = True

    def uninstall(self) -> None:
        """Let it mean the other package again; modules of it that were loaded are back."""
        with self._lock:
            if self._is_installed:
                sys.meta_path.remove(self._finder)
                self._is_installed = False
                self._take_modules()
                sys.modules.update(self._replaced)
                self._replaced.clear()

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Within the `with` block, an import of the package means this one."""
        self.install()
        try:
            yield
        finally:
            self.uninstall()

    def run(self, arguments: Sequence[str], usage: str) -> None:
        """Run a program with it: a file, or `-m` and a module, and its arguments."""
        if not arguments or arguments[0] in ("-h", "--help") or list(arguments) == ["-m"]:
            sys.exit(usage)
        self.install()
        if arguments[0] == "-m":
            sys.argv = list(arguments[1:])
            sys.path[0] = str(Path.cwd())
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
            return
        sys.argv = list(arguments)
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")

    def _take_modules(self) -> dict[str, ModuleType]:
        below = f"{self._package}."
        names = [name for name in sys.modules if name == self._package or name.startswith(below)]
        return {name: sys.modules.pop(name) for name in names}


class _Finder(MetaPathFinder):
    """Finds the package and all below it, so that nothing else does."""

    def __init__(self, package: str, modules: Mapping[str, str], guide: str) -> None:
        self._package = package
        self._modules = modules
        self._guide = guide

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self._package:
            return None
        if fullname not in self._modules:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: `{self._package}` is pyclient here, which has no"
                f" counterpart to this module; {self._guide} lists what there is",
                name=fullname,
            )
        return ModuleSpec(fullname, _Loader(self._modules[fullname]))


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
