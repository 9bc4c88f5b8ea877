"""A design is one file: no other asks for it, a study loads only its own, and one is soon added."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus import __version__
from paribus.designs import DESIGNS
from processes import ran
from studies import RANDOM, launches_in, paribus, write_study

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "paribus"
KEYS = {key for key, _ in DESIGNS}


def asks(source: str) -> Iterator[str]:
    """Yield where code reads a setting that names a design, or whether looks are those of few."""
    nodes = list(ast.walk(ast.parse(source)))
    settings = {"settings"}
    for node in nodes:
        if isinstance(node, ast.Assign):
            one = node.targets[0]
            targets = one.elts if isinstance(one, ast.Tuple) else [one]
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            for target, value in zip(targets, values, strict=False):
                if isinstance(value, ast.Attribute) and value.attr == "settings":
                    settings.add(ast.unparse(target))
    for node in nodes:
        if isinstance(node, ast.Attribute):
            of = ast.unparse(node.value)
            named = node.attr in KEYS and (of in settings or of.endswith(".settings"))
            if named or (node.attr == "few" and of.endswith("looks")):
                yield ast.unparse(node)


def test_no_other_file_asks_which_design_a_study_has() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {said}"
        for path in PACKAGE.rglob("*.py")
        if "designs" not in path.parts
        for said in asks(path.read_text())
    }
    assert found == set()


@pytest.mark.parametrize(
    "source",
    [
        "if plan.study.settings.monitor: pass",
        "s = judgement.study.settings\nprint(s.unit)",
        "a, s = 1, study.settings\nprint(s.layout)",
        "settings.design == 'few'",
        "x = plan.looks.few",
    ],
)
def test_a_question_is_seen(source: str) -> None:
    assert len(list(asks(source))) == 1
    assert not list(
        asks(
            source.replace("settings.", "design.")
            .replace("settings\n", "design\n")
            .replace("looks", "it")
        )
    )


def loaded(folder: Path, plan: str) -> set[str]:
    """Return the designs that are in memory after a whole study of the `plan`."""
    study = write_study(folder, script=RANDOM, plan=f"blocks = 8\n{plan}")
    code = (
        "import sys; from paribus.__main__ import main;"
        "assert main(['run', *sys.argv[1:], '--json']) == 0;"
        "print(*(m for m in sys.modules if m.startswith('paribus.designs.')), file=sys.stderr)"
    )
    words = [sys.executable, "-c", code, str(study), "--out", str(folder / "out")]
    done = ran(words, code=0)
    return {name.rpartition(".")[2] for name in done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("plan", "others"),
    [
        ('design = "standard"', set()),
        ("", {"auto"}),
        ('design = "few"', {"few", "auto"}),
        ('layout = "duet"', {"duet", "auto"}),
        ('unit = "session"\nlaunches = 1', {"sessions", "auto"}),
    ],
)
def test_a_study_loads_its_own_design_only(tmp_path: Path, plan: str, others: set[str]) -> None:
    """And `auto`, which is the default of study files and of which `few` takes its conditions."""
    assert loaded(tmp_path, plan) == {"standard", *others}


def test_a_design_is_one_file_and_one_line(tmp_path: Path) -> None:
    """That of CONTRIBUTING, in a copy of the tree: launched, stored, judged and shown."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    code, line = re.findall(
        r"^```python\n(.*?)^```", page[page.index("## A new design") :], re.M | re.S
    )
    copy = tmp_path / "paribus"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "native"))
    (copy / "VERSION").write_text(__version__)
    (copy / "designs" / "halfway.py").write_text(code)
    table = copy / "designs" / "__init__.py"
    before = '    ("design", "auto")'
    assert table.read_text().count(before) == 1
    table.write_text(table.read_text().replace(before, line + before))

    arms = "[arms.a]\n[arms.b]\nenv = { FIRST = '1', SECOND = '2' }\n"
    study = write_study(
        tmp_path, script=RANDOM, arms=arms, plan='design = "halfway"\nblocks = 9\nmargin = "9 %"'
    )
    out = tmp_path / "out"
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    words = [sys.executable, "-m", "paribus", "run", str(study), "--out", str(out)]
    done = ran(words, cwd=tmp_path, env=env, code=0)
    said = "Each block held one launch of a, with-FIRST, b."
    assert said in done.stdout
    assert said in (out / "report.html").read_text()
    verdict = json.loads((out / "verdict.json").read_text())
    assert verdict["design"] == said
    assert verdict["study"]["plan"]["design"] == "halfway"
    assert json.loads((out / "plan.json").read_text())["looks"]["at"] == [9]
    stages = [one.launch.arm for one in launches_in(out, samples=False)]
    assert {name: stages.count(name) for name in stages} == {"a": 10, "with-FIRST": 10, "b": 10}


def test_a_dry_run_of_a_study_without_an_end_reports_what_a_round_takes(tmp_path: Path) -> None:
    study = write_study(tmp_path, plan='monitor = true\nevery = "1 h"')
    done = paribus("run", study, "--dry-run", cwd=tmp_path, code=0)
    assert re.search(r"a round takes .*, a round every 1 h 00 min; the study", done.stdout)
