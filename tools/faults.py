"""Does a test notice a fault? Plants faults in a copy of Paribus, one at a time, and runs tests.

    python tools/faults.py --seed 1 --count 20 --into faults.json

Two faults are drawn in each room of src/paribus, and ten in seams: functions that another room
imports. A fault swaps an operator, changes a constant or removes a statement. The tests are those
of the modules that name the faulty one, or else its room (tests/drawing.py). `--tests FOLDER` takes
those of another commit, `--count N` the first N faults. A fault may change nothing; a person looks.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import drawing  # noqa: E402

PACKAGE = ROOT / "src" / "paribus"
PAIRS = ("==", "!="), ("<", ">="), (">", "<="), ("+", "-"), ("*", "/"), ("<<", ">>")
WORDS = ("and", "or"), ("is", "is not"), ("in", "not in")
SWAPPED = {a: b for pair in PAIRS + WORDS for a, b in (pair, pair[::-1])} | {"**": "*", "//": "*"}
OPERATOR = re.compile("|".join(re.escape(one) for one in sorted(SWAPPED, key=len, reverse=True)))
STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Continue)
LONGEST_S = 900


class Fault(NamedTuple):
    """What is wrong in `path`: `new` in place of the bytes from `begin` to `end`."""

    path: Path
    what: str
    begin: int
    end: int
    new: str


def main() -> int:
    """Plant the faults that were drawn; return 1 where one went unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int)
    parser.add_argument("--tests", type=Path, default=ROOT / "tests")
    parser.add_argument("--into", type=Path, default=Path(os.devnull))
    asked = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory(prefix="paribus-faults-", dir="/var/tmp") as folder:
        copy = copied(Path(folder) / "copy", asked.tests)
        for fault in drawn(asked.seed)[: asked.count]:
            line = fault.path.read_bytes()[: fault.begin].count(b"\n") + 1
            name = f"{fault.path.relative_to(PACKAGE)}:{line}: {fault.what}"
            found[name] = caught_by(fault, copy)
            print(f"{name} -> {found[name] or 'NOTHING'}", flush=True)
            asked.into.write_text(f"{json.dumps(found, indent=1)}\n")
    print(f"{sum(map(bool, found.values()))} of {len(found)} faults were caught")
    return int(not all(found.values()))


def copied(copy: Path, tests: Path) -> Path:
    """Return a copy of the tree with these tests, under git: what changes is seen."""
    ignored = shutil.ignore_patterns("__pycache__", ".*", "out", "tests")
    shutil.copytree(ROOT, copy, ignore=ignored, symlinks=True)
    shutil.copytree(tests, copy / "tests", symlinks=True)
    who = ("-c", "user.name=faults", "-c", "user.email=faults@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-qm", "as it is")):
        subprocess.run(["git", *words], cwd=copy, check=True)
    return copy


def drawn(seed: int) -> list[Fault]:
    """Return two faults of each room and ten of seams, in the order in which they are tried."""
    draw = random.Random(seed)
    rooms: dict[Path, list[Fault]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        rooms.setdefault(path.parent, []).extend(faults_of(path))
    chosen = [fault for _, every in sorted(rooms.items()) for fault in draw.sample(every, 2)]
    seams = [fault for path, name in sorted(seam_names()) for fault in faults_of(path, name)]
    chosen += draw.sample(seams, 10)
    draw.shuffle(chosen)
    return chosen


def seam_names() -> set[tuple[Path, str]]:
    """Return file and name of what one room imports from a module of another."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paribus."):
                there = PACKAGE.joinpath(*str(node.module).split(".")[1:]).with_suffix(".py")
                if there.exists() and there.parent != path.parent:
                    found |= {(there, alias.name) for alias in node.names}
    return found


def faults_of(path: Path, within: str = "") -> list[Fault]:
    """Return the faults that can be planted in the functions of a file, or in one of them."""
    code = path.read_bytes()
    starts = [0, *(match.end() for match in re.finditer(rb"\n", code))]
    return [
        Fault(path, f"{function.name}: {what}", begin, end, new)
        for function in ast.walk(ast.parse(code))
        if isinstance(function, ast.FunctionDef) and within in ("", function.name)
        for statement in function.body
        for node in ast.walk(statement)
        for what, begin, end, new in _changes(code, starts, node)
    ]


def _changes(code: bytes, starts: list[int], node: Any) -> Iterator[tuple[str, int, int, str]]:
    def place(part: Any) -> tuple[int, int]:
        begin = starts[part.lineno - 1] + part.col_offset
        return begin, starts[part.end_lineno - 1] + part.end_col_offset

    sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else sides
    sides = node.values if isinstance(node, ast.BoolOp) else sides
    for left, right in pairwise(sides):
        if one := OPERATOR.search(code[place(left)[1] : place(right)[0]].decode()):
            begin, new = place(left)[1] + one.start(), SWAPPED[one[0]]
            yield f"`{one[0]}` becomes `{new}`", begin, begin + len(one[0]), new
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        new = str(not node.value) if isinstance(node.value, bool) else repr(node.value + 1)
        yield f"`{node.value}` becomes `{new}`", *place(node), new
    says_only = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if isinstance(node, STATEMENTS) and not says_only:
        removed = code[slice(*place(node))].decode().splitlines()[0]
        yield f"without `{removed}`", *place(node), "pass"


def caught_by(fault: Fault, copy: Path) -> str:
    """Return the first test that fails with a fault, or "" where none does in LONGEST_S."""
    inside = str(fault.path.relative_to(ROOT))
    files = [name for name in drawing.concerned([inside], most=1000) if (copy / name).exists()]
    options = ["-x", "-q", "--reruns", "0", "-p", "no:cacheprovider", "-rfE", "--sample-seed", "1"]
    options += ["--since", "HEAD"] if (copy / "tests" / "drawing.py").exists() else []
    code = (copy / inside).read_bytes()
    (copy / inside).write_bytes(code[: fault.begin] + fault.new.encode() + code[fault.end :])
    words = [sys.executable, "-m", "pytest", *options, *(files or ["--version"])]
    env = {**os.environ, "PYTHONPATH": str(copy / "src")}
    try:
        done = subprocess.run(
            words, cwd=copy, env=env, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    finally:
        (copy / inside).write_bytes(code)
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", done.stdout, re.M)
    return failed[1] if failed else "pytest itself" if done.returncode in (2, 3, 4) else ""


if __name__ == "__main__":
    sys.exit(main())
