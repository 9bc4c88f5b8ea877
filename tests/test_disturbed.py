"""Launches outside the noise gate: a note while they are few, a warning with advice beyond that."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from paribus.audit.gate import GATE
from paribus.core import Facts, Launch, Notice
from paribus.probes.load import BESIDE
from paribus.words.values import notice_fix, notice_text
from studies import stored, write_study

REASON = "processes waited for a core 77 % of the time, and others used 1.3 cores"


def judged(folder: Path, disturbed: int) -> Notice:
    """Return what a report says of disturbed launches, so many of 16."""

    def facts(launch: Launch) -> Facts:
        if launch.block == 0 or next(done) >= disturbed:
            return {}
        return {GATE: [REASON], BESIDE: ["python 37%", *(["make -j 11%"] * (launch.block < 3))]}

    done = itertools.count()
    path = write_study(folder, plan="blocks = 8")
    found = stored(path, folder / "x.study", facts)
    return next(n for n in found.notices if n.name == "disturbed launches")


@pytest.mark.parametrize(("disturbed", "level"), [(1, "note"), (3, "note"), (4, "warning")])
def test_more_than_a_fifth_is_a_warning(tmp_path: Path, disturbed: int, level: str) -> None:
    notice = judged(tmp_path, disturbed)
    assert notice.level == level
    assert bool(notice_fix(notice)) == (level == "warning")


def test_the_warning_names_what_was_busy_and_what_to_do(tmp_path: Path) -> None:
    notice = judged(tmp_path, 13)
    assert "13 of 16 launches are outside the noise gate, and count as well." in notice_text(notice)
    assert REASON in notice_text(notice)
    assert "Busy beside them: python (in 13), make -j (in 4)." in notice_text(notice)
    assert "reserve the nodes" in notice_fix(notice)
    assert "`paribus doctor`" in notice_fix(notice)
