"""The error rates that docs/statistics.md states, by simulating whole studies.

    python tests/test_stats_simulation.py [--studies 10000]    # prints the figures of that page

A simulated study is a row of launch medians on the log scale, in the order of time, both arms
identical; an effect is added to the arm's. Everything after that is the code that judges real
launches: schedule, hodges_lehmann, judge, blocks_needed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from paribus.judgement import Comparison, Word
from paribus.stats.estimate import hodges_lehmann
from paribus.stats.looks import Looks, schedule
from paribus.stats.plan import arm_orders
from paribus.stats.reliability import failures_differ
from paribus.stats.verdict import blocks_needed, judge

BLOCKS = 60
LOOKS = schedule(BLOCKS)
MARGIN = 0.02
PLANNED = [(s / 100, e / 100) for s in (1, 2, 3) for e in (0, 1, 2, 5)]
EFFECTS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.10, 0.30)
STUDIES = 4000


# --- noise: functions of (rng, studies, launches) -> log time of each launch -------------------


def normal(rng, studies, launches, sd=0.015):
    return rng.normal(0, sd, (studies, launches))


def outliers(rng, studies, launches):
    slowed = rng.random((studies, launches)) < 0.07
    slowdown = np.log1p(rng.exponential(0.40, (studies, launches)))
    return normal(rng, studies, launches, 0.02) + slowed * slowdown


def drift(rng, studies, launches):
    level = np.empty((studies, launches))
    level[:, 0] = rng.normal(0, 0.015, studies)
    steps = rng.normal(0, 0.015 * math.sqrt(1 - 0.95**2), (studies, launches))
    for i in range(1, launches):
        level[:, i] = 0.95 * level[:, i - 1] + steps[:, i]
    return level + normal(rng, studies, launches)


def sticky(rng, studies, launches):
    """Two states 8 % apart, 70 % of the time in the fast one, left about once in 40 launches."""
    slow = np.empty((studies, launches), dtype=bool)
    slow[:, 0] = rng.random(studies) < 0.3
    leave = rng.random((studies, launches))
    for i in range(1, launches):
        leaves = leave[:, i] < np.where(slow[:, i - 1], 0.7 / 20, 0.3 / 20)
        slow[:, i] = slow[:, i - 1] ^ leaves
    return 0.08 * slow + normal(rng, studies, launches)


def bimodal(rng, studies, launches):
    return 0.08 * (rng.random((studies, launches)) < 0.3) + normal(rng, studies, launches)


def steps(rng, studies, launches):
    change = (rng.random((studies, launches)) < 1 / 80) * rng.choice([-1, 1], (studies, launches))
    return 0.04 * np.cumsum(change, axis=1) + normal(rng, studies, launches)


def alternating(rng, studies, launches):
    return 0.08 * (np.arange(launches) % 2) + normal(rng, studies, launches)


@cache
def recorded_series(statistic: str = "p50") -> np.ndarray:
    """Return the logs of a statistic of the recorded launches: transport and section, then time."""
    path = Path(__file__).parent / "data" / "noise-launches.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    sections = ("pp8", "pp4k", "pp1m", "ar8", "triad")
    return np.log(
        [
            [float(row[f"{section}_{statistic}"]) for row in rows if row["transport"] == transport]
            for transport in ("shm", "tcp")
            for section in sections
        ]
    )


def stretches(rng, studies, launches):
    """Return indices of recorded launches: random stretches of 40 in a row, one after another."""
    starts = rng.integers(0, recorded_series().shape[1] - 40, (studies, launches // 40))
    return (starts[..., None] + np.arange(40)).reshape(studies, launches)


def recorded(rng, studies, launches):
    series = rng.integers(0, len(recorded_series()), (studies, 1))
    return recorded_series()[series, stretches(rng, studies, launches)]


NOISE = {
    "N1": normal,
    "N2": outliers,
    "Drift": drift,
    "Sticky": sticky,
    "Steps": steps,
    "Alternating": alternating,
    "Bimodal": bimodal,
    "Recorded": recorded,
}
REQUIRED = ("N1", "N2", "Drift", "Sticky", "Steps", "Alternating")


# --- studies -----------------------------------------------------------------------------------


@dataclass
class Intervals:
    """Log ratios (study, block), and at each look estimate, low and high (study, look)."""

    ratios: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    looks: tuple[int, ...]


@dataclass
class Ended:
    """Where studies stopped: word, blocks and the interval (log) they stopped with."""

    words: list[Word]
    blocks: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def share(self, *words: Word) -> float:
        return sum(word in words for word in self.words) / len(self.words)


def pair_up(rng, launches):
    """Return log ratios of neighbouring launches whose order a fair coin decided."""
    sign = rng.choice([-1.0, 1.0], (len(launches), launches.shape[-1] // 2))
    if launches.ndim == 3:
        sign = sign[:, None, :]
    return sign * (launches[..., 1::2] - launches[..., ::2])


def intervals_of(ratios, looks=LOOKS) -> Intervals:
    found = [hodges_lehmann(ratios[:, :n], looks.level) for n in looks.at]
    return Intervals(ratios, *(np.stack(x, axis=1) for x in zip(*found, strict=True)), looks.at)


@cache
def study(name: str, studies: int = STUDIES) -> Intervals:
    rng = np.random.default_rng([2026, list(NOISE).index(name)])
    return intervals_of(pair_up(rng, NOISE[name](rng, studies, 2 * BLOCKS)))


def verdict_at(found: Intervals, row: int, look: int, shift: float):
    comparison = Comparison(
        found.looks[look],
        math.exp(found.estimate[row, look] + shift),
        math.exp(found.low[row, look] + shift),
        math.exp(found.high[row, look] + shift),
        LOOKS.confidence,
    )
    last = look == len(found.looks) - 1
    return judge(comparison, better="lower", margin=MARGIN, last=last)


def run_to_the_end(found: Intervals, effect: float) -> Ended:
    """Return how each study ends when the arm takes 1 + `effect` times as long."""
    shift = math.log1p(effect)
    words, stops = [], []
    for row in range(len(found.low)):
        for look in range(len(found.looks)):
            verdict = verdict_at(found, row, look, shift)
            if verdict.final:
                words.append(verdict.word)
                stops.append(look)
                break
    at = (np.arange(len(stops)), np.array(stops))
    return Ended(words, np.array(found.looks)[at[1]], found.low[at] + shift, found.high[at] + shift)


def any_look_error(found: Intervals) -> float:
    """Return the share of studies of identical arms in which some look's interval excludes 1."""
    return float(((found.low > 0) | (found.high < 0)).any(axis=1).mean())


def coverage(found: Intervals, effect: float) -> float:
    ended = run_to_the_end(found, effect)
    truth = math.log1p(effect)
    return float(((ended.low <= truth) & (truth <= ended.high)).mean())


def decided_share(found: Intervals, effect: float) -> float:
    return run_to_the_end(found, effect).share(Word.FASTER, Word.SLOWER, Word.EQUIVALENT)


def right_word(effect: float) -> Word:
    return Word.EQUIVALENT if effect < MARGIN else Word.SLOWER


def averaged_protocol_error(name: str, studies: int, launches: int) -> float:
    """Return how often all of A, then all of B, averaged, differ by Welch's t at 5 %."""
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(77)
    rows = NOISE[name](rng, studies, 2 * launches)
    p = ttest_ind(rows[:, :launches], rows[:, launches:], axis=1, equal_var=False).pvalue
    return float((p < 0.05).mean())


# --- what must hold ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", REQUIRED)
def test_identical_arms_rarely_differ_at_any_look(name):
    assert any_look_error(study(name)) <= 0.057


def test_identical_arms_rarely_differ_on_recorded_launches():
    assert any_look_error(study("Recorded")) <= 0.061


@pytest.mark.parametrize("name", REQUIRED)
def test_identical_arms_are_almost_never_called_faster_or_slower(name):
    assert run_to_the_end(study(name), 0.0).share(Word.FASTER, Word.SLOWER) <= 0.006


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("effect", [MARGIN, 1 / (1 + MARGIN) - 1])
def test_an_effect_exactly_at_the_margin_is_rarely_decided(name, effect):
    assert decided_share(study(name), effect) <= 0.057


@pytest.mark.parametrize("name", ["N1", "N2", "Drift", "Recorded"])
@pytest.mark.parametrize("effect", [0.0, 0.005, 0.01, 0.02, 0.05])
def test_final_interval_covers_the_truth(name, effect):
    assert coverage(study(name), effect) >= 0.94


@pytest.mark.parametrize(("effect", "most"), [(0.0, 22), (0.05, 16), (0.30, 8.5)])
def test_quiet_machine_decides_soon(effect, most):
    ended = run_to_the_end(study("N1"), effect)
    assert ended.share(right_word(effect)) >= 0.98
    assert ended.blocks.mean() <= most


def test_outliers_delay_but_do_not_prevent():
    ended = run_to_the_end(study("N2"), 0.05)
    assert ended.share(Word.SLOWER) >= 0.97
    assert ended.blocks.mean() <= 40


def test_negative_control_averaging_in_sequence_fails_under_drift():
    assert averaged_protocol_error("Drift", 1000, 100) >= 0.40


def test_negative_control_peeking_without_a_schedule_fails():
    unadjusted = [hodges_lehmann(study("N1").ratios[:, :n], 0.05) for n in (8, 12, 18, 27, 40, 60)]
    errs = np.any([(low > 0) | (high < 0) for _, low, high in unadjusted], axis=0)
    assert errs.mean() > 0.12


@pytest.mark.parametrize("blocks", [8, 10, 12, 15, 17, 20, 26, 27, 33, 50, 75])
@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_other_schedules_keep_their_error(blocks, confidence):
    looks = schedule(blocks, confidence)
    ratios = np.random.default_rng(5).normal(size=(20_000, blocks))
    error = 1 - confidence
    assert any_look_error(intervals_of(ratios, looks)) <= error + 3 * math.sqrt(error / 20_000)


def failures_called_different(share: float, studies: int) -> float:
    """Return how often arms that fail equally often are called different, at any look."""
    failed = np.random.default_rng(8).random((2, studies, BLOCKS)) < share
    p = cache(failures_differ)
    called = np.zeros(studies, dtype=bool)
    for n in LOOKS.at:
        reference, arm = failed[:, :, :n]
        only = (reference & ~arm).sum(axis=1), (arm & ~reference).sum(axis=1)
        called |= np.array([p(int(r), int(a)) < 0.05 for r, a in zip(*only, strict=True)])
    return float(called.mean())


@pytest.mark.parametrize("share", [0.02, 0.05, 0.10])
def test_equally_flaky_arms_are_rarely_called_different(share):
    assert failures_called_different(share, STUDIES) <= 0.05


def three_arms(studies: int) -> Intervals:
    """Return the second of three identical arms against the first, under drift."""
    rng = np.random.default_rng(3)
    launches = drift(rng, studies, 3 * BLOCKS).reshape(studies, BLOCKS, 3)
    ratios = np.empty((studies, BLOCKS))
    for row in range(studies):
        orders = arm_orders(("a", "b", "c"), BLOCKS, row, "latin")
        a = np.array([order.index("a") for order in orders])
        b = np.array([order.index("b") for order in orders])
        block = np.arange(BLOCKS)
        ratios[row] = launches[row, block, b] - launches[row, block, a]
    return intervals_of(ratios)


def test_latin_square_rows_keep_the_error_under_drift():
    assert any_look_error(three_arms(1000)) <= 0.05 + 3 * math.sqrt(0.05 / 1000)


def planned_share(sd: float, effect: float, studies: int = 500) -> tuple[float, float]:
    """Return the share of studies settled at the n planned from 12 blocks, and the median n."""
    rng = np.random.default_rng(13)
    settled, planned = 0, []
    for _ in range(studies):
        first = rng.normal(math.log1p(effect), sd, 12)
        n = max(12, blocks_needed(first, MARGIN))
        planned.append(n)
        more = rng.normal(math.log1p(effect), sd, n - 12)
        rows = np.concatenate([first, more])[None]
        verdict = verdict_at(intervals_of(rows, Looks((n,), LOOKS.level)), 0, 0, 0.0)
        settled += verdict.word is not Word.UNDECIDED or "at the margin" in verdict.reason
    return settled / studies, float(np.median(planned))


@pytest.mark.parametrize(("sd", "effect"), [(0.01, 0.01), (0.02, 0.0), (0.03, 0.0), (0.03, 0.05)])
def test_planned_blocks_settle_a_study(sd, effect):
    assert planned_share(sd, effect)[0] >= 0.88


# --- the figures of docs/statistics.md ---------------------------------------------------------


def family(studies: int) -> tuple[float, float, float]:
    """Return, for ten recorded endpoints of one launch and identical arms, the share of studies
    in which the headline says faster or slower, any case does, and any case's interval excludes 1.
    """
    rng = np.random.default_rng(10)
    launches = recorded_series()[:, stretches(rng, studies, 2 * BLOCKS)].transpose(1, 0, 2)
    ratios = pair_up(rng, launches)
    headline = run_to_the_end(intervals_of(ratios.mean(axis=1)), 0.0)
    words = np.zeros(studies, dtype=bool)
    excludes = np.zeros(studies, dtype=bool)
    for case in range(ratios.shape[1]):
        found = intervals_of(ratios[:, case])
        for row in range(studies):
            look = LOOKS.at.index(int(headline.blocks[row]))
            word = verdict_at(found, row, look, 0.0).word
            words[row] |= word in (Word.FASTER, Word.SLOWER)
            excludes[row] |= found.low[row, look] > 0 or found.high[row, look] < 0
    wrong = headline.share(Word.FASTER, Word.SLOWER)
    return wrong, float(words.mean()), float(excludes.mean())


def mean_against_median(studies: int) -> np.ndarray:
    """Return how much wider intervals from 24 pairs are with launch means than with medians."""
    widths = []
    for statistic in ("mean", "p50"):
        rng = np.random.default_rng(24)
        starts = rng.integers(0, recorded_series().shape[1] - 48, studies)
        launches = recorded_series(statistic)[:, starts[:, None] + np.arange(48)]
        _, low, high = hodges_lehmann(pair_up(rng, launches.transpose(1, 0, 2)), 0.05)
        widths.append((high - low).mean(axis=0))
    return widths[0] / widths[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the figures of docs/statistics.md.")
    parser.add_argument("--studies", type=int, default=10_000)
    studies = parser.parse_args().studies
    print("name         any-look  at margin  coverage least  |  effect: right word / mean blocks")
    for name in NOISE:
        found = study(name, studies)
        least = min(coverage(found, effect) for effect in EFFECTS[:5])
        cells = []
        for effect in (0.0, 0.01, 0.05, 0.10, 0.30):
            ended = run_to_the_end(found, effect)
            wrong = {Word.FASTER, Word.SLOWER, Word.EQUIVALENT} - {right_word(effect)}
            cells.append(
                f"{effect:.0%}: {ended.share(right_word(effect)):.3f} / {ended.blocks.mean():.1f}"
                f" (wrong {ended.share(*wrong):.4f})"
            )
        at_margin = max(decided_share(found, MARGIN), decided_share(found, 1 / (1 + MARGIN) - 1))
        print(
            f"{name:12s} {any_look_error(found):.4f}    {at_margin:.4f}     {least:.4f}  |  "
            + "  ".join(cells),
            flush=True,
        )
    for name in ("N1", "N2", "Drift", "Sticky", "Steps"):
        errors = [averaged_protocol_error(name, 2000, n) for n in (10, 30, 100)]
        print(f"averaged, in sequence, Welch, 10 / 30 / 100 per arm, {name}: {errors}")
    unadjusted = [hodges_lehmann(study("N1", studies).ratios[:, :n], 0.05) for n in LOOKS.at]
    peeking = np.any([(low > 0) | (high < 0) for _, low, high in unadjusted], axis=0).mean()
    print(f"six looks at 5 % each, N1: {peeking:.4f}")
    wider = ", ".join(f"{ratio:.1f}" for ratio in mean_against_median(2000))
    print(f"means wider than medians, shm then tcp (8 B, 4 KiB, 1 MiB, allreduce, triad): {wider}")
    print(f"arms that both fail in 10 %: {failures_called_different(0.10, studies):.4f}")
    print(f"three arms under drift: {any_look_error(three_arms(4000)):.4f}")
    print(f"ten cases (headline wrong, any case wrong, any excludes 1): {family(studies // 2)}")
    for sd, effect in PLANNED:
        share, n = planned_share(sd, effect)
        print(f"planned from 12 blocks, sd {sd:.0%}, effect {effect:.0%}: n {n:.0f}, {share:.3f}")


if __name__ == "__main__":
    main()
