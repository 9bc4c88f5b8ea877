"""Print the levels of studies of few launches, and their table of first crossings.

    python tools/calibrate_few.py              # paribus/stats/few.toml; two minutes
    python tools/calibrate_few.py --crossings  # paribus/stats/crossings_few.toml; ten minutes
    python tools/calibrate_few.py --check      # the error of the levels, and of studies of other
                                               # lengths, with another seed

Under "no difference" and without ties the statistic at all looks has one joint distribution,
whatever the data's: the start is a random subset of 2 START ranks, the pairs are coins beside a
random order of their sizes. It is drawn here. The levels away from 1 fall as n^-1/2, those towards
1 are constant and never below; each side's constant is the largest at which the share of draws that
reach it at some look, plus two standard errors, stays at or below the side's part of the error.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

import calibrate_looks
from paribus.stats import few

CAPS = (12, 18, 28, 42, 60)
"""Blocks of the longest studies that use a row of the table."""

AWAY, TOWARDS = 0.015, 0.035
"""The error of each side over all looks: 5 % together."""

GAINS = ((8, 0.5), (10, 0.2), (12, 0.1), (14, 0.01), (16, 1e-3), (18, 3e-4))
"""As calibrate_looks.GAINS."""

CHUNK = 20_000


def chances(start: int, looks: tuple[int, ...], draws: int, seed: int) -> np.ndarray:
    """Return P(T <= t) of the drawn t, by draw and look."""
    rng = np.random.Generator(np.random.PCG64(seed))
    found = np.empty((draws, len(looks)))
    for begin in range(0, draws, CHUNK):
        rows = min(CHUNK, draws - begin)
        places = np.argsort(rng.random((rows, 2 * start)), axis=1)[:, :start]
        of_start = places.sum(axis=1) - start * (start - 1) // 2
        keys = rng.integers(0, 2**63, (rows, looks[-1] - start), dtype=np.int64)
        for column, n in enumerate(looks):
            pairs = n - start
            a, b = few.weights(start, pairs)
            heads = np.sort(keys[:, :pairs], axis=1) & 1
            t = a * of_start + b * (heads @ np.arange(1, pairs + 1))
            found[begin : begin + rows, column] = few.null_cdf(start, pairs)[t]
    return found


def largest(p: np.ndarray, per_look: np.ndarray, least: np.ndarray, error: float) -> float:
    """Return the largest c at which `error` of draws reach max(c per_look, least) at some look."""
    allowed = error - 2 * math.sqrt(error * (1 - error) / len(p))
    slack = 1 + 1e-9
    always = (p <= least * slack).any(axis=1)
    reached = np.where(always, 0.0, (p / per_look).min(axis=1))
    rank = math.floor(allowed * len(p))
    # One part in a million less: the draw that would be one too many is not reached.
    return float(np.partition(reached, rank)[rank]) * (1 - 1e-6)


def constants(start: int, cap: int, p: np.ndarray) -> tuple[float, float]:
    """Return the constants of the levels away from 1 and towards 1."""
    looks = np.array([n for n in few.LOOKS if (start or few.LARGE_UNTIL) <= n <= cap])
    p, root = p[:, : len(looks)], np.sqrt(12 / looks)
    away = largest(p, root, np.zeros(len(looks)), AWAY)
    return away, largest(p, np.ones(len(looks)), away * root, TOWARDS)


def calibrate(draws: int, seed: int) -> None:
    found: dict[int, list[str]] = {cap: [] for cap in CAPS}
    for name, start in (("mixed", few.START), ("pairs", 0)):
        looks = tuple(n for n in few.LOOKS if n >= (start or few.LARGE_UNTIL))
        p = chances(start, looks, draws, seed)
        for cap in CAPS:
            away, towards = (math.floor(c * 1e6) / 1e6 for c in constants(start, cap, p))
            found[cap].append(f"{name} = {{ away = {away:.6f}, towards = {towards:.6f} }}")
    for cap, lines in found.items():
        print(f"[{cap}]", *lines, "", sep="\n")


def check(draws: int, seed: int) -> None:
    """Print the errors of both sides for studies of every length."""
    for name, start in (("mixed", few.START), ("pairs", 0)):
        looks = tuple(n for n in range(start or few.LARGE_UNTIL, 61))
        p = chances(start, looks, draws, seed)
        errors = []
        for most in (*range(looks[0], 31), 36, 42, 43, 50, 60):
            at = few.schedule(most, start).at
            column = p[:, [looks.index(n) for n in at]]
            both = np.array([few.levels(n, most, start) for n in at]) * (1 + 1e-9)
            errors.append([(column <= both[:, side]).any(axis=1).mean() for side in (0, 1)])
            if most in CAPS:
                of_away, of_towards = errors[-1]
                print(f"{name}, {most} blocks: {of_away:.3%} away, {of_towards:.3%} towards")
        most_away, most_towards = np.max(errors, axis=0)
        print(f"{name}, {len(errors)} lengths: at most {most_away:.3%} and {most_towards:.3%}")


def crossings(draws: int, seed: int) -> None:
    """Print the body of paribus/stats/crossings_few.toml."""
    levels = calibrate_looks.grid(GAINS)
    calibrate_looks.crossings(few.LOOKS, levels, draws, seed, whole=20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--check", action="store_true", help="check the levels in the table")
    parser.add_argument("--crossings", action="store_true", help="print the table of any_look_p")
    arguments = parser.parse_args()
    begin = time.perf_counter()
    if arguments.crossings:
        crossings(arguments.draws // 25, arguments.seed)
    elif arguments.check:
        check(arguments.draws // 2, arguments.seed + 1)
    else:
        calibrate(arguments.draws, arguments.seed)
    print(f"# {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
