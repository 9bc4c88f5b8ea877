"""What earlier versions wrote is read: a study of each, as its own code left it (tests/data)."""

from __future__ import annotations

import io
import json
import lzma
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import jsonschema
import pyarrow.parquet
import pytest
from rich.console import Console

from paribus.plan import frozen
from paribus.report.html import write_html
from paribus.report.short import print_short
from paribus.report.stored import read_report
from paribus.store.reading import SCHEMA_VERSION, UNSEALED_VERSION
from processes import needs, ran
from studies import paribus

ROOT = Path(__file__).parent.parent
VERSIONS = ROOT / "tests" / "data" / "versions"
FORMATS = {"schema-3": UNSEALED_VERSION, "schema-4": SCHEMA_VERSION, "0.1.0": SCHEMA_VERSION}


def stored(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(VERSIONS / f"{name}.zip") as archive:
        archive.extractall(folder / name)
    return folder / name


def headline(verdict: dict[str, Any]) -> tuple[str, dict[str, float]]:
    (head,) = verdict["headlines"]
    return head["verdict"]["word"], head["comparison"]


def test_there_is_a_study_of_each_format(tmp_path: Path) -> None:
    assert {path.stem for path in VERSIONS.glob("*.zip")} == set(FORMATS)
    assert {*FORMATS.values()} == {UNSEALED_VERSION, SCHEMA_VERSION}
    for name, version in FORMATS.items():
        with closing(sqlite3.connect(stored(name, tmp_path) / "launches.db")) as db:
            assert db.execute("PRAGMA user_version").fetchone() == (version,)


@pytest.mark.parametrize("name", FORMATS)
def test_its_report_has_the_stored_verdict(name: str, tmp_path: Path) -> None:
    study = stored(name, tmp_path)
    before = json.loads((study / "verdict.json").read_text())
    done = paribus("report", str(study), "--json", cwd=tmp_path, code=0)
    after = json.loads(done.stdout)
    assert headline(after) == headline(before)
    assert after["schema"] == before["schema"] == "paribus.verdict/1"
    schema = json.loads((ROOT / "docs" / "verdict-schema.json").read_text())
    jsonschema.validate(after, schema)


def test_its_files_are_read_without_paribus(tmp_path: Path) -> None:
    """With json and pyarrow alone: the figures of the launches are those that the verdict names."""
    study = stored("0.1.0", tmp_path)
    assert paribus("report", str(study), cwd=tmp_path).returncode == 0
    (head,) = json.loads((study / "verdict.json").read_text())["headlines"]
    rows = pyarrow.parquet.read_table(study / "values.parquet").to_pylist()
    for arm, key in (("shm", "reference_value"), ("tcp", "arm_value")):
        mine = [r for r in rows if r["arm"] == arm and r["metric"] == head["metric"]["name"]]
        assert {r["unit"] for r in mine} == {head["metric"]["unit"]}
        assert len({r["block"] for r in mine}) == len(mine) == head[key]["launches"] == 8
        assert median(r["value"] for r in mine) == pytest.approx(head[key]["median"])


EARLIER: dict[str, dict[str, Any]] = json.loads(
    lzma.decompress((VERSIONS / "verdicts.json.xz").read_bytes())
)
"""Verdicts as written on 28 Nov 2026, before 0.2: nearly every notice, and half of the codes."""


@pytest.mark.parametrize("name", EARLIER)
def test_a_verdict_with_any_notice_is_read_and_printed(name: str, tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(json.dumps(EARLIER[name]))
    found = read_report(path)
    assert [one.name for one in found.notices] == [one["name"] for one in EARLIER[name]["notices"]]
    print_short(found, Console(file=io.StringIO(), width=80))
    write_html(found, tmp_path / "report.html")


def test_the_verdict_of_the_release_is_read_alone(tmp_path: Path) -> None:
    study = stored("0.1.0", tmp_path)
    alone = tmp_path / "alone"
    alone.mkdir()
    (study / "verdict.json").rename(alone / "verdict.json")
    before = headline(json.loads((alone / "verdict.json").read_text()))
    done = paribus("report", str(alone), "--json", cwd=tmp_path, code=0)
    assert headline(json.loads(done.stdout)) == before


def test_a_packed_study_of_the_release_is_verified(tmp_path: Path) -> None:
    study = stored("0.1.0", tmp_path)
    assert paribus("pack", str(study), "--out", "old.zip", cwd=tmp_path).returncode == 0
    done = paribus("verify", "old.zip", cwd=tmp_path, code=0)
    assert "same figures as stored" in done.stdout


def test_plans_of_the_commits_that_renamed_them_are_read(tmp_path: Path) -> None:
    study = stored("0.1.0", tmp_path)
    table = json.loads((study / "plan.json").read_text())
    del table["sha256"]
    table["schema"] = frozen.RENAMED
    seal = frozen._digest(table)  # as it would have been sealed
    (study / "plan.json").write_text(json.dumps({**table, "sha256": seal}))
    assert frozen.read_plan(study).study.factor == "transport"


def test_r_reads_the_csv_as_its_page_says(tmp_path: Path) -> None:
    """The block of docs/report.md, less its last line, which takes a package that Debian lacks."""
    needs("Rscript")
    study = stored("0.1.0", tmp_path)
    assert paribus("report", str(study), cwd=tmp_path).returncode == 0
    page = (ROOT / "docs" / "report.md").read_text()
    block = page.split("```r\n")[1].split("```")[0].replace("container-network.study", "0.1.0")
    read, median_of, *parquet = [line for line in block.splitlines() if line]
    assert [line.split("::")[0] for line in parquet] == ["values <- nanoparquet"]
    script = f"{read}\nprint({median_of})"
    done = ran(["Rscript", "-e", script], cwd=tmp_path, code=0)
    (head,) = json.loads((study / "verdict.json").read_text())["headlines"]
    for arm, key in (("shm", "reference_value"), ("tcp", "arm_value")):
        (row,) = [line for line in done.stdout.splitlines() if f" {arm} " in line]
        assert float(row.split()[-1]) == pytest.approx(head[key]["median"], rel=1e-5)
