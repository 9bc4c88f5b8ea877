"""How many iterations a launch should have, from a pilot: enough, and no more.

What iterations average out is only the scatter inside a launch; launches differ beyond that, and
time spent on more iterations is missing for more launches. T. Kalibera, R. Jones, "Rigorous
benchmarking in reasonable time", ISMM'13, give the number at which a study of given length is
most precise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paribus.core import units
from paribus.stats.sessions import components
from paribus.stats.summary import robust_sd

LEAST = 100
"""Samples of a launch: what its p99 and the look of its distribution ask for."""

LEAST_AT_ALL = 5
"""Samples even where a few cost more than the launch: two wild ones do not move their median."""

SHARE = 0.25
"""Most that the samples of one case may cost, as a share of what starting the launch costs."""

_WINDOW = 5.0
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Iterations:
    """The number `n` of samples that a launch should record of a case, and the figures behind it.

    `tau` is the autocorrelation time in samples; the deviations are of logs (0.01 is 1 %), inside
    a launch and between launches; `launch_s` is what a launch costs without this case's samples.
    `reason` is a sentence for the user.
    """

    n: int
    tau: float
    sd_within: float
    sd_between: float
    launch_s: float
    reason: str


def tau_int(samples: Sequence[float]) -> float:
    """Return the integrated autocorrelation time of the samples of one launch, in samples.

    So many samples weigh as much as one independent one: the variance of their median is tau
    times what it were otherwise. It is 1 + 2 sum rho(t), summed to the first lag of at least five
    times the result (A. Sokal's window, in *Functional Integration*, 1997), and at least 1. rho is
    that of the signs about the median: it is the one that the median of correlated samples
    depends on, and interrupted samples do not swamp it. 1.0 for fewer than 10 samples.
    """
    import numpy as np

    values = np.asarray(samples, dtype=np.float64)
    n = len(values)
    if n < 10:
        return 1.0
    signs = np.sign(values - np.median(values))
    signs -= signs.mean()
    size = 1 << (2 * n - 1).bit_length()
    power = np.abs(np.fft.rfft(signs, size)) ** 2
    covariance = np.fft.irfft(power, size)[:n]
    if covariance[0] <= 1e-9 * n:
        return 1.0
    taus = 2 * np.cumsum(covariance / covariance[0]) - 1
    wide_enough = np.arange(n) >= _WINDOW * taus
    # Without such a lag the samples are one long wave: they say no more than n / 5 would.
    window = int(wide_enough.argmax()) if wide_enough.any() else n // 5
    return max(1.0, float(taus[window]))


def iterations_per_launch(
    launch_s: float, sample_s: float, tau: float, sd_within: float, sd_between: float
) -> int:
    """Return n* = sqrt((c_launch / c_sample) tau s_within^2 / s_between^2), within its bounds.

    At least LEAST samples, but at most what costs SHARE of the launch, and at least LEAST_AT_ALL
    whatever they cost. The cost is flat around n*: half or twice as many cost at most an eighth
    more. Raises ValueError for costs or `tau` not above 0 and deviations below 0 or NaN.
    """
    if not (launch_s > 0 and sample_s > 0 and tau > 0):
        raise ValueError(f"a launch of {launch_s} s, samples of {sample_s} s, tau {tau}")
    if not (sd_within >= 0 and sd_between >= 0):
        raise ValueError(f"deviations of {sd_within} and {sd_between}")
    most = max(LEAST_AT_ALL, math.floor(SHARE * launch_s / sample_s))
    if sd_between == 0:
        return most if sd_within > 0 else min(LEAST, most)
    best = math.sqrt(launch_s / sample_s * tau) * sd_within / sd_between
    return min(max(LEAST, math.ceil(best)), most)


def sample_seconds(value: float, unit: str, batch: int) -> float | None:
    """Return what a sample of `batch` iterations costs; None if `unit` is not one of time."""
    return value * batch * _UNITS[unit] if unit in _UNITS else None


def advise(
    pilot: Sequence[Sequence[float]], wall_s: Sequence[float], sample_s: float
) -> Iterations:
    """Return how many samples a launch should record of one case, from a pilot of one arm.

    `pilot` holds the samples of each launch in the order of time, `wall_s` what each launch took
    in all, `sample_s` what a sample costs (`sample_seconds`). tau is the median over launches,
    s_within the median of 1.4826 times the median absolute deviation of the logs, s_between that
    of the launch medians (`sessions.components`), less what s_within explains of it. From a pilot
    of 2 to 5 launches s_between is a guess within a factor of two or so; so is n, and that costs
    little. Raises ValueError for fewer than two launches, and for samples not above 0.
    """
    if len(pilot) < 2 or len(pilot) != len(wall_s):
        launches = units.count(len(pilot), "launch")
        raise ValueError(f"a pilot of {launches}, {len(wall_s)} of them timed")
    logs = [[math.log(value) for value in launch] for launch in pilot]
    tau = statistics.median(tau_int(launch) for launch in logs)
    within = statistics.median(robust_sd(launch) for launch in logs)
    medians = [[statistics.median(launch)] for launch in logs]
    between, _ = components(medians)
    count = statistics.median(len(launch) for launch in logs)
    # pi / 2: the median of normal samples varies that much more than their mean.
    explained = math.pi / 2 * tau * within**2 / count
    between = math.sqrt(max(0.0, between**2 - explained))
    wall = statistics.median(wall_s)
    launch_s = max(wall - count * sample_s, wall / 10)
    n = iterations_per_launch(launch_s, sample_s, tau, within, between)
    reason = _reason(n, tau, within, between, launch_s, sample_s)
    return Iterations(n, tau, within, between, launch_s, reason)


def _reason(
    n: int, tau: float, within: float, between: float, launch_s: float, sample_s: float
) -> str:
    """Return why `n` iterations are recommended, as a clause."""
    alike = f", {tau:.2g} of them count as one" if tau >= 1.05 else ""
    scatter = f"samples scatter by {within * 100:.2g} %{alike}; launches by {between * 100:.2g} %"
    cost = n * sample_s / launch_s
    if n > LEAST and cost > 0.9 * SHARE:
        return f"{scatter}; more than {n} would take over {units.percent(SHARE)} of the launch"
    if n < LEAST:
        return f"{scatter}; samples are so long that a launch has time for only {n}"
    samples = units.count(n, "sample")
    if n == LEAST:
        return f"{scatter}; more than {samples} would not make the study more precise"
    return f"{scatter}; with {samples} a study of given length is most precise"
