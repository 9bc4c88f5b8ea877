"""The five published studies at the size of one machine: what ran is kept and reported."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from paribus.core import format_ratio
from paribus.report.stored import read_report
from paribus.report.wording import interval_text
from studies import paribus

ROOT = Path(__file__).parent.parent
KEPT = sorted((ROOT / "artifacts").glob("*.zip"))
PAGE = (ROOT / "docs" / "recipes.md").read_text()


def test_there_is_one_of_each() -> None:
    assert len(KEPT) == 5
    assert all(f"(../artifacts/{one.name})" in PAGE for one in KEPT)


@pytest.mark.parametrize("file", KEPT, ids=lambda one: one.stem)
def test_it_is_verified_and_the_page_has_its_figures(file: Path, tmp_path: Path) -> None:
    paribus("verify", str(file), cwd=tmp_path, code=0)
    with zipfile.ZipFile(file) as archive:
        (tmp_path / "verdict.json").write_bytes(archive.read("verdict.json"))
    for head in read_report(tmp_path / "verdict.json").headlines:
        if head.decides and head.comparison and "predicted" not in head.benchmark:
            shown = f"{format_ratio(head.comparison.ratio)} {interval_text(head.comparison)}"
            assert shown in " ".join(PAGE.split()), f"{head.benchmark}: {shown}"
