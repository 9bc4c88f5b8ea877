"""Lenses: one is added as a package and a line; none is loaded that nothing needs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import judgements
from judgements import printed
from paribus.core import LENSES, Named, names_of
from paribus.lenses import ranges, steadiness
from paribus.plan import freeze, read_plan, write_plan
from paribus.report.export import to_json
from paribus.report.figures import all_figures
from paribus.report.html import page
from paribus.report.stored import read_report
from paribus.stats import band
from paribus.studyfile.load import load_study
from processes import ran
from stored import judged

ROOT = Path(__file__).parent.parent
CENTRAL = (
    *(f"report/{name}.py" for name in ("export", "stored", "terminal", "html", "figures")),
    *("judge/conclude.py", "studyfile/load.py", "core/judgement.py"),
)
STUDY = """question = "?"
factor = "transport"
extremes = 1
[arms.shm]
transport = "shm"
[arms.tcp]
transport = "tcp"
[[benchmarks]]
name = "latency"
"""


@pytest.fixture
def _extremes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the lens of tests/extremes: this line is all."""
    monkeypatch.setitem(LENSES, "extremes", Named("extremes.lens", study=("extremes",)))


@pytest.mark.usefixtures("_extremes")
def test_a_lens_is_one_package_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    loaded = load_study(tmp_path / "study.toml")
    assert loaded.asked == {"extremes": 1}
    write_plan(freeze(loaded, {}), tmp_path)
    assert read_plan(tmp_path).study == replace(loaded, settings=read_plan(tmp_path).study.settings)
    asked = judgements.study(("latency", "barrier"), asked=loaded.asked)
    judgement = judged(asked, judgements.SCRIPT, name="extremes", facts=judgements.FACTS)
    rows = judgement.lenses["extremes"]
    assert {(one.benchmark, one.arm) for one in rows} == {
        (benchmark, arm) for benchmark in ("latency", "barrier") for arm in ("host", "bridged")
    }
    assert f"host: {rows[0].text}" in printed(judgement)
    assert f"<li>host: {rows[0].text}</li>" in page(judgement, "")
    assert "extremes" in dict(all_figures(judgement))
    table = to_json(judgement)
    assert table["extremes"][0]["wall_s"] == rows[0].wall_s
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    again = read_report(tmp_path / "verdict.json")
    assert again.lenses["extremes"] == rows
    assert again.study.asked == loaded.asked


@pytest.mark.usefixtures("_extremes")
def test_a_study_that_does_not_ask_has_nothing_of_it() -> None:
    judgement = judged(judgements.study(("barrier",)), judgements.SCRIPT, name="none")
    assert "extremes" not in judgement.lenses
    assert "extremes" not in to_json(judgement)


@pytest.mark.parametrize("path", CENTRAL)
def test_central_files_name_no_lens(path: str) -> None:
    text = (ROOT / "src" / "paribus" / path).read_text()
    assert "paribus.lenses" not in text
    named = (f'"{key}"' for name, one in LENSES.items() for key in (name, *one.keys, *one.study))
    assert [word for word in named if word in text] == []


def test_a_lens_that_nothing_needs_is_not_loaded(tmp_path: Path) -> None:
    """Of two commands, compared to the end, on a machine that may count energy."""
    code = (
        "import sys; from paribus.__main__ import main;"
        "main(['ab', '--a', 'true', '--b', 'true', '--budget', '0.1 s', '--out', 'out']);"
        "print('loaded', *sorted(m for m in sys.modules if m.startswith('paribus.lenses.')))"
    )
    done = ran([sys.executable, "-c", code], cwd=tmp_path, code=0)
    (loaded,) = (line for line in done.stdout.splitlines() if line.startswith("loaded"))
    assert (tmp_path / "out" / "verdict.json").exists(), done.stderr
    assert set(loaded.split()[1:]) <= {"paribus.lenses.energy", "paribus.lenses.steadiness"}


def test_a_lens_is_asked_once_it_can_have_something_to_say() -> None:
    assert LENSES["ranges"].blocks == band.LEAST_BLOCKS
    assert LENSES["ranges"].points == ranges.LEAST_SIZES
    assert LENSES["steadiness"].blocks == steadiness.LEAST_BLOCKS


def test_keys_of_study_files_belong_to_one_lens() -> None:
    for part in ("study", "arm"):
        names = names_of(part)
        assert len(names) == len(set(names))
