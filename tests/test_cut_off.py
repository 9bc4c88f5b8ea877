"""Launches that the time limit cut off, many of one arm or of both: each study has its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judgements
import stored
import test_calibrate
import test_energy
import test_matrices
import test_series
from paribus.core import Judgement, Launch, State, Study
from paribus.report.export import to_json
from paribus.report.stored import read_report
from stored import Script, Twist
from test_forged_verdicts import shown

MODULES = (judgements, test_calibrate, test_energy, test_matrices, test_series)
STUDIES: dict[str, Callable[[], Judgement]] = {
    **{
        one.__name__: one
        for one in (
            *(judgements.two_arms, judgements.three_arms, judgements.commands, judgements.large),
            *(judgements.monitor, judgements.sessions, judgements.builds, judgements.scaling),
        )
    },
    "calibration": lambda: test_calibrate.found(test_calibrate.QUIET, "cut"),
    "energy": lambda: test_energy.study(1.3),
    "matrices": test_matrices.study,
    "series": lambda: test_series.found({}),
}


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 2, 3, 14])
@pytest.mark.parametrize("arms", [(0,), (-1,), (0, -1)])
@pytest.mark.parametrize("name", STUDIES)
def test_it_is_judged_shown_written_and_read(
    name: str, arms: tuple[int, ...], every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of an arm's launches, or all: then the ratio is 0 or infinite, and null in JSON."""

    def judged(study: Study, script: Script, **more: Any) -> Judgement:
        cut = {study.arms[at].name for at in arms}

        def twist(launch: Launch, attempt: int) -> Twist:
            if launch.arm in cut and launch.block % every == 0:
                return Twist(state=State.TIMEOUT, error=judgements.LATE)
            return script.twist(launch, attempt)

        return stored.judged(study, replace(script, twist=twist), **more)

    for module in MODULES:
        monkeypatch.setattr(module, "judged", judged)
    # Not the study that is kept for other tests, nor is this one kept for them.
    made = getattr(STUDIES[name], "__wrapped__", STUDIES[name])()
    shown(made)
    file = tmp_path / "verdict.json"
    file.write_text(json.dumps(to_json(made), allow_nan=False))
    again = read_report(file)
    shown(again)
    for was, now in zip(made.headlines, again.headlines, strict=True):
        assert now.verdict.word is was.verdict.word
        if was.comparison and was.comparison.low < was.comparison.high and was.comparison.low:
            assert now.comparison == was.comparison
