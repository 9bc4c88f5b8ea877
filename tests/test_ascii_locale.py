"""Paths that a locale of plain ASCII has no letters for: every verb takes them, and says them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from studies import paribus, write_study

ASCII: dict[str, Any] = {
    **dict.fromkeys(("PYTHONUTF8", "PYTHONCOERCECLOCALE"), "0"),
    "LC_ALL": "C",
    "PYTHONIOENCODING": "",
}
LOGS = Path(__file__).parent / "fixtures" / "osu_latency"


@pytest.mark.slow
def test_a_study_is_measured_reported_and_audited(tmp_path: Path) -> None:
    folder = tmp_path / "größe-測定"
    folder.mkdir()
    arms = '[arms.plain]\n[arms.slow]\nenv = { FACTOR = "slow" }\n'
    script = """if [ "$FACTOR" = slow ]; then echo 3.5; else echo 2.50013; fi"""
    study = write_study(folder, script=script, arms=arms)
    study.write_text(study.read_text().replace("Which?", "Größe?"))
    out = folder / "ergebnis-ä"
    done = paribus("run", study, "--out", out, cwd=folder, **ASCII)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "slow is slower in steady" in done.stdout
    strict = paribus(
        "report", "ergebnis-ä", cwd=folder, PYTHONIOENCODING="ascii", LC_ALL="C", code=0
    )
    assert r"ergebnis-\xe4/report.html" in strict.stdout
    again = paribus("report", out, "--to", "svg", cwd=folder, **ASCII)
    assert (again.returncode, "Traceback" in again.stderr) == (0, False), again.stderr
    paribus("report", out, "--json", cwd=folder, **ASCII, code=0)
    for what in (study, out):
        audited = paribus("audit", what, cwd=folder, **ASCII)
        assert (audited.returncode, "Traceback" in audited.stderr) == (0, False), audited.stderr
    assert "Größe?" in (out / "report.html").read_text(encoding="utf-8")


def test_logs_are_compared(tmp_path: Path) -> None:
    for arm, stem in (("früher", "shm"), ("später", "tcp")):
        (tmp_path / arm).mkdir()
        shutil.copy(LOGS / f"good-{stem}.out", tmp_path / arm / "größe.out")
    done = paribus("compare", "früher", "später", "--out", "vergleich-ä", cwd=tmp_path, **ASCII)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 3)
    assert "osu_latency" in done.stdout


@pytest.mark.parametrize("verb", ["run", "compare"])
def test_a_path_that_is_not_there_is_said(tmp_path: Path, verb: str) -> None:
    done = paribus(verb, "größe.toml", cwd=tmp_path, **ASCII, code=2)
    assert done.stderr.startswith("paribus: gr")
    assert "Traceback" not in done.stderr
