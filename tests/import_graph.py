"""Draws the packages and their import directions into docs/architecture.md: `make docs` runs this.

Nodes are the folders of a package, and the modules beside them that folders import; all other
modules beside them are one node. An arrow is an import when a module is loaded, a dotted arrow
an import on first use. Arrows that follow from others are left out, and so are arrows to
pyclient's leaves, which everything imports. kafka-python's module paths, which only re-export, are
left out too.
"""

import re
from collections import defaultdict
from functools import cache
from pathlib import PurePosixPath

from tests.support.source_tree import (
    PACKAGES,
    ROOT,
    imports,
    sources,
    type_checking_lines,
)
from tests.test_tidy import KAFKA_PYTHON, LEAVES, RECORDS

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- imports: written by `make docs` -->", "<!-- end of imports -->"

Graph = dict[str, set[str]]


def node_of(module: str) -> str | None:
    """The node that a module belongs to, such as `broker_stub/log`; None if it is not drawn."""
    package, name, *_ = [*module.split("."), ""]
    if package not in PACKAGES or (package == "pyclient" and name in LEAVES | KAFKA_PYTHON):
        return None
    if module == "pyclient.__main__":
        return "pyclient/cli"  # runs it, and nothing else
    if package == "pyclient" and name in RECORDS:
        return "pyclient/records"
    if name and (ROOT / package / name).is_dir():
        return f"{package}/{name}"
    return f"{package}/{name}.py" if name in shared_modules(package) else package


@cache
def shared_modules(package: str) -> frozenset[str]:
    """The modules beside a package's folders that one of these folders imports."""
    found = set()
    for source in sources(package):
        _, *folders, _ = source.path.split("/")
        for module, _, is_lazy in imports(source):
            owner, name, *_ = [*module.split("."), ""]
            if owner == package and not is_lazy and folders and folders[0] != "testing":
                found.add(name)
    return frozenset(name for name in found if (ROOT / package / f"{name}.py").exists())


def import_graph() -> tuple[Graph, Graph]:
    """The nodes that each node imports when it is loaded, and those that it imports later."""
    at_once: Graph = defaultdict(set)
    later: Graph = defaultdict(set)
    for source in sources(*PACKAGES):
        own = node_of(str(PurePosixPath(source.path).with_suffix("")).replace("/", "."))
        if own is None:
            continue
        at_once[own]  # a node without imports is drawn too
        # Under TYPE_CHECKING, packages name what they import on first use; others only types.
        types = set() if source.path.endswith("__init__.py") else type_checking_lines(source)
        for module, line, is_lazy in imports(source):
            other = node_of(module)
            if other is not None and other != own and line not in types:
                (later if is_lazy else at_once)[own].add(other)
    return at_once, {node: found - at_once[node] for node, found in later.items()}


def reachable(graph: Graph, start: str) -> set[str]:
    """The nodes that a node imports, directly or not."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for other in graph.get(waiting.pop(), set()) - found:
            found.add(other)
            waiting.append(other)
    return found


def reduced(graph: Graph) -> Graph:
    """The graph without the arrows that follow from others; cycles keep all of theirs."""
    reach = {node: reachable(graph, node) for node in graph}

    def follows(node: str, other: str) -> bool:
        in_cycle = node in reach[other]
        return not in_cycle and any(
            other in reach[between] and between not in reach[other] and node not in reach[between]
            for between in graph[node] - {other}
        )

    return {
        node: {other for other in others if not follows(node, other)}
        for node, others in graph.items()
    }


def picture() -> str:
    """The graph in Mermaid."""
    at_once, later = import_graph()
    lines = ["flowchart TD"]
    for package in PACKAGES:
        lines.append(f"    subgraph {package}")
        lines += [
            f'        {_id(node)}["{_label(node)}"]'
            for node in sorted(at_once)
            if node.split("/")[0] == package
        ]
        lines.append("    end")
    arrows = reduced(at_once)
    for node in sorted(arrows):
        for other in sorted(arrows[node]):
            is_mutual = node in arrows.get(other, set())
            if not is_mutual:
                lines.append(f"    {_id(node)} --> {_id(other)}")
            elif node < other:
                lines.append(f"    {_id(node)} <--> {_id(other)}")
    lines += [
        f"    {_id(node)} -.-> {_id(other)}"
        for node in sorted(later)
        for other in sorted(later[node])
    ]
    return "\n".join(["```mermaid", *lines, "```"])


def _id(node: str) -> str:
    return re.sub(r"\W", "_", node)


def _label(node: str) -> str:
    package, _, folder = node.partition("/")
    return folder or f"{package}/*.py"


def with_picture(page: str) -> str:
    """The page with the picture of today's imports."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{picture()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_picture(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
