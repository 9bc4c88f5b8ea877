"""Which arm is steadier: the statistics by simulation, and what reports make of them."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import judgements
from judgements import printed
from paribus.cli.exports import parse_rules
from paribus.core import Launch, Settings, State, failing, unjudged
from paribus.lenses.steadiness import (
    BET_ERROR,
    LEAST_BLOCKS,
    MOST_BLOCKS,
    exceeding,
    scatters,
    scatters_within,
    won,
)
from paribus.report import junit
from paribus.report.export import to_json
from paribus.report.html import page
from paribus.report.stored import read_report
from paribus.stats.estimate import compare
from paribus.stats.student import quantile
from paribus.stats.summary import thinned
from stored import Twist, judged
from studies import paribus

Values = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Values]


def _two_states(rng: np.random.Generator, n: int) -> Values:
    return rng.normal(0, 0.2, n) + 2 * (rng.random(n) < 0.5)


def _contaminated(rng: np.random.Generator, n: int) -> Values:
    return rng.normal(0, 1, n) * np.where(rng.random(n) < 0.1, 6, 1)


NOISES: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "skew": lambda rng, n: rng.exponential(1, n),
    "contaminated": _contaminated,
    "two states": _two_states,
}
"""Noise of launches: shapes that differ; `scaled` gives them equal scatter."""


def scaled(rng: np.random.Generator) -> dict[str, float]:
    """Return by what to divide each noise so that two launches of any lie as far apart.

    Each against the normal one: the median quotient of two differences is 1.
    """
    apart = {k: np.abs(one(rng, 200_000) - one(rng, 200_000)) for k, one in NOISES.items()}
    return {k: float(np.median(one / apart["normal"])) for k, one in apart.items()}


def rejected(noise: tuple[str, str], blocks: int, studies: int, factor: float = 1.0) -> float:
    """Return in which share of studies the interval of the ratio of scatters leaves 1 out."""
    rng = np.random.default_rng([blocks, *map(len, noise)])
    scale = scaled(rng)
    found = 0
    for _ in range(studies):
        drift = np.linspace(0, 2, blocks)
        one, other = (NOISES[k](rng, blocks) / scale[k] for k in noise)
        of = scatters(list(one + drift), list(factor * other + drift))
        found += not of.low <= 1 <= of.high
    return found / studies


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [18, 40])
@pytest.mark.parametrize(
    "noise",
    [
        *((one, one) for one in NOISES),
        *(("normal", one) for one in NOISES if one != "normal"),
        ("contaminated", "skew"),
        ("contaminated", "two states"),
    ],
    ids="/".join,
)
def test_the_level_holds_whatever_the_shapes(noise: tuple[str, str], blocks: int) -> None:
    """At most 5.7 % (and two standard errors of 1,000 studies); drift is in both arms."""
    assert rejected(noise, blocks, 1000) <= 0.057 + 0.0147


@pytest.mark.slow
@pytest.mark.parametrize(("blocks", "least"), [(18, 0.33), (40, 0.85), (60, 0.95)])
def test_an_arm_that_scatters_twice_as_far_is_seen(blocks: int, least: float) -> None:
    assert rejected(("normal", "normal"), blocks, 300, factor=2.0) >= least


@pytest.mark.slow
def test_the_level_holds_where_the_study_stops_itself() -> None:
    """A study ends when its ratio is known, which depends on the scatter of both arms alike."""
    rng = np.random.default_rng(7)
    found = counted = 0
    for _ in range(1500):
        one, other = rng.normal(0, 0.03, 60), rng.normal(0, 0.03, 60)
        for blocks in (18, 27, 40, 60):
            of = compare(list(other[:blocks] - one[:blocks]), 0.98)
            if of.low > 0.98 and of.high < 1.02:
                break
        seen = scatters(list(one[:blocks]), list(other[:blocks]))
        counted += 1
        found += not seen.low <= 1 <= seen.high
    assert found / counted <= 0.057 + 0.012


logs = st.lists(st.floats(-3, 3), min_size=LEAST_BLOCKS, max_size=30)


@settings(max_examples=60, deadline=None)
@given(logs, st.integers(0, 2**32), st.floats(-5, 5))
def test_what_does_not_matter(values: list[float], seed: int, level: float) -> None:
    """The level of an arm, and the order of blocks; arms that change places invert the ratio."""
    rng = np.random.default_rng(seed)
    other = rng.normal(0, 1, len(values))
    one = np.asarray(values) + rng.normal(0, 1e-3, len(values))
    of = scatters(list(one), list(other))
    assert of.low <= of.ratio <= of.high
    order = rng.permutation(len(one))
    moved = scatters(list(one[order] + level), list(other[order]))
    turned = scatters(list(other), list(one))
    wider = scatters(list(one), list(3 * other))
    assert moved.ratio == pytest.approx(of.ratio, rel=1e-6)
    assert turned.ratio == pytest.approx(1 / of.ratio, rel=0.05)
    assert wider.ratio == pytest.approx(3 * of.ratio, rel=1e-6)
    if 0 < of.low < of.high < math.inf:
        assert (wider.low, wider.high) == pytest.approx((3 * of.low, 3 * of.high), rel=1e-3)


def test_too_few_blocks_and_values_of_one_kind_say_nothing() -> None:
    rng = random.Random(1)
    many = [rng.gauss(0, 1) for _ in range(MOST_BLOCKS + 50)]
    assert scatters(many[: LEAST_BLOCKS - 1], many[: LEAST_BLOCKS - 1]) is None
    assert scatters([1.0] * 20, many[:20]) is None
    assert scatters(many[:20], [1.0] * 20) is None
    of = scatters(many, many)
    assert (of.blocks, of.ratio, of.low <= 1 <= of.high) == (MOST_BLOCKS, 1.0, True)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=5, max_size=40))
def test_slow_launches_are_compared_as_mcnemar_does(slow: list[tuple[bool, bool]]) -> None:
    """With less than half of each arm slow, its median is that of the others."""
    quiet = [(False, False)] * (len(slow) + 1)
    arms = [[0.5 * pair[arm] for pair in (*slow, *quiet)] for arm in (0, 1)]
    ours, theirs, p = exceeding(arms[0], arms[1], 0.05)
    assert (ours, theirs) == (sum(a for a, _ in slow), sum(b for _, b in slow))
    only = [sum(a and not b for a, b in slow), sum(b and not a for a, b in slow)]
    assert p == pytest.approx(stats.binomtest(only[0], sum(only)).pvalue if sum(only) else 1)


@pytest.mark.parametrize("freedom", [11, 17, 59])
def test_the_quantile_is_that_of_student(freedom: int) -> None:
    assert quantile(0.0125, freedom) == pytest.approx(stats.t.isf(0.0125, freedom), rel=2e-3)


# --- the lens --------------------------------------------------------------------------------


def _wild(launch: Launch, attempt: int) -> Twist:
    """Return a launch of an arm that scatters four times as far."""
    draw = random.Random(f"wild {launch.number}")
    wide = 0.08 if launch.arm == "bridged" else 0.02
    return Twist(times=math.exp(draw.gauss(0, wide)))


SCRIPT = replace(judgements.SCRIPT, ratios={"barrier": {"bridged": 1.02}}, twist=_wild, scatter={})


@pytest.mark.parametrize("blocks", [8, 40])
def test_every_report_says_which_arm_is_steadier(blocks: int, tmp_path: Path) -> None:
    asked = judgements.study(("barrier",), settings=Settings(seed=5, blocks=blocks, margin=0.001))
    judgement = judged(asked, SCRIPT, name=f"wild {blocks}", facts=judgements.FACTS)
    table = to_json(judgement)
    if blocks < LEAST_BLOCKS:
        assert "steadiness" not in table
        assert [rule for rule, _ in unjudged(judgement, ["slower", "less-steady"])] == [
            "less-steady"
        ]
        (tmp_path / "verdict.json").write_text(json.dumps(table))
        given = (tmp_path / "verdict.json", "--fail-on", "less-steady")
        passed = paribus("report", *given, cwd=tmp_path)
        assert "--fail-on less-steady: not judged: it takes 12 blocks" in passed.stderr
        return
    (row,) = table["steadiness"]
    assert (row["arm"], row["word"], row["blocks"]) == ("bridged", "less steady", blocks)
    assert 1 < row["low"] < row["ratio"] < row["high"]
    assert row["spreads"][1] > 2 * row["spreads"][0]
    assert row["text"] in page(judgement, "")
    assert f"bridged: {row['text']}" in printed(judgement, 400)
    (tmp_path / "verdict.json").write_text(json.dumps(table))
    again = read_report(tmp_path / "verdict.json")
    assert again.lenses["steadiness"] == judgement.lenses["steadiness"]
    ((rule, text),) = failing(judgement, ["slower", "less-steady"])
    assert (rule, text) == ("less-steady", f"bridged: {row['text']}")
    assert 'type="less-steady"' in junit.document(judgement, parse_rules("less-steady"))
    failed = paribus(
        "report", tmp_path / "verdict.json", "--fail-on", "less-steady", cwd=tmp_path, code=1
    )
    assert "--fail-on less-steady: bridged: barrier: less steady" in failed.stderr
    paribus("report", tmp_path / "verdict.json", "--fail-on", "slower:90%", cwd=tmp_path, code=0)


def test_a_launch_that_is_cut_off_lies_apart_from_all_others() -> None:
    """An arm that hangs now and then is not steadier, however alike its other launches are."""

    def hangs(launch: Launch, attempt: int) -> Twist:
        draw = random.Random(f"hangs {launch.number}")
        if launch.arm != "bridged":
            return Twist(times=math.exp(draw.gauss(0, 0.02)))
        if launch.block % 5 == 1:
            return Twist(state=State.TIMEOUT, error=judgements.LATE)
        return Twist(times=math.exp(draw.gauss(0, 0.015)))

    script = replace(SCRIPT, twist=hangs)
    of = Settings(seed=5, blocks=60, margin=0.0001)
    asked = judgements.study(("barrier",), settings=of)
    (row,) = judged(asked, script, name="hangs").lenses["steadiness"]
    assert row.word == "less steady", row


@given(st.lists(st.booleans(), min_size=20, max_size=20), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_launches_that_are_cut_off_count_alike_in_both_arms(late: list[bool], seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.normal(0, 1, (2, len(late)))
    one[late] = math.inf
    of, turned = scatters(list(one), list(other)), scatters(list(other), list(one))
    assert (of is None) == (turned is None)
    assert of or sum(late) > 5  # of six of 20 most pairs have one that was cut off
    if of and 0 < turned.low <= turned.high < math.inf:
        assert of.ratio == pytest.approx(1 / turned.ratio, rel=0.05)
        ends = 1 / turned.high, 1 / turned.low
        assert (of.low, of.high) == pytest.approx(ends, rel=0.05)
    worse = scatters(list(one), list(np.where(late, math.inf, other)))
    assert not of or (worse and worse.ratio >= of.ratio)


@pytest.mark.parametrize(("seed", "blocks", "word"), [(6, 18, "undecided"), (7, 60, "as steady")])
def test_arms_alike_are_as_steady_or_take_more_blocks(seed: int, blocks: int, word: str) -> None:
    script = replace(SCRIPT, twist=judgements.SCRIPT.twist, machine=0.0)
    of = Settings(seed=seed, blocks=blocks, margin=0.0001)
    asked = judgements.study(("barrier",), settings=of)
    (row,) = judged(asked, script, name=f"alike {seed}").lenses["steadiness"]
    assert row.low < 1 < row.high
    assert row.word == word, row
    assert (18 < row.more < 100) == (word == "undecided")


# --- within launches -------------------------------------------------------------------------

STEPS = """
import sys
from paribus.core.errors import ParseError
from paribus.core.model import Benchmark, Case, Metric, Parsed, Program, Sample

PROGRAM = '''
import os, random
draw = random.Random(os.environ["PARIBUS_SEED"])
for step in range(10):
    state = float(os.environ["STATES"]) * draw.choice((-1, 1))
    print("step", 0.003 * (1 + state + draw.gauss(0, 0.01)))
'''

def command(request):
    return Program((sys.executable, "-c", PROGRAM), mpi=False)

def parse(text, request):
    steps = tuple(float(line.split()[1]) for line in text.splitlines())
    if len(steps) != 10:
        raise ParseError(f"expected 10 steps, got {len(steps)}")
    return Parsed((Sample("step", Case(), steps),))

BENCHMARK = Benchmark(
    "steps", LAYER, "steps of 3 ms", (Metric("step", "s", "lower"),), command, parse, ranks=1
)
"""


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["application", "compute"])
def test_steps_in_two_states_are_less_steady_than_steps_in_one(tmp_path: Path, layer: str) -> None:
    """Live, by programs of known scatter: steps of one length against some 40 % off it."""
    (tmp_path / "steps.py").write_text(STEPS.replace("LAYER", f'"{layer}"'))
    arms = "".join(f"[arms.{k}]\nenv = {{STATES = '{v}'}}\n" for k, v in (("a", 0), ("b", 0.4)))
    (tmp_path / "study.toml").write_text(
        f"question = 'Which?'\nfactor = 'env'\n{arms}[[benchmarks]]\nfile = 'steps.py'\n"
        "[plan]\nseed = 1\nblocks = 18\nmargin = '0.01 %'\n"
    )
    done = paribus("run", "study.toml", "--out", "out", cwd=tmp_path, code=0)
    table = json.loads((tmp_path / "out" / "verdict.json").read_text())
    rows = [row for row in table["steadiness"] if row["of"] == "step"]
    if layer != "application":  # a kernel repeats one operation: its samples are no steps
        assert rows == []
        return
    (row,) = rows
    assert (row["word"], row["blocks"], row["slow"]) == ("less steady", 18, [0, 0])
    assert 2 < row["low"] < row["ratio"] < (row["high"] or math.inf)
    assert row["spreads"][0] == pytest.approx(0.0056, abs=0.0003)
    assert row["spreads"][1] > 3 * row["spreads"][0]
    assert f"b: {row['text']}" in " ".join(done.stdout.split())
    assert row["text"].startswith("steps: less steady: the steps of its launches scatter")
    judgement = read_report(tmp_path / "out" / "verdict.json")
    assert ("less-steady", f"b: {row['text']}") in failing(judgement, ["less-steady"])


units = st.lists(
    st.lists(st.lists(st.floats(-3, 3), min_size=4, max_size=12), min_size=1, max_size=3),
    min_size=LEAST_BLOCKS,
    max_size=20,
)


@settings(max_examples=30, deadline=None)
@given(units, st.integers(0, 2**32))
def test_what_does_not_matter_within_launches(one: list[Any], seed: int) -> None:
    """The level of each launch, the order of blocks; arms that change places invert the ratio."""
    rng = np.random.default_rng(seed)
    ours = [[list(np.asarray(s) + rng.normal(0, 0.01, len(s))) for s in unit] for unit in one]
    theirs = [[list(rng.normal(0, 1, 8))] for _ in ours]
    order = rng.permutation(len(ours))
    moved = scatters_within(
        [[list(np.asarray(s) + rng.normal()) for s in ours[k]] for k in order],
        [theirs[k] for k in order],
    )
    of, turned = scatters_within(ours, theirs), scatters_within(theirs, ours)
    wider = scatters_within(ours, [[list(3 * np.asarray(s)) for s in unit] for unit in theirs])
    assert of.low <= of.ratio <= of.high
    assert turned.ratio == pytest.approx(1 / of.ratio, rel=0.05)
    assert moved.ratio == pytest.approx(of.ratio, rel=1e-3)
    assert wider.ratio == pytest.approx(3 * of.ratio, rel=1e-3)


def test_steps_of_one_value_say_nothing_and_many_steps_are_quantiles() -> None:
    rng = np.random.default_rng(3)
    noisy = [[list(rng.normal(0, 1, 6))] for _ in range(LEAST_BLOCKS)]
    still = [[[1.0] * 6] for _ in range(LEAST_BLOCKS)]
    assert scatters_within(noisy, still) is None
    assert scatters_within(still, noisy) is None
    assert scatters_within(noisy[1:], noisy[1:]) is None
    assert thinned([1.0, 2.0, 3.0]) == ()
    assert thinned([1.0, 2.0, 3.0, 4.0]) == [1.0, 2.0, 3.0, 4.0]
    assert list(thinned(list(range(4000)))) == list(range(50, 4000, 100))


@pytest.mark.parametrize("side", [1, -1])
def test_a_bet_wins_forty_fold_as_rarely_as_it_may(side: int) -> None:
    """Exactly, over all outcomes of 12 fair coins, of which a block's sign is the worst case."""
    outcomes = side * (2 * ((np.arange(2**12)[:, None] >> np.arange(12)) & 1) - 1.0)
    times = np.array([won(one) for one in outcomes])
    assert (times * BET_ERROR >= 2).mean() <= BET_ERROR
    assert times[np.abs(outcomes.sum(1)) == 12].min() * BET_ERROR >= 2
