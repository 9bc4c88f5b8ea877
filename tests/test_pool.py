"""Studies of several sites pooled: what is promised of intervals holds, and what may be pooled."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paribus.__main__ import main
from paribus.core import Arm, Selection, Settings, Study, Word
from paribus.designs import design_of
from paribus.designs.standard import Series
from paribus.judge.headlines import replay
from paribus.logs.pooled import error_of
from paribus.logs.pooling import pool, standard_error
from paribus.logs.studies import read
from paribus.plan import frozen as plans
from paribus.stats import student
from paribus.stats.looks import schedule
from processes import executable
from studies import paribus
from study_directories import write_directory

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "pool-schema.json").read_text())

# --- statistics


def test_student_is_exact_at_two_degrees_and_near_elsewhere() -> None:
    from scipy.stats import t

    for freedom in (2, 3, 4, 9):
        for tail in (0.05, 0.025):
            assert student.quantile(tail, freedom) == pytest.approx(t.isf(tail, freedom), rel=2e-3)


def test_scatter_and_its_chance_are_those_of_the_literature() -> None:
    """The chance of scatter is that of Cochran's Q; the scatter solves Paule and Mandel's."""
    from scipy.stats import chi2

    logs, errors = [0.10, 0.12, 0.30, 0.20, 0.15], [0.02, 0.03, 0.02, 0.05, 0.01]
    found = pool(logs, errors)
    fixed = [1 / e**2 for e in errors]
    middle = sum(w * y for w, y in zip(fixed, logs, strict=True)) / sum(fixed)
    q = sum(w * (y - middle) ** 2 for w, y in zip(fixed, logs, strict=True))
    assert found.scattered == pytest.approx(chi2.sf(q, 4))
    spread = sum(
        (y - found.log_ratio) ** 2 / (found.between**2 + e**2)
        for y, e in zip(logs, errors, strict=True)
    )
    assert spread == pytest.approx(4)


sites = st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-3, 0.5)), min_size=3, max_size=8)


@given(sites, st.floats(-0.5, 0.5))
def test_order_and_units_do_not_matter(several: list[tuple[float, float]], shift: float) -> None:
    logs, errors = [list(one) for one in zip(*several, strict=True)]
    found = pool(logs, errors)
    assert found.low <= found.log_ratio <= found.high
    assert math.fsum(found.weights) == pytest.approx(1)
    turned = pool([-one for one in reversed(logs)], errors[::-1])
    assert turned.log_ratio == pytest.approx(-found.log_ratio, abs=1e-9)
    assert turned.high == pytest.approx(-found.low, abs=1e-9)
    moved = pool([one + shift for one in logs], errors)
    assert moved.high - shift == pytest.approx(found.high, abs=1e-6)


STUDY = Study(
    question="?",
    factor="nothing",
    arms=(Arm("a"), Arm("b")),
    benchmarks=(Selection(label="one", benchmark="latency", ranks=2, parameters={}),),
    settings=Settings(seed=1),
)


def stopped(plan: plans.Plan, draw: Callable[[int], float]) -> list[float]:
    """Return the log ratios of a study that stops where its design stops it."""
    drawn = [draw(n) for n in range(plan.looks.at[-1])]
    for look in plan.looks.at:
        verdict, _ = replay(series(plan, drawn[:look]), over=False)
        if verdict.final:
            return drawn[:look]
    return drawn


def _drawn(rng: random.Random, own: float, scatter: float, _block: int) -> float:
    return rng.gauss(own, scatter)


def series(plan: plans.Plan, values: Sequence[float]) -> Series:
    cut: dict[str, tuple[int, ...]] = {"a": (), "b": ()}
    return Series(plan, plan.looks.at, dict(enumerate(values, 1)), "lower", 0.05, cut)


def estimate(plan: plans.Plan, values: Sequence[float]) -> float:
    return math.log(replay(series(plan, values), over=True)[1][-1].ratio)


@pytest.fixture(scope="module")
def plan() -> plans.Plan:
    assert design_of(STUDY).has_end
    return plans.freeze(STUDY, {})


def test_a_study_s_error_is_that_of_studies_that_stop(plan: plans.Plan) -> None:
    """The simulated error of one study, on average, is how far many real ones stray."""
    rng = random.Random(5)
    strays, errors = [], []
    for seed in range(60):
        values = stopped(plan, partial(_drawn, rng, 0.03, 0.04))
        middle = estimate(plan, values)
        strays.append(middle - 0.03)
        errors.append(
            standard_error(values, middle, plan.looks.at[-1], lambda d: estimate(plan, d), seed)
        )
    rms = [math.sqrt(math.fsum(one**2 for one in of) / len(of)) for of in (strays, errors)]
    assert rms[1] == pytest.approx(rms[0], rel=0.3)


@pytest.mark.parametrize("between", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("number", [3, 5, 10])
@pytest.mark.timeout(1200)
def test_the_interval_holds_the_common_ratio(plan: plans.Plan, number: int, between: float) -> None:
    """Of sites whose studies stop at their looks: 94 %, or more, within two standard errors."""
    rng = random.Random(f"{number} {between}")
    # Sites are drawn once each and pooled in many sets: simulating a site is what costs.
    known = []
    for seed in range(120):
        own = rng.gauss(0.08, between)
        scatter = math.exp(rng.uniform(math.log(0.005), math.log(0.06)))
        values = stopped(plan, partial(_drawn, rng, own, scatter))
        middle = estimate(plan, values)
        known.append(
            (middle, standard_error(values, middle, 60, lambda d: estimate(plan, d), seed))
        )
    sets, held = 2000, 0
    for _ in range(sets):
        logs, errors = zip(*rng.sample(known, number), strict=True)
        found = pool(logs, errors)
        held += found.low <= 0.08 <= found.high
    assert held / sets >= 0.94 - 2 * math.sqrt(0.94 * 0.06 / (120 / number))


@pytest.mark.parametrize("between", [0.0, 0.01, 0.05])
def test_the_range_holds_another_site(between: float) -> None:
    rng = random.Random(f"range {between}")
    held, sets = 0, 200
    for _ in range(sets):
        errors = [math.exp(rng.uniform(math.log(0.004), math.log(0.03))) for _ in range(6)]
        logs = [rng.gauss(0, between) + rng.gauss(0, one) for one in errors]
        another = pool(logs, errors).another
        held += another[0] <= rng.gauss(0, between) <= another[1]
    assert held / sets >= 0.94 - 2 * math.sqrt(0.94 * 0.06 / sets)


def test_two_sites_are_no_pool() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        pool([0.1, 0.2], [0.01, 0.01])
    assert pool([0.1] * 4, [0.01] * 4).another is None
    assert pool([0.1] * 5, [0.01] * 5).another


# --- from studies

SITE = """
question = "What does the bridge cost?"
factor = "env"
[arms.host]
env = {{ NETWORK = "host" }}
[arms.bridged]
env = {{ NETWORK = "{network}" }}
[[benchmarks]]
name = "command"
label = "{label}"
argv = ["./solver"]
directory = "."
regex = "took ([0-9.]+)"
unit = "s"
better = "lower"
{beside}
[plan]
blocks = 8
seed = {seed}
"""
SOLVER = """#!/bin/sh
cost='{cost}'
noise=$((PARIBUS_SEED / 7 % 40))
[ "$NETWORK" = host ] || noise=$((noise + cost))
echo "took $((1000 + noise))"
"""


def site(
    folder: Path,
    seed: int,
    cost: int,
    *,
    network: str = "bridge",
    label: str = "solver",
    beside: str = "",
) -> Path:
    """Return a finished study in which the bridge costs so many thousandths."""
    folder.mkdir()
    executable(folder / "solver", SOLVER.format(cost=cost))
    (folder / "s.toml").write_text(
        SITE.format(network=network, label=label, seed=seed, beside=beside)
    )
    done = paribus("run", "s.toml", "--out", "study", "--brief", cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    return folder / "study"


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("sites")
    return [site(folder / f"site{n}", n, 200 + 20 * n) for n in range(1, 6)]


def pooled(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0) -> str:
    assert main(["pool", *map(str, words)]) == code
    ended = capsys.readouterr()
    return ended.out if code == 0 else ended.err


def test_sites_say_together_what_each_says(
    five: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "one.zip"
    assert main(["pack", str(five[0]), "--out", str(packed)]) == 0
    capsys.readouterr()
    said = pooled(capsys, packed, *five[1:], "--out", tmp_path / "out")
    assert said.startswith("solver: bridged is slower over 5 sites: 1.2")
    assert "another site" in said
    assert "facts" not in said or "none of this is an explanation" in said.replace("\n", " ")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert "http" not in page.replace("Content-Security-Policy", "").replace("http-equiv", "")
    table: dict[str, Any] = json.loads(pooled(capsys, *five, "--json"))
    jsonschema.validate(table, SCHEMA)
    jsonschema.validate(json.loads((tmp_path / "out" / "pool.json").read_text()), SCHEMA)
    (row,) = table["rows"]
    assert row["low"] < row["ratio"] < row["high"]
    ratios = [one["ratio"] for one in row["sites"]]
    assert min(ratios) < row["ratio"] < max(ratios)
    assert row["between"] > 0


def test_sites_that_may_be_one_machine_are_named(
    five: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from paribus.logs import pooled as module

    table = json.loads(pooled(capsys, *five, "--json"))
    assert table["alike"] == [f"site{n}" for n in range(2, 6)]
    said = " ".join(pooled(capsys, *five).split())
    assert "site2, site3, site4, site5: the machine of an earlier site" in said

    def elsewhere(name: str, directory: Path) -> Any:
        one = read(name, directory)
        nodes = {
            arm: {node: {**facts, "machine.board": name} for node, facts in of.items()}
            for arm, of in one.nodes.items()
        }
        return replace(one, nodes=nodes)

    monkeypatch.setattr(module, "read", elsewhere)
    assert json.loads(pooled(capsys, *five, "--json"))["alike"] == []
    assert "the machine of an earlier" not in " ".join(pooled(capsys, *five).split())


def test_what_is_not_one_question_is_refused_by_name(
    five: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = pooled(capsys, *five[:2], code=2)
    assert "too few to pool" in said
    shutil.copytree(five[0], tmp_path / "copy")
    said = pooled(capsys, *five[:2], tmp_path / "copy", code=2)
    assert "holds the same launches" in said
    other = site(tmp_path / "other", 7, 300, network="overlay")
    said = pooled(capsys, *five[:2], five[0], code=2)
    assert "is given twice" in said
    assert "give at least 3 study directories" in said
    said = pooled(capsys, *five[:2], other, code=2)
    assert "arm.env.NETWORK of bridged against host is not the same" in said
    before = (five[0] / "report.html").read_bytes()
    assert "is a study directory" in pooled(capsys, *five, "--out", five[0], code=2)
    assert (five[0] / "report.html").read_bytes() == before
    labelled = site(tmp_path / "labelled", 8, 300, label="elsewhere")
    said = pooled(capsys, *five[:2], labelled, code=2)
    assert "not studies of the same question" in said


def test_an_arm_that_one_site_lacks_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two = {"host": 1.0, "bridged": 1.05}
    several = [
        write_directory(tmp_path / f"site{n}", arms, seed=n, started=1.7e9 + n)
        for n, arms in enumerate(({**two, "third": 1.1}, two, two))
    ]
    assert "the arm third is only in site0" in pooled(capsys, *several, code=2)


def test_a_study_that_was_ended_has_no_more_blocks_than_it_has(tmp_path: Path) -> None:
    """Simulated to the last block of its plan, it would be surer than it is."""
    one = read("x", site(tmp_path / "site", 3, 0))
    finding = one.judgement.headlines[0]
    assert finding.verdict.word is Word.UNDECIDED
    settings = replace(one.plan.study.settings, blocks=60)
    study = replace(one.plan.study, settings=settings)
    longer = replace(one, plan=replace(one.plan, study=study, looks=schedule(60)))
    log = math.log(finding.comparison.ratio)
    assert error_of(longer, finding, log) == error_of(one, finding, log)
    decided = replace(finding, verdict=replace(finding.verdict, word=Word.SLOWER))
    assert error_of(longer, decided, log) < 0.8 * error_of(one, finding, log)


def test_a_benchmark_that_not_all_sites_have_is_named(
    five: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = site(
        tmp_path / "more", 9, 300, beside='[[benchmarks]]\nname = "command"\nargv = ["true"]'
    )
    table = json.loads(pooled(capsys, *five[:2], more, "--json"))
    jsonschema.validate(table, SCHEMA)
    assert [row["benchmark"] for row in table["rows"]] == ["solver"]
    (left,) = table["not_pooled"]
    assert "the benchmark command" in left
    assert "Not pooled: the benchmark command" in pooled(capsys, *five[:2], more)


def test_a_site_whose_verdict_is_withheld_is_left_out(
    five: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from paribus.logs import pooled as module

    def withheld(name: str, directory: Path) -> Any:
        one = read(name, directory)
        if directory != five[0]:
            return one
        heads = tuple(
            replace(head, verdict=replace(head.verdict, word=Word.WITHHELD))
            for head in one.judgement.headlines
        )
        return replace(one, judgement=replace(one.judgement, headlines=heads))

    monkeypatch.setattr(module, "read", withheld)
    (row,) = json.loads(pooled(capsys, *five, "--json"))["rows"]
    assert len(row["sites"]) == 4
    assert list(row["left_out"]) == ["site1"]
    (row,) = json.loads(pooled(capsys, *five[:3], "--json"))["rows"]
    assert (row["word"], row["ratio"]) == ("no data", None)
    assert "fewer than 3 sites have a figure" in pooled(capsys, *five[:3])
