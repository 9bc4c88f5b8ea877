"""`./dev lint` reads every shell script of Paribus, also those inside Python."""

from __future__ import annotations

from pathlib import Path

import lint_shell

ROOT = Path(__file__).parent.parent
MODULE = '''\
"""A module with two scripts."""

_SCRIPT = """\\
word=$1
sleep %d $word
"""
DATA = "sed is no script: echo $word"


def command(tries):
    text = _SCRIPT % tries
    return ("/bin/sh", "-c", text, "name"), ["sh", "-c", "ls *.txt | cat"]
'''


def test_scripts_are_found_where_they_are() -> None:
    found = list(lint_shell.scripts(ROOT))
    names = {str(one.path.relative_to(ROOT)) for one in found}
    assert {"dev", ".ci/run"} <= names
    assert {str(p.relative_to(ROOT)) for p in (ROOT / "src").rglob("*.sh")} <= names
    assert {
        "src/paribus/launch/launchers/serving.py",
        "src/paribus/tools/incast.py",
        "src/paribus/launch/asking.py",
    } <= names


def test_a_fault_inside_python_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    said = "".join(lint_shell.check(one) for one in lint_shell.embedded(path))
    assert {line.rsplit(":", 3)[0] for line in said.splitlines()} == {f"{path}:5", f"{path}:12"}
    assert "[SC2086]" in said


def test_every_script_is_clean() -> None:
    assert [line for one in lint_shell.scripts(ROOT) for line in lint_shell.check(one)] == []
