"""The source files of the repository, their syntax trees and imports."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = ("pyclient", "broker_stub", "spark_connector")


class Source(NamedTuple):
    """A Python file: where it is, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    files = [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]
    assert files, f"no source in {folders}"
    # The trees are millions of objects that stay to the end: no collection is to walk them.
    gc.disable()
    found = tuple(map(_read, files))
    gc.freeze()
    gc.enable()
    return found


@cache
def _read(file: Path) -> Source:
    text = file.read_text(encoding="utf-8")
    return Source(file.relative_to(ROOT).as_posix(), text, ast.parse(text))


@cache
def imports(source: Source) -> tuple[tuple[str, int, bool], ...]:
    """Each imported module with its line, and whether it is imported lazily."""
    found = []
    for node, is_lazy in _import_statements(source.tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno, is_lazy) for alias in node.names]
            continue
        assert node.level == 0, f"{source.path}:{node.lineno} is a relative import"
        for alias in node.names:
            # `from pyclient.config import definition` may name a module or a value in one.
            whole = f"{node.module}.{alias.name}"
            is_module = (ROOT / whole.replace(".", "/")).with_suffix(".py").exists()
            found.append((whole if is_module else str(node.module), node.lineno, is_lazy))
    return tuple(found)


def _import_statements(
    parent: ast.AST, is_lazy: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_lazy
        elif not isinstance(node, ast.expr):
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _import_statements(node, is_lazy or is_function or _type_checking(node))


def type_checking_lines(source: Source) -> set[int]:
    """The lines that only type checkers read."""
    return {
        line
        for node in ast.walk(source.tree)
        if _type_checking(node) and isinstance(node, ast.If)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def room(module: str) -> str:
    """`net` of `pyclient.net.waiting`; "" of `pyclient` itself."""
    return [*module.split("."), ""][1]


def has_forward_references(source: Source) -> bool:
    """Whether an annotation names what only type checkers import, or what is defined below it."""
    if type_checking_lines(source):
        return True
    ends = {
        name: node.end_lineno or node.lineno
        for node in source.tree.body
        for name in _defined_names(node)
    }
    return any(
        ends.get(name.id, 0) >= name.lineno
        for annotation in _evaluated_annotations(source.tree)
        for name in ast.walk(annotation)
        if isinstance(name, ast.Name)
    )


def _defined_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _evaluated_annotations(parent: ast.AST) -> Iterator[ast.expr]:
    """The annotations that an import evaluates, so none of what is inside a function."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = node.args
            given = [*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg]
            yield from (each.annotation for each in given if each and each.annotation)
            if node.returns:
                yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation
        else:
            yield from _evaluated_annotations(node)
