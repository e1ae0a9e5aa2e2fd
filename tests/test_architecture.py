"""docs/architecture.md agrees with the sources: picture, paths, table of behaviours."""

import ast
import re
from pathlib import Path

import pytest

from tests.import_graph import PAGE, import_graph, reachable, with_picture
from tests.support.source_tree import PACKAGES, ROOT

TEXT = PAGE.read_text(encoding="utf-8")
# Their files are named after nouns or APIs, or are kafka-python's module paths.
UNLISTED = re.compile(
    r"pyclient/(admin/types|protocol/messages|coordinator|serializer|partitioner)\b"
    r"|broker_stub/handlers\b"
)
ROOMS = [
    file.parent
    for folder in PACKAGES
    for file in sorted((ROOT / folder).rglob("__init__.py"))
    if not UNLISTED.match(file.relative_to(ROOT).as_posix())
]
FILES = [
    file.relative_to(ROOT).as_posix()
    for folder in (*PACKAGES, "tests")
    for file in (ROOT / folder).rglob("*.py*")
]
PLACES = re.findall(r"^\| ([^|]+) \| `([\w/]+\.py)` \| `([\w.]+)` \|$", TEXT, re.MULTILINE)


def test_the_picture_shows_todays_imports() -> None:
    assert with_picture(TEXT) == TEXT, "the imports have changed: run `make docs`"


def test_no_packages_import_each_other() -> None:
    at_once, _ = import_graph()
    assert not [node for node in at_once if node in reachable(at_once, node)]


def test_every_path_it_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.pyx?)`", TEXT))
    missing = [
        path for path in sorted(named) if not any(f"/{each}".endswith(f"/{path}") for each in FILES)
    ]
    missing += [
        folder
        for folder in sorted(set(re.findall(r"`([\w/]+)/`", TEXT)))
        if not any((ROOT / package / folder).is_dir() for package in ("", *PACKAGES))
    ]
    assert named
    assert not missing


def test_the_table_of_behaviours_is_there() -> None:
    assert len(PLACES) == 14


@pytest.mark.parametrize(("behaviour", "path", "symbol"), PLACES)
def test_a_behaviour_is_where_the_table_says(behaviour: str, path: str, symbol: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for name in symbol.split("."):
        declaration = rf"^\s*(?:class|def|async def) {name}\b"
        assert re.search(declaration, text, re.MULTILINE), behaviour


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(ROOT).as_posix())
def test_a_package_lists_its_modules(room: Path) -> None:
    listed = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    modules = {
        one.stem
        for one in room.iterdir()
        if one.suffix == ".py" or (one / "__init__.py").exists()
        if not one.name.startswith("_") and one.name != "version.py"
    }
    assert [name for name in sorted(modules) if not re.search(rf"`{name}/?`", listed)] == []
    named = re.findall(r"^- `(\w+)/?`", listed, re.MULTILINE)
    files = {one.name.partition(".")[0] for one in room.iterdir()}
    assert [name for name in named if name not in files] == []
