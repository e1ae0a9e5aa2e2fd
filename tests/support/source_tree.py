"""The source files of the repository, their syntax trees and imports."""

import ast
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
    found = []
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            found.append(Source(file.relative_to(ROOT).as_posix(), text, ast.parse(text)))
    assert found, f"no source in {folders}"
    return tuple(found)


def imports(source: Source) -> Iterator[tuple[str, int, bool]]:
    """Each imported module with its line, and whether it is imported lazily."""
    lazy = {
        id(node)
        for parent in ast.walk(source.tree)
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) or _type_checking(parent)
        for node in ast.walk(parent)
    }
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, id(node) in lazy
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source.path}:{node.lineno} is a relative import"
            for alias in node.names:
                # `from pyclient.config import definition` may name a module or a value in one.
                whole = f"{node.module}.{alias.name}"
                is_module = (ROOT / whole.replace(".", "/")).with_suffix(".py").exists()
                yield whole if is_module else str(node.module), node.lineno, id(node) in lazy


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
