"""Check 7 and its like: what other protocols make of the same data. Each must fail."""

from __future__ import annotations

from functools import cache

import numpy as np

from paribus.stats.estimate import hodges_lehmann
from validation.figures import Check, Figure
from validation.noise import DATA, NOISE
from validation.studies import LOOKS, study


def averaged_protocol_error(name: str, studies: int, launches: int) -> float:
    """Return how often all of A, then all of B, averaged, differ by Welch's t at 5 %."""
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(77)
    rows = NOISE[name](rng, studies, 2 * launches)
    p = ttest_ind(rows[:, :launches], rows[:, launches:], axis=1, equal_var=False).pvalue
    return float((p < 0.05).mean())


@cache
def recorded_samples() -> np.ndarray:
    """Return samples of recorded launches, (case, launch, sample) in us: tests/data/README.md."""
    with np.load(DATA / "same-samples.npz") as file:
        return np.stack([file[name] for name in sorted(file.files)])


def iteration_level_error(windows: int, launches: int) -> float:
    """Return how often Mann-Whitney on samples finds neighbours of one unchanged machine to differ.

    Each window is a random run of 2 x `launches` recorded launches: the samples of the first half
    against those of the second, as if each were an observation.
    """
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(7)
    cases = recorded_samples()
    wrong = []
    for samples in cases:
        for start in rng.integers(0, samples.shape[0] - 2 * launches + 1, windows):
            run = samples[start : start + 2 * launches]
            wrong.append(mannwhitneyu(run[:launches].ravel(), run[launches:].ravel()).pvalue < 0.05)
    return float(np.mean(wrong))


def peeking_error(name: str, studies: int) -> float:
    """Return how often one of six looks at 5 % each finds a difference between identical arms."""
    ratios = study(name, studies).ratios
    unadjusted = [hodges_lehmann(ratios[:, :n], 0.05) for n in LOOKS.at]
    return float(np.any([(low > 0) | (high < 0) for _, low, high in unadjusted], axis=0).mean())


def negative_controls(studies: int) -> Check:
    """Check 7: the usual protocols find differences between identical arms."""
    return Check(
        7,
        "Negative controls: these must fail",
        f"Identical arms, nominal error 5 %. {studies // 5:,} studies of 100 launches per arm, all "
        f"of A and then all of B, Welch's t; {studies // 100} runs of 20 recorded launches per "
        "case, the samples of the first ten against those of the last ten, Mann-Whitney; "
        f"{studies:,} studies looked at six times at 5 % each.",
        (
            Figure(
                "averaged in sequence, Drift",
                {"": averaged_protocol_error("Drift", studies // 5, 100)},
                ">=",
                0.40,
            ),
            Figure(
                "samples as observations, recorded",
                {"": iteration_level_error(studies // 100, 10)},
                ">=",
                0.50,
            ),
            Figure("peeking, N1", {"": peeking_error("N1", studies)}, ">=", 0.12),
        ),
    )


def mean_against_median(studies: int) -> np.ndarray:
    """Return how much wider intervals from 24 pairs are with launch means than with medians.

    One value per recorded series; on launches paired at random in random windows.
    """
    from validation.noise import recorded_series
    from validation.studies import pair_up

    widths = []
    for statistic in ("mean", "p50"):
        rng = np.random.default_rng(24)
        starts = rng.integers(0, recorded_series().shape[1] - 48, studies)
        launches = recorded_series(statistic)[:, starts[:, None] + np.arange(48)]
        _, low, high = hodges_lehmann(pair_up(rng, launches.transpose(1, 0, 2)), 0.05)
        widths.append((high - low).mean(axis=0))
    return widths[0] / widths[1]
