"""Print the levels of the looks and the table of first crossings, and check every schedule.

    python tools/calibrate_looks.py             # paribus.stats.looks.LEVELS; about a minute
    python tools/calibrate_looks.py --crossings # paribus/stats/crossings.toml; about ten minutes
    python tools/calibrate_looks.py --check     # the levels in the code, and every other end;
                                                # and any_look_p against plain counting

With iid symmetric data without ties, signs are fair coins independent of the ranks, so the
signed-rank p values at all looks of a study have one joint distribution, whatever the data's.
It is drawn here: 62 random bits stand for |d|, one for its sign, and a sort gives W. The level
of a schedule is the largest multiple of 0.0001 at which the share of draws whose smallest p
over the looks is at or below it, plus two standard errors, stays at or below 1 - confidence.

For errors far below 1 % counting resolves nothing. There the chance of a first crossing at look j,
P(p at j <= a and at no earlier look), is P(p at j <= a), which is exact, times the share of
"no earlier look" among draws that do cross at j. Such draws are made by rejection: rank r gets
its sign with the odds exp(-s r), W <= k is kept with chance exp(-s (k - W)).
"""

from __future__ import annotations

import argparse
import math
import textwrap
import time
from collections.abc import Sequence

import numpy as np

from paribus.stats import looks
from paribus.stats.estimate import critical_rank, signed_rank_cdf

CONFIDENCES = (0.90, 0.95, 0.99)
CHUNK = 10_000

GAINS = ((8, 0.5), (12, 0.1), (18, 3e-4))
"""Looks whose gains of a rank are levels of the table, and up to which p."""


def p_values(keys: np.ndarray, n: int) -> np.ndarray:
    """Return the exact two-sided signed-rank p of the first `n` draws of each row."""
    heads = np.sort(keys[:, :n], axis=1) & 1
    w = heads.astype(np.int64) @ np.arange(1, n + 1)
    return np.minimum(1, 2 * signed_rank_cdf(n)[np.minimum(w, n * (n + 1) // 2 - w)])


def smallest_p(at: tuple[int, ...], draws: int, seed: int) -> np.ndarray:
    """Return, per draw, the smallest p over at[:1], at[:2], ... as columns."""
    rng = np.random.Generator(np.random.PCG64(seed))
    smallest = np.empty((draws, len(at)))
    for start in range(0, draws, CHUNK):
        rows = min(CHUNK, draws - start)
        keys = rng.integers(0, 2**63, size=(rows, at[-1]), dtype=np.int64)
        p = np.stack([p_values(keys, n) for n in at], axis=1)
        smallest[start : start + rows] = np.minimum.accumulate(p, axis=1)
    return smallest


def level(smallest: np.ndarray, alpha: float) -> float:
    """Return the largest multiple of 0.0001 whose error, plus two standard errors, is <= alpha."""
    error = alpha - 2 * math.sqrt(alpha * (1 - alpha) / len(smallest))
    exceeding = np.quantile(smallest, error, method="higher")
    a = math.floor(exceeding * 10_000) / 10_000
    while (smallest <= a + 1e-12).mean() > error:
        a -= 0.0001
    return round(a, 4)


def calibrate(draws: int, seed: int) -> None:
    every = looks.LOOKS + looks.LONGER
    columns: list[tuple[float, ...]] = []
    short = smallest_p(looks.LOOKS, draws, seed)
    long = smallest_p(every, draws // 4, seed + 1)
    for count in range(1, len(every) + 1):
        draws_of = short if count <= len(looks.LOOKS) else long
        p = draws_of[:, count - 1]
        columns.append(
            tuple(level(p, 1 - c) if count > 1 else round(1 - c, 4) for c in CONFIDENCES)
        )
        errors = "  ".join(
            f"{c:.0%}: {a:.4f} (errs {(p <= a + 1e-12).mean():.4%})"
            for c, a in zip(CONFIDENCES, columns[-1], strict=True)
        )
        print(f"{count:2d} looks to {every[count - 1]:4d}  {errors}", flush=True)
    for i, confidence in enumerate(CONFIDENCES):
        print(f"    {confidence}: {tuple(column[i] for column in columns)},")


def signs_that_cross(rng: np.random.Generator, draws: int, n: int, k: int) -> np.ndarray:
    """Return signs by rank (draw, rank), fair coins on condition that their W is at most k."""
    ranks = np.arange(1, n + 1)
    low, high = 0.0, 50.0
    for _ in range(60):
        slope = (low + high) / 2
        mean = (ranks / (1 + np.exp(np.minimum(slope * ranks, 700)))).sum()
        low, high = (slope, high) if mean > k else (low, slope)
    chance = (1 / (1 + np.exp(np.minimum(high * ranks, 700)))).astype(np.float32)
    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < draws:
        signs = rng.random((max(200, 2_000_000 // n), n), dtype=np.float32) < chance
        w = signs @ ranks
        keep = (w <= k) & (rng.random(len(w)) < np.exp(-high * np.maximum(k - w, 0)))
        kept.append(signs[keep])
    return np.concatenate(kept)[:draws]


def none_earlier(rng: np.random.Generator, at: tuple[int, ...], a: float, draws: int) -> float:
    """Return P(no p <= a at at[:-1] | p <= a at at[-1]), two standard errors on the safe side."""
    n = at[-1]
    k = critical_rank(n, a)
    if k < 0 or len(at) == 1:
        return 1.0
    critical = {m: critical_rank(m, a) for m in at[:-1]}
    none = drawn = 0
    while drawn < draws:
        rows = min(draws - drawn, max(200, 4_000_000 // n))
        signs = signs_that_cross(rng, rows, n, k)
        # Which rank came when is independent of the signs: a random order of the ranks.
        when = np.argsort(rng.random((rows, n), dtype=np.float32), axis=1)
        crossed = np.zeros(rows, dtype=bool)
        for m in at[:-1]:
            if critical[m] >= 0:
                here = when < m
                w = (np.cumsum(here, axis=1, dtype=np.int32) * (here & signs)).sum(axis=1)
                crossed |= (w <= critical[m]) | (w >= m * (m + 1) // 2 - critical[m])
        none += int((~crossed).sum())
        drawn += rows
    share = none / draws
    return min(1.0, share + 2 * math.sqrt(max(share * (1 - share), 1 / draws) / draws))


def grid(sizes: Sequence[tuple[int, float]]) -> list[float]:
    """Return the levels of the table: where looks gain a rank (`sizes`: blocks, and up to which
    p), and a scale between."""
    gains = {2 * float(p) for n, most in sizes for p in signed_rank_cdf(n) if 2 * p <= most}
    return sorted(
        {a for a in gains if a >= 1e-6} | {float(f"{10 ** (e / 6):.3g}") for e in range(-36, -1)}
    )


def crossings(every: Sequence[int], levels: list[float], draws: int, seed: int, whole: int) -> None:
    """Print the body of a table such as paribus/stats/crossings.toml, for the looks `every`.

    Beyond `whole` blocks a fifth of the draws has to do.

    Within a cell of the grid the share rises where look j gains a rank and falls where an earlier
    one does; the table has the larger of its values at the start and just before the end.
    """
    ends = [*levels[1:], 1.0]
    print(f"grid = {_listed(levels)}\n\n[none_earlier]", flush=True)
    for count in range(2, len(every) + 1):  # at the first look there is none earlier
        rng = np.random.Generator(np.random.PCG64([seed, count]))
        at = tuple(every[:count])
        of_look = draws if at[-1] <= whole else draws // 5
        row = [
            math.ceil(1000 * max(none_earlier(rng, at, x, of_look) for x in (a, b * (1 - 1e-9))))
            for a, b in zip(levels, ends, strict=True)
        ]
        print(f"{at[-1]} = {_listed(row)}", flush=True)


def _listed(values: Sequence[float]) -> str:
    """Return an array of TOML."""
    text = textwrap.fill(", ".join(map(repr, values)) + ",", 96)
    return f"[\n{textwrap.indent(text, ' ' * 4)}\n]"


def check_any_look(draws: int, seed: int) -> None:
    """Print how far any_look_p lies above the counted shares, over levels, ends and gaps."""
    schedules = [looks.schedule(n).at for n in (10, 12, 14, 18, 21, 27, 33, 40, 50, 60, 90, 200)]
    schedules += [(7, 11, 16, 25, 38, 58), (8, 10, 15, 23, 36), tuple(range(8, 30, 3))]
    for at in schedules:
        smallest = smallest_p(at, draws, seed)[:, -1]
        ratios = []
        for a in np.geomspace(2e-4, 0.3, 60):
            share = (smallest <= a + 1e-12).mean()
            error = math.sqrt(max(share, 1 / draws) / draws)
            ratios.append(((share - 3 * error) / looks.any_look_p(a, at), share, a))
        worst, share, a = max(ratios)
        typical = sorted(r[1] / looks.any_look_p(r[2], at) for r in ratios)[len(ratios) // 2]
        print(
            f"{at}: typically {typical:.3f} of any_look_p; most {worst:.3f} at {a:.5f}", flush=True
        )


def check(draws: int, seed: int) -> None:
    """Print the error of every schedule to 60 blocks and of some longer, with their levels."""
    ends = [*range(8, 61), 61, 75, 90, 91, 100, 120, 135, 136, 150, 200, 201, 300]
    for confidence in CONFIDENCES:
        errors = []
        for n in ends:
            schedule = looks.schedule(n, confidence)
            p = smallest_p(schedule.at, draws, seed)[:, -1]
            errors.append(((p <= schedule.level + 1e-12).mean(), n))
            if n == looks.LOOKS[-1]:
                print(f"{confidence:.0%}: the looks to {n} blocks err in {errors[-1][0]:.3%}")
        (least, at_least), (most, at_most) = min(errors), max(errors)
        print(
            f"{confidence:.0%}: {len(ends)} schedules err from {least:.3%} ({at_least} blocks)"
            f" to {most:.3%} ({at_most} blocks)",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4_000_000)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--check", action="store_true", help="check the levels in the code")
    parser.add_argument("--crossings", action="store_true", help="print the table of any_look_p")
    arguments = parser.parse_args()
    start = time.perf_counter()
    if arguments.crossings:
        every, levels = looks.LOOKS + looks.LONGER, grid(GAINS)
        crossings(every, levels, arguments.draws // 40, arguments.seed, looks.LOOKS[-1])
    elif arguments.check:
        check(arguments.draws // 8, arguments.seed + 2)
        check_any_look(arguments.draws // 8, arguments.seed + 3)
    else:
        calibrate(arguments.draws, arguments.seed)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
