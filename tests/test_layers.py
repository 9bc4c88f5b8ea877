"""Imports point one way; heavy libraries are imported only where they are used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "paribus"

# Each layer may import those before it. Rooms that share a layer never import each other.
LAYERS = (
    {
        "errors",
        "units",
        "hosts",
        "nodeset",
        "model",
        "design",
        "prediction",
        "energy",
        "facts",
        "command",
        "commandline",
        "toml",
        "judgement",
        "reasons",
        "tally",
        "words",
        "__init__",
    },
    {"outside", "trust"},
    {"drafts", "inputs", "fields", "kept"},
    {"readers", "probes", "records", "stats", "tables", "application", "shipping"},
    {"benchmarks", "store", "topology"},
    {"plan", "audit"},
    {"platform", "judge"},
    {"bmc"},
    {"study", "compare"},
    {"doctor", "cluster"},
    {"report"},
    {"web"},
    {"cli"},
    {"__main__"},
)
# Private names that leave their room: these lists only shrink.
KNOWN: set[tuple[str, str]] = set()
TESTED = {
    # Caches that tests must empty: they take the compiler away, and change who is in a group.
    "paribus.platform.toolchain._compiler.cache_clear",
    "paribus.trust._own_group.cache_clear",
    # To forge a plan that is sealed.
    "paribus.plan._digest",
}
PRIVATE = re.compile(r"_(?!_)\w+")
LAZY_ONLY = {"numpy", "pyarrow", "rich", "vl_convert", "scipy"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """Return the room of a module: its folder below the package, or its own name."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


@cache
def parsed(path: Path) -> tuple[list[ast.stmt], list[ast.AST]]:
    """Return the statements of a file, and all its nodes."""
    tree = ast.parse(path.read_text())
    return tree.body, list(ast.walk(tree))


def imports(path: Path, *, top_only: bool = False) -> list[str]:
    """Return the dotted names that a module imports; type-checking blocks do not count."""
    body, every = parsed(path)
    nodes: list[ast.AST] = list(body) if top_only else every
    for node in every:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped = {id(child) for child in ast.walk(node)}
            nodes = [n for n in nodes if id(n) not in skipped]
    names = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def test_imports_point_one_way() -> None:
    """Each module imports from its own room and from layers before its own."""
    found = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in MODULES
        for name in imports(path)
        for parts in [name.split(".")]
        if parts[0] == "paribus" and len(parts) > 1 and parts[1] not in (room(path), "__version__")
        if layer(parts[1]) >= layer(room(path)) > 0
    }
    assert found == set()


def test_a_report_starts_nothing() -> None:
    """What is stored can be reported where nothing can be launched, without loading how."""
    code = (
        "import sys; import paribus.cli.report, paribus.cli.outputs, paribus.cli.compare;"
        "import paribus.report.terminal, paribus.report.html;"
        "print(*sorted(m for m in sys.modules"
        " if m.startswith(('paribus.platform', 'paribus.study'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


LOOKS = re.compile(r"sched_getaffinity|shutil\.which|gettempdir|\bcapture\(|[\"']/proc|/dev/shm")
"""How code looks at the machine that it happens to execute on."""


def test_only_the_platform_looks_at_a_machine() -> None:
    """An arm's machine may be another than ours; probes, doctor and topology are about one."""
    looks = {"platform", "probes", "doctor", "trust", "topology", "bmc"}
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in MODULES
        if room(path) not in looks and path.name != "record.py"
        for line in path.read_text().splitlines()
        if LOOKS.search(line)
    ]
    assert found == []


def test_heavy_libraries_are_imported_where_they_are_used() -> None:
    heavy = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in MODULES
        for name in imports(path, top_only=True)
        if name.split(".")[0] in LAZY_ONLY
    }
    assert heavy == set()


def test_a_layer_exists_for_every_room() -> None:
    known = set().union(*LAYERS)
    assert {room(path) for path in MODULES} <= known


def test_the_version_needs_nothing_heavy() -> None:
    code = (
        "import sys; from paribus.__main__ import main; main(['--version']);"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in"
        " {'numpy', 'rich', 'argparse', 'sqlite3', 'tomllib', 'vl_convert'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_files_and_functions_stay_short() -> None:
    """Files to 700 lines, functions to 60."""
    sizes = {str(p.relative_to(PACKAGE)): len(p.read_text().splitlines()) for p in MODULES}
    assert {name for name, lines in sizes.items() if lines > 700} == set()
    long_functions = {
        f"{path.relative_to(PACKAGE)}:{node.name}"
        for path in MODULES
        for node in parsed(path)[1]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= 60
    }
    assert long_functions == set()


def head_of(node: ast.expr) -> str:
    """Return the name that a chain of attributes begins with; empty where it is no chain."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def private_names(path: Path, own: str) -> set[str]:
    """Return the names with an underscore that a module takes from rooms other than `own`.

    Imported ones, and attributes of what it imports; of what is behind a private name its first.
    """
    _, nodes = parsed(path)
    named: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            named |= {a.asname: a.name for a in node.names if a.asname}
            named |= {n: n for a in node.names if not a.asname for n in a.name.split(".")[:1]}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    taken = set(named.values())
    for node in nodes:
        if isinstance(node, ast.Attribute) and head_of(node) in named:
            head, _, rest = ast.unparse(node).partition(".")
            taken |= {f"{named[head]}.{rest}"}
    private = set()
    for name in taken:
        parts = name.split(".")
        first = next((i for i, part in enumerate(parts) if PRIVATE.fullmatch(part)), None)
        if parts[0] == "paribus" and parts[1:2] != [own] and first is not None:
            private.add(".".join(parts[: first + 2]))
    # A module that is imported only to take names from it is not counted beside them.
    return {n for n in private if not any(other.startswith(f"{n}.") for other in private)}


def test_private_names_stay_in_their_room() -> None:
    taken = {
        (str(path.relative_to(PACKAGE)), name)
        for path in MODULES
        for name in private_names(path, room(path))
    }
    assert taken == KNOWN


@pytest.mark.parametrize("folder", ["tests", "tools"])
def test_tests_and_tools_use_what_is_public(folder: str) -> None:
    """Nobody can rely on a private name; what a test needs of a room is public, or listed."""
    taken = {
        name
        for path in sorted((PACKAGE.parents[1] / folder).rglob("*.py"))
        for name in private_names(path, folder)
    }
    assert taken == (TESTED if folder == "tests" else set())


def test_a_private_name_is_seen_however_it_is_taken(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import paribus.units\nfrom paribus import store as kept\n"
        "from paribus.benchmarks._tool import plain\nfrom paribus.study import plan\n"
        "from paribus import __version__\n"
        "def f():\n    return kept._PLACE, paribus.units._scaled(1), plan.read, plan._order.x\n"
    )
    assert private_names(module, "compare") == {
        "paribus.store._PLACE",
        "paribus.units._scaled",
        "paribus.benchmarks._tool.plain",
        "paribus.study.plan._order.x",
    }
    assert "paribus.study.plan._order.x" not in private_names(module, "study")
