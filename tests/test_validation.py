"""The deterministic checks of `./dev validate`, and the page that it writes.

Here with fewer studies, so that a stale page and not the seed is what makes a difference.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from processes import ended
from validation.checks import CHECKS
from validation.figures import Check, Figure
from validation.live import allowed
from validation.load import competing_load
from validation.page import FIGURES, PAGE

Row = tuple[str, str, str]
"""Check's number, figure, and bound."""


PLANNED = {planned.name: planned for planned in CHECKS}
BY_NAME = pytest.mark.parametrize("name", PLANNED)


@cache
def executed(name: str) -> Check:
    return PLANNED[name].check(PLANNED[name].test_size)


@cache
def rows() -> dict[Row, tuple[str, bool]]:
    """Return what was found, and whether it passed, by number, figure and bound."""
    every = json.loads(FIGURES.read_text())
    return {(str(number), what, limit): (found, ok) for number, what, found, limit, ok in every}


def numbers(shown: str) -> dict[str, float]:
    """Return the values of a figure as they are shown: "N1: 4.66 %, N2: 4.65 %"."""
    pattern = r"(?:^|, )(?:([^:]*): )?(\d+(?:\.\d+)?(?:e-?\d+)?)(?: %| blocks| ms)?(?=, |$)"
    return {name: float(value) for name, value in re.findall(pattern, shown)}


@pytest.mark.slow("name")
@BY_NAME
def test_figures_keep_their_bounds(name: str) -> None:
    for figure in executed(name).figures:
        assert figure.timed or figure.passed, f"{figure.what}: {figure.shown} [{figure.limit}]"


@pytest.mark.slow("name")
@BY_NAME
def test_the_page_says_what_the_functions_give(name: str) -> None:
    check = executed(name)
    assert check.number == PLANNED[name].number
    assert f"| {check.number} | {check.name} |" in PAGE.read_text()
    for figure in check.figures:
        shown, passed = rows()[str(check.number), figure.what, figure.limit]
        assert passed
        page, here = numbers(shown), numbers(figure.shown)
        assert page.keys() == here.keys()
        for key, value in here.items():
            assert figure.timed or abs(page[key] - value) <= apart(figure, value), (key, value)


def apart(figure: Figure, value: float) -> float:
    """Return how far apart two figures may be that differ only in the number of studies."""
    return {"%": 3.0, "blocks": 0.05 * value}.get(figure.unit, 1e-12)


def test_the_page_is_whole() -> None:
    text = PAGE.read_text()
    assert "**failed**" not in text
    assert all(f"| {what} |" in text and f"| {limit} |" in text for _, what, limit in rows())
    on_page = {number for number, _, _ in rows()}
    known = {str(planned.number) for planned in CHECKS}
    assert known <= on_page
    assert on_page - known in ({"14", "15"}, {"14", "15", "24", "25"})  # the live ones
    for heading in ("## What was done", "## Where and when", "## What is not proved"):
        assert heading in text


def test_a_figure_beyond_its_bound_fails_its_check() -> None:
    good = Figure("share", {"a": 0.05, "b": 0.0569}, "<=", 0.057)
    bad = Figure("share", {"a": 0.05, "b": 0.058}, "<=", 0.057)
    none = Figure("share", {}, "<=", 0.057)
    assert (good.passed, bad.passed, none.passed) == (True, False, False)
    assert not Check(1, "", "", (good, bad)).passed
    assert (bad.shown, bad.limit) == ("a: 5 %, b: 5.8 %", "≤ 5.7 %")
    assert numbers(bad.shown) == {"a": 5.0, "b": 5.8}
    assert numbers("9.31e-10") == {"": 9.31e-10}


@pytest.mark.parametrize(("intervals", "misses"), [(1, 1), (6, 2), (20, 4), (40, 5)])
def test_as_many_intervals_may_miss_as_chance_explains(intervals: int, misses: int) -> None:
    from scipy.stats import binom

    assert allowed(intervals) == misses
    assert binom.sf(misses, intervals, 0.05) < 0.015 <= binom.sf(misses - 1, intervals, 0.05)


def test_a_competing_load_keeps_every_core_busy_and_ends() -> None:
    with competing_load() as pids:
        assert len(pids) == os.cpu_count()
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert ended(list(pids))


def test_a_competing_load_ends_with_whoever_started_it() -> None:
    code = (
        "import time; from validation.load import competing_load as load\n"
        "with load() as pids: print(*pids, flush=True); time.sleep(60)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "tools")}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert pids
        process.kill()
    assert ended(pids)
