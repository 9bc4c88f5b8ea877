"""Calibration: the reference against itself, what can be shown here, and what that costs."""

from __future__ import annotations

import io
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgements
from paribus.core import (
    Address,
    Arm,
    Hosts,
    Judgement,
    Launch,
    Scheduler,
    Settings,
    StoreError,
    StudyError,
    Word,
    failing,
    unjudged,
)
from paribus.designs import design_of
from paribus.designs.calibrate import calibrated
from paribus.lenses.calibration import Calibration
from paribus.plan import frozen as plans
from paribus.plan import read_plan
from paribus.report.export import to_json
from paribus.report.html import page
from paribus.report.printing import console_on
from paribus.report.short import print_short
from paribus.report.stored import read_report
from paribus.report.terminal import print_report
from paribus.stats.estimate import compare
from paribus.stats.looks import any_look_p, schedule
from paribus.stats.verdict import judge, least_difference
from paribus.studyfile.load import load_study
from stored import Script, Twist, judged, nodes
from studies import launches_in, paribus, write_study
from test_report_export import faults

LABELS = ("latency", "bandwidth", "barrier")


def asked(labels: tuple[str, ...] = LABELS, **settings: Any) -> Any:
    of = Settings(**{"seed": 11, "blocks": 60, **settings})
    return calibrated(judgements.study(labels, settings=of))


def found(
    script: Script, name: str, labels: tuple[str, ...] = LABELS, **settings: Any
) -> Judgement:
    both = [nodes(arm, judgements.MACHINE, judgements.HOST) for arm in ("host", "host-again")]
    return judged(asked(labels, **settings), script, name=name, facts=both)


def rows_of(judgement: Judgement) -> Calibration:
    rows = judgement.lenses["calibration"]
    assert isinstance(rows, Calibration)
    return rows


QUIET = Script({label: {} for label in LABELS}, usual=0.01)


# --- the design ------------------------------------------------------------------------------


def test_the_reference_is_launched_twice_under_the_plan_of_the_study() -> None:
    before = judgements.study(LABELS, settings=Settings(seed=3, margin=0.01, budget_s=600.0))
    study = calibrated(before)
    assert [arm.name for arm in study.arms] == ["host", "host-again"]
    assert replace(study.arms[1], name="host") == study.arms[0] == before.arms[0]
    assert study.benchmarks == before.benchmarks
    assert replace(study.settings, design="standard") == before.settings
    plan = plans.freeze(study, {})
    assert plan.looks.at == (18, 27, 40, 60)
    # No less exact than the error of the study over its looks.
    assert any_look_p(plan.looks.level, plan.looks.at) <= 0.05
    assert any_look_p(plan.looks.level * 1.02, plan.looks.at) > 0.05


def test_short_studies_and_sessions_have_looks_too() -> None:
    assert design_of(asked(blocks=12)).looks().at == (12,)
    sessions = design_of(asked(unit="session", blocks=27))
    assert sessions.looks().at == (18, 27)
    assert sessions.unit == "session"
    assert sessions.sentence().startswith("Both arms are the reference of a study. ")


def test_arms_that_a_scheduler_lends_nodes_to_have_the_same() -> None:
    lent = Arm("lent", hosts=Hosts(scheduler=Scheduler("slurm", 2, 60.0)))
    assert calibrated(judgements.study(LABELS, (lent, lent))).settings.same_nodes
    own = Arm("own", hosts=Hosts(addresses=(Address("n1", "n1"),)))
    assert not calibrated(judgements.study(LABELS, (own, own))).settings.same_nodes


def test_what_cannot_be_calibrated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="has an end"):
        asked(monitor=True)
    path = write_study(tmp_path, plan='design = "calibrate"')
    with pytest.raises(StudyError, match=r"paribus calibrate"):
        load_study(path)


# --- what it finds ---------------------------------------------------------------------------


def test_equal_arms_have_a_table_and_a_price(tmp_path: Path) -> None:
    judgement = found(QUIET, "quiet")
    rows = rows_of(judgement)
    assert (rows.different, rows.blocks, rows.pairs, rows.sizes) == ((), (8, 18, 60), 18, 21)
    assert "No difference is seen where there is none (3 benchmarks, 21 cases" in judgement.sentence
    assert [(one.benchmark, one.sizes) for one in rows.least] == [
        *(("latency", one) for one in ("", "up to 1 KiB", "between", "from 64 KiB")),
        *(("bandwidth", one) for one in ("", "up to 1 KiB", "between", "from 64 KiB")),
        ("barrier", ""),
    ]
    for one in rows.least:
        # Two launches of 1 %: their log ratios scatter by 1.4 %, and by no more than a half less.
        for n, share in zip(rows.blocks, one.shares, strict=True):
            scatter = math.log1p(share) / math.sqrt(18 / (n - 4))
            assert 0.007 < scatter < 0.022
    # A launch takes one second, in two arms of three benchmarks, and the warm-up once more.
    assert rows.seconds == pytest.approx([6 * (n + 1) for n in rows.blocks], rel=0.05)
    table = to_json(judgement)
    assert faults(table) == []
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    assert read_report(tmp_path / "verdict.json").lenses["calibration"] == rows
    paribus("report", "verdict.json", "--fail-on", "difference", cwd=tmp_path, code=0)
    assert "Least difference that can be shown" in page(judgement, "")


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_a_screen(width: int) -> None:
    file = io.StringIO()
    print_short(found(QUIET, "quiet"), console_on(file, width))
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    (head,) = (line for line in lines if line.startswith("benchmark  sizes"))
    assert " ".join(head.split()) == "benchmark sizes 8 blocks 18 blocks 60 blocks margin"
    (price,) = (line for line in lines if line.startswith("takes"))
    assert price.split()[1:] == ["54", "s", "1", "min", "54", "s", "6", "min", "06", "s"]


def test_what_is_above_the_margin_is_marked() -> None:
    noisy = replace(QUIET, scatter={"latency": 0.05})
    file = io.StringIO()
    judgement = found(noisy, "noisy", margin=0.02)
    print_report(judgement, console_on(file, 200))
    rows = {one.benchmark: one for one in rows_of(judgement).least if not one.sizes}
    assert rows["latency"].shares[-1] > 0.02 > rows["barrier"].shares[-1]
    latency, barrier = (
        next(
            line
            for line in file.getvalue().splitlines()
            if line.startswith(f"{name}  ") and "all" in line
        )
        for name in ("latency", "barrier")
    )
    assert latency.count("!") == 3
    assert barrier.count("!") < 3
    assert "!: above the margin" in file.getvalue()
    file = io.StringIO()
    print_report(found(noisy, "noisy", margin=0.5), console_on(file, 200))
    assert "8 to 9 of 10 studies" in file.getvalue()
    assert "!: above" not in file.getvalue()  # a legend of nothing


def _second(launch: Launch, attempt: int) -> Twist:
    """Return a launch that takes 20 % longer as the second of its block: by an even number."""
    return Twist(times=1.2 if launch.number % 2 == 0 else 1.0)


def _switches(launch: Launch, attempt: int) -> Twist:
    draw = random.Random(f"states {launch.number}")
    return Twist(times=1.5 if draw.random() < 0.5 else 1.0)


def _creeps(launch: Launch, attempt: int) -> Twist:
    return Twist(times=1.004**launch.number)


@pytest.mark.parametrize(
    ("twist", "cause"),
    [(_second, "order"), (_switches, "two states"), (_creeps, "drift"), (None, "none of order")],
    ids=["order", "two states", "drift", "none"],
)
def test_a_difference_is_named_with_what_may_cause_it(
    twist: Any, cause: str, tmp_path: Path
) -> None:
    """An arm that differs from itself, by 40 %, with what the judge sees in the same launches."""
    script = replace(QUIET, ratios={"latency": {"host-again": 1.4}}, growth=0.0, machine=0.0)
    script = replace(script, twist=twist) if twist else script
    judgement = found(script, f"differs {cause}", ("latency",))
    rows = rows_of(judgement)
    assert rows.least == ()
    assert {one.benchmark for one in rows.different} == {"latency"}
    assert all(one.low > 1 for one in rows.different)
    said = "This machine shows a difference where there is none, in latency: "
    assert cause in judgement.sentence.partition(said)[2]
    assert ("none of" in cause) == (rows.different[0].causes == ())
    table = to_json(judgement)
    assert faults(table) == []
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    done = paribus("report", "verdict.json", "--fail-on", "difference", cwd=tmp_path, code=1)
    assert "--fail-on difference: latency: 1." in done.stderr
    file = io.StringIO()
    print_report(judgement, console_on(file, 200))
    assert "Differences between an arm and itself" in file.getvalue()
    assert "Least difference" not in file.getvalue()


def test_other_studies_have_no_such_rule() -> None:
    judgement = judgements.two_arms()
    assert "calibration" not in judgement.lenses
    assert [rule for rule, _ in unjudged(judgement, ["difference"])] == ["difference"]
    assert list(failing(judgement, ["difference"])) == []


@pytest.mark.slow
def test_equal_arms_rarely_differ() -> None:
    """One error of 5 % over three benchmarks and 21 cases, at whichever look each of them ends."""
    studies = 120
    several = (
        judged(
            replace(asked(), settings=Settings(seed=seed, design="calibrate")), QUIET, name="equal"
        )
        for seed in range(studies)
    )
    wrong = sum(bool(rows_of(one).different) for one in several)
    assert wrong / studies <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / studies)


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "least"), [(8, 0.8), (18, 0.88), (60, 0.9)])
def test_what_lies_so_far_from_the_margin_is_decided(blocks: int, least: float) -> None:
    """Of studies in normal noise that end after so many blocks, at their level of each look."""
    rng = np.random.default_rng(blocks)
    level = schedule(60).confidence
    far = math.log1p(least_difference(list(rng.normal(0, 0.02, 1000)), blocks))
    margin = math.expm1(far)
    equal = slower = 0
    for _ in range(1000):
        noise = rng.normal(0, 0.02, blocks)
        terms: dict[str, Any] = {"better": "lower", "margin": margin, "last": True}
        equal += judge(compare(list(noise), level), **terms).word is Word.EQUIVALENT
        slower += judge(compare(list(noise + 2 * far), level), **terms).word is Word.SLOWER
    assert equal / 1000 >= least - 0.03
    assert slower / 1000 >= least


# --- the verb --------------------------------------------------------------------------------

SCRIPT = "echo $((1000 + PARIBUS_SEED % 17))"


def test_a_study_is_calibrated_and_says_what_it_cannot_show(tmp_path: Path) -> None:
    """A program whose figures vary by half a percent, against margins of 0.1 and 5 %."""
    path = write_study(tmp_path, script=SCRIPT, plan='margin = "0.1 %"')
    done = paribus("calibrate", path, cwd=tmp_path, code=0)
    out = tmp_path / f"{path.stem}-calibration.study"
    assert [arm.name for arm in read_plan(out).study.arms] == ["a", "a-again"]
    assert {one.launch.arm for one in launches_in(out, samples=False)} == {"a", "a-again"}
    assert "No difference is seen where there is none (1 benchmark, 1 case" in " ".join(
        done.stdout.split()
    )
    dry = ("--dry-run", "--no-pilot", "--calibration", out)
    said = paribus("run", path, *dry, cwd=tmp_path, code=0)
    assert "calibration: the least difference that 60 blocks can show in" in said.stderr
    assert "(margin 0.1 %)" in said.stderr
    path.write_text(path.read_text().replace("0.1 %", "5 %"))
    said = paribus("run", path, *dry, cwd=tmp_path)
    assert "calibration:" not in said.stderr
    path.write_text(
        path.read_text().replace("[arms.a]", '[arms.a]\nenv = { OMP_NUM_THREADS = "1" }')
    )
    said = paribus("run", path, *dry, cwd=tmp_path, code=2)
    assert "is of another reference than a" in said.stderr


def test_a_machine_that_differs_from_itself_ends_with_1(tmp_path: Path) -> None:
    """A program that is slower by the seeds of the launches of the second arm."""
    slow = f"$(grep -cx $PARIBUS_SEED {tmp_path / 'slow'})"
    script = f"echo $((1000 + PARIBUS_SEED % 17 + 100 * {slow}))"
    path = write_study(tmp_path, script=script)
    plan = plans.freeze(calibrated(load_study(path)), {})
    again = (str(one.seed) for one in plan.launches if one.arm == "a-again")
    (tmp_path / "slow").write_text("\n".join(again))
    done = paribus("calibrate", path, "--out", "out", cwd=tmp_path, code=1)
    assert "This machine shows a difference where there is none" in " ".join(done.stdout.split())
    said = paribus("run", path, "--dry-run", "--no-pilot", "--calibration", "out", cwd=tmp_path)
    assert "calibration: This machine shows a difference where there is none" in said.stderr


def test_a_calibration_that_is_killed_goes_on(tmp_path: Path) -> None:
    path = write_study(tmp_path, script=SCRIPT, plan="budget = '0.1 s'")
    paribus("calibrate", path, "--out", "out", cwd=tmp_path)
    frozen = read_plan(tmp_path / "out")
    for verb in ("calibrate", "run"):
        paribus(verb, path, "--out", "out", "--resume", cwd=tmp_path, code=0)
        assert read_plan(tmp_path / "out") == frozen


@pytest.mark.parametrize("asked_", [{}, {"arms": 0}, {"arms": "2"}, {"arms": 10**9}, [2]])
def test_a_forged_plan_is_no_plan(asked_: Any, tmp_path: Path) -> None:
    study = asked(("barrier",))
    forged = plans.freeze(study, {})
    forged = replace(forged, study=replace(study, asked={"calibration": asked_}))
    plans.write_plan(plans.sealed(forged), tmp_path)
    with pytest.raises(StoreError, match="a calibration of no study"):
        read_plan(tmp_path)


def test_an_endless_calibration_is_refused(tmp_path: Path) -> None:
    path = write_study(tmp_path)
    done = paribus("calibrate", path, "--monitor", cwd=tmp_path, code=2)
    assert "a calibration has an end" in done.stderr
    paribus("run", path, "--dry-run", "--calibration", ".", cwd=tmp_path, code=2)
