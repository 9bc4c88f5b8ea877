"""Imports point one way; heavy libraries are imported only where they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "paribus"

# Each layer may import those before it. Rooms that share a layer never import each other.
LAYERS = (
    {"errors", "units", "model", "judgement", "room", "drafts", "__init__"},
    {"readers", "launchers", "schedulers", "containers", "probes", "stats", "tables", "warden"},
    {"benchmarks"},
    {"host", "store"},
    {"toolchain", "journal"},
    {"audit"},
    {"study", "cluster"},
    {"compare", "doctor"},
    {"report"},
    {"web"},
    {"cli"},
    {"__main__"},
)
LAZY_ONLY = {"ahocorasick_rs", "numpy", "pyarrow", "rich", "vl_convert", "scipy"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """Return the room of a module: its folder below the package, or its own name."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def layer(name: str) -> int:
    return next(i for i, names in enumerate(LAYERS) if name in names)


def imports(path: Path, *, top_only: bool = False) -> list[str]:
    """Return the dotted names that a module imports; type-checking blocks do not count."""
    tree = ast.parse(path.read_text())
    nodes: list[ast.AST] = list(tree.body) if top_only else list(ast.walk(tree))
    for node in ast.walk(tree):
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


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    own = room(path)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "paribus" or len(parts) < 2 or parts[1] in (own, "__version__"):
            continue
        assert layer(parts[1]) < layer(own) or layer(own) == 0, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_private_names_stay_in_their_room(path: Path) -> None:
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "paribus" and parts[1:] and parts[1] != room(path):
            private = [part for part in parts[1:] if part.startswith("_")]
            assert private in ([], ["__version__"]), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    heavy = [name for name in imports(path, top_only=True) if name.split(".")[0] in LAZY_ONLY]
    assert heavy == []


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
    """Files under about 400 lines, functions under about 60: a longer one needs its reason here."""
    long_files = {
        str(p.relative_to(PACKAGE)) for p in MODULES if len(p.read_text().splitlines()) > 450
    }
    long_functions = {
        f"{path.relative_to(PACKAGE)}:{node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno > 66
    }
    # model.py holds every value that rooms exchange, and is read as a dictionary is.
    assert long_files <= {"model.py"}
    assert long_functions == set()
