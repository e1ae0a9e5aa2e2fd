"""Checks the repository itself: import directions, sizes, docstrings, leftovers.

Most checks read source text and syntax trees; a few import a module or start an interpreter.
"""

import ast
import fnmatch
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.source_tree import (
    PACKAGES,
    ROOT,
    has_forward_references,
    imports,
    room,
    sources,
)

# --- who may import whom -------------------------------------------------------------------------

LEAVES = {
    "clock",
    "entropy",
    "error_codes",
    "errors",
    "interceptors",
    "metrics",
    "serialization",
    "timers",
    "types",
    "varint",
    "version",
}
RECORDS = {"records", "_twin", "_native", "_pure"}  # one room: the twins are behind `records`
CORE = LEAVES | RECORDS | {"config", "protocol", "metadata", "cluster"}
CLIENTS = {"producer", "consumer", "admin"}
KAFKA_PYTHON = {"codec", "coordinator", "future", "partitioner", "record", "serializer", "structs"}
FACES = {"aio", "compat", "cli", "perf", "__init__", "__main__"} | KAFKA_PYTHON

MAY_IMPORT: dict[str, set[str]] = {
    **dict.fromkeys(LEAVES, LEAVES),
    **dict.fromkeys(RECORDS, LEAVES | RECORDS),
    "config": LEAVES,
    "protocol": LEAVES,
    "metadata": LEAVES | {"protocol"},
    "cluster": LEAVES | {"metadata"},
    "net": CORE,
    **dict.fromkeys(CLIENTS, CORE | {"net"}),
    **dict.fromkeys(FACES, CORE | {"net"} | CLIENTS | FACES),
}
"""The rooms of pyclient, and the other rooms that each may import."""

BROKER_MAY_IMPORT = (
    (LEAVES - {"interceptors", "metrics", "serialization"})
    | RECORDS
    | {
        "protocol",
        "net",
    }
)
BROKER_SHARES = {"pyclient.config.definition", "pyclient.config.properties"}
# The public names, and what has no state.
SPARK_MAY_IMPORT = {"", "clock", "config", "entropy", "errors"}

# --- what stays in its room ----------------------------------------------------------------------

ROOMS_OF_MODULES: dict[str, tuple[str, ...]] = {
    "time": ("pyclient/clock.py",),
    "random": ("pyclient/entropy.py",),
    "secrets": ("pyclient/entropy.py",),
    "uuid": ("pyclient/entropy.py",),
    "socket": ("pyclient/net/", "broker_stub/net/"),
    "select": ("pyclient/net/", "broker_stub/net/"),
    "selectors": ("pyclient/net/", "broker_stub/net/"),
    "ssl": (
        "pyclient/net/",
        "pyclient/config/options.py",  # a type
        "broker_stub/net/",
        "broker_stub/running_broker.py",
    ),
}
CLOCK_CALLS = re.compile(r"\b(?:datetime|date)\.(?:now|utcnow|today)\(|\bos\.urandom\(")

RECEIVERS = ("self", "cls", "metaclass")  # typed by where they stand

CODECS = ("cramjam", "gzip", "isal", "lz4", "zstandard")

MAY_PRINT = (
    "pyclient/cli/",
    "pyclient/perf/",
    "pyclient/__main__.py",
    "broker_stub/__main__.py",
    "spark_connector/__main__.py",
    "spark_connector/job/runner.py",
    "spark_connector/query_progress.py",
)

# --- what users import ---------------------------------------------------------------------------

PUBLIC_MODULES = (
    "pyclient",
    "pyclient.admin",
    "pyclient.errors",
    "broker_stub",
    "broker_stub.testing",
    "broker_stub.testing.delivery_checker",
    "broker_stub.testing.faults",
    "broker_stub.testing.pytest_plugin",
    "broker_stub.testing.request_log",
    "broker_stub.testing.simulation",
    "spark_connector",
)
"""Docstrings are required on the names of these modules and their members, and nowhere else.

A rule for every function breeds docstrings that repeat the name.
"""

# --- sizes ---------------------------------------------------------------------------------------

LINES_MAX = 600
LONGER_FOR_A_REASON: dict[str, str] = {}

TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "broker_stub",
    "docs",
    "pyclient",
    "pyproject.toml",
    "setup.py",
    "spark_connector",
    "tests",
}
ALSO_AT_THE_TOP = {
    ".editorconfig",
    ".gitattributes",
    ".github",
    ".pre-commit-config.yaml",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "MANIFEST.in",
    "NOTICE",
    "PKG-INFO",  # in a source distribution, as the next one
    "SECURITY.md",
    "setup.cfg",
}


def ignored(name: str) -> bool:
    patterns = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    return name == ".git" or any(fnmatch.fnmatch(name, each.strip("/")) for each in patterns)


def text_files() -> Iterator[tuple[str, str]]:
    """All text files of the repository, so far as .gitignore leaves them in."""
    folders = [ROOT]
    while folders:
        for entry in sorted(folders.pop().iterdir()):
            if ignored(entry.name) or ignored(entry.relative_to(ROOT).as_posix()):
                continue
            if entry.is_dir():
                folders.append(entry)
                continue
            data = entry.read_bytes()
            if b"\0" not in data:
                yield entry.relative_to(ROOT).as_posix(), data.decode("utf-8", "replace")


def test_pyclient_imports_only_towards_its_leaves() -> None:
    wrong = []
    for source in sources("pyclient"):
        own = room(source.path.removesuffix(".py").replace("/", "."))
        assert own in MAY_IMPORT, f"{source.path}: which room is this? Say so in MAY_IMPORT"
        for module, line, lazy in imports(source):
            package = module.split(".")[0]
            if package == "pyclient":
                allowed = own == room(module) or room(module) in MAY_IMPORT[own]
                if not allowed and not (room(module) == "" and own in FACES):
                    wrong.append(f"{source.path}:{line} imports {module}")
            elif package in PACKAGES and not (own in ("cli", "perf") and lazy):
                wrong.append(f"{source.path}:{line} imports {module}")
    assert not wrong


def test_the_broker_imports_of_the_client_only_what_both_share() -> None:
    wrong = []
    for source in sources("broker_stub"):
        if source.path.startswith("broker_stub/testing/"):
            continue
        for module, line, _ in imports(source):
            shared = room(module) in BROKER_MAY_IMPORT or module in BROKER_SHARES
            if module.startswith("pyclient") and not shared:
                wrong.append(f"{source.path}:{line} imports {module}")
            if module.startswith("spark_connector"):
                wrong.append(f"{source.path}:{line} imports {module}")
    assert not wrong


def test_the_spark_connector_imports_only_public_names() -> None:
    wrong = [
        f"{source.path}:{line} imports {module}"
        for source in sources("spark_connector")
        for module, line, _ in imports(source)
        if module.split(".")[0] == "broker_stub"
        or (module.split(".")[0] == "pyclient" and room(module) not in SPARK_MAY_IMPORT)
    ]
    assert not wrong


def test_clocks_randomness_and_sockets_stay_in_their_rooms() -> None:
    wrong = []
    for source in sources(*PACKAGES):
        for module, line, _ in imports(source):
            rooms = ROOMS_OF_MODULES.get(module.split(".")[0])
            if rooms is not None and not source.path.startswith(rooms):
                wrong.append(f"{source.path}:{line} imports {module}")
        wrong += [
            f"{source.path} calls {call.group()}" for call in CLOCK_CALLS.finditer(source.text)
        ]
    assert not wrong


def test_what_is_synced_goes_through_one_door() -> None:
    # A simulated disk stands behind it, and would not hear of any other fsync.
    wrong = [
        source.path
        for source in sources("broker_stub")
        if re.search(r"\bos\.(?:fsync|fdatasync|sync)\b", source.text)
    ]
    assert wrong == ["broker_stub/log/files/open_files.py"]


def test_every_module_says_what_it_is_for() -> None:
    assert not [
        each.path for each in sources(*PACKAGES, "tests") if not ast.get_docstring(each.tree)
    ]


def public_names(module_name: str) -> Iterator[tuple[str, object]]:
    """The classes and functions of a module that users import, and the members of the classes."""
    module = importlib.import_module(module_name)
    for name in getattr(module, "__all__", [each for each in vars(module) if each[0] != "_"]):
        value = getattr(module, name)
        if not str(getattr(value, "__module__", "")).startswith(PACKAGES):
            continue
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{module_name}.{name}", value
        if inspect.isclass(value):
            for member, found in inspect.getmembers(value):
                is_code = inspect.isroutine(found) or isinstance(found, property)
                if is_code and member[0] != "_":
                    yield f"{module_name}.{name}.{member}", found


def test_every_public_name_has_a_docstring() -> None:
    names = [each for module in PUBLIC_MODULES for each in public_names(module)]
    assert len(names) > 300
    assert not [name for name, value in names if not inspect.getdoc(value)]


def test_every_public_function_is_typed() -> None:
    wrong = []
    for source in sources(*PACKAGES):
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            arguments = node.args
            given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            given += [each for each in (arguments.vararg, arguments.kwarg) if each]
            bare = [a.arg for a in given if a.annotation is None and a.arg not in RECEIVERS]
            if bare or node.returns is None:
                wrong.append(f"{source.path}:{node.lineno} {node.name}({', '.join(bare)})")
    assert not wrong


def test_every_request_has_its_response_in_the_same_file() -> None:
    wrong = []
    for source in sources("pyclient/protocol/messages"):
        apis = {
            node.name
            for node in source.tree.body
            if isinstance(node, ast.ClassDef) and "api_key" in {each.arg for each in node.keywords}
        }
        ends = {"Request": "Response", "Response": "Request"}
        for name in sorted(apis):
            end = "Request" if name.endswith("Request") else "Response"
            if name.removesuffix(end) + ends[end] not in apis:
                wrong.append(f"{source.path}: {name} is alone")
    assert not wrong


def test_every_handler_has_the_message_file_that_it_is_named_after() -> None:
    handlers = ROOT / "broker_stub" / "handlers"
    messages = {file.name for file in (ROOT / "pyclient/protocol/messages").glob("*.py")}
    named = {file.name for file in handlers.glob("*.py") if not file.name.startswith("_")}
    assert named <= messages


def test_annotations_are_postponed_only_for_forward_references() -> None:
    wrong = [
        source.path
        for source in sources(*PACKAGES, "tests")
        if "\nfrom __future__ import annotations\n" in source.text
        and not has_forward_references(source)
    ]
    assert not wrong


def test_every_logger_is_called_log() -> None:
    wrong = [
        f"{source.path}:{number} {line}"
        for source in sources(*PACKAGES)
        for number, line in enumerate(source.text.splitlines(), 1)
        if re.search(r"=.*getLogger\(", line) and line != "log = logging.getLogger(__name__)"
    ]
    assert not wrong


def test_section_dividers_have_one_form() -> None:
    divider = re.compile(r"(?:    # --- .{1,83} -+|# --- .{1,91} -+)")
    wrong = []
    for source in sources(*PACKAGES, "tests"):
        for number, line in enumerate(source.text.splitlines(), 1):
            if not re.match(r"\s*#(?:\s*[-=#*]{2,}|.*[-=#*]{4,}$)", line):
                continue
            if not divider.fullmatch(line) or len(line) != (95 if line[0] == " " else 99):
                wrong.append(f"{source.path}:{number} {line}")
    assert not wrong


def test_no_leftovers() -> None:
    # Written in pieces, so that this file is clean too.
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"))
    leftover = re.compile(rf"\b(?:{words})\b|NotImplemented" + r"Error|break" + r"point\(\)")
    wrong = []
    for path, text in text_files():
        if path.startswith(("LICENSE", "tests/golden/")):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if leftover.search(line):
                wrong.append(f"{path}:{number} {line.strip()[:80]}")
    assert not wrong


def test_only_the_command_line_prints() -> None:
    wrong = [
        f"{source.path}:{node.lineno}"
        for source in sources(*PACKAGES)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "print" and not source.path.startswith(MAY_PRINT)
    ]
    assert not wrong


def test_no_exception_is_caught_without_a_name() -> None:
    wrong = [
        f"{source.path}:{node.lineno}"
        for source in sources(*PACKAGES, "tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert not wrong


def test_no_file_names_a_package_registry() -> None:
    # Users have a registry of their own. In pieces, so that this file names none either.
    hosts = "|".join(
        (
            r"pyp" + r"i\.org",
            r"python" + r"hosted\.org",
            r"ana" + r"conda\.(?:org|com)",
            r"repo1?\.ma" + r"ven",
            r"npm" + r"js\.(?:org|com)",
            r"crates" + r"\.io",
            r"ruby" + r"gems\.org",
            r"sona" + r"type\.",
        )
    )
    found = [f"{path}: {m.group()}" for path, text in text_files() if (m := re.search(hosts, text))]
    assert not found


def test_no_file_has_grown_too_long() -> None:
    wrong = [
        f"{path} has {lines} lines: split it, or give the reason above"
        for path, text in text_files()
        if path.endswith((".py", ".pyx", ".pxi", ".pxd"))
        if (lines := text.count("\n")) > LINES_MAX and path not in LONGER_FOR_A_REASON
    ]
    assert not wrong


def test_reasons_for_long_files_are_given_only_where_needed() -> None:
    lengths = {path: text.count("\n") for path, text in text_files()}
    assert not [path for path in LONGER_FOR_A_REASON if lengths.get(path, 0) <= LINES_MAX]


def test_the_top_level_has_only_what_belongs_there() -> None:
    found = {entry.name for entry in ROOT.iterdir() if not ignored(entry.name)}
    assert found >= TOP_LEVEL
    assert found - TOP_LEVEL <= ALSO_AT_THE_TOP


def test_the_hooks_before_a_commit_run_the_lint_of_ci() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = makefile.partition("\nlint: setup\n")[2].partition("\n\n")[0]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: \.venv/bin/python (.+)", hooks)
    assert entries == [line.strip().removeprefix("$(RUN) ") for line in lint.splitlines()]


@pytest.mark.parametrize("client", ["producer", "consumer", "admin"])
def test_every_option_that_a_client_accepts_is_read_somewhere(client: str) -> None:
    definition = importlib.import_module(f"pyclient.config.{client}").DEFINITION
    texts = [s.text for s in sources("pyclient") if not s.path.startswith("pyclient/config/")]
    if not (ROOT / "pyclient" / client / f"{client}.py").exists():
        return  # a client that is not there yet has nothing to obey
    unread = [name for name in definition.keys if not any(f'"{name}"' in text for text in texts)]
    assert not unread


def loaded_by(program: str, heavy: tuple[str, ...], **environment: str) -> list[str]:
    """Which of the modules a fresh interpreter has after running the program."""
    program += f"; import sys; print(*(name for name in {heavy!r} if name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("implementation", ["native", "python"])
def test_importing_pyclient_loads_nothing_heavy(implementation: str) -> None:
    heavy = (*CODECS, "pyarrow", "ssl", "asyncio", "pyspark", "click", "rich")
    assert loaded_by("import pyclient", heavy, PYCLIENT_IMPL=implementation) == []


def test_importing_the_broker_loads_nothing_heavy() -> None:
    heavy = (*CODECS, "pyarrow", "ssl", "asyncio", "pytest")
    assert loaded_by("from broker_stub import Broker", heavy) == []


def test_the_fixtures_load_nothing_of_the_broker_until_they_are_used() -> None:
    ours = ("broker_stub.broker", "pyclient")
    assert loaded_by("import broker_stub.testing.pytest_plugin", ours) == []
