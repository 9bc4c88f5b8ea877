"""Print the level of each look (paribus.stats.looks.LEVELS), and check every schedule.

    python tools/calibrate_looks.py            # about a minute
    python tools/calibrate_looks.py --check    # the levels in the code, and every other end

With iid symmetric data without ties, signs are fair coins independent of the ranks, so the
signed-rank p values at all looks of a study have one joint distribution, whatever the data's.
It is drawn here: 62 random bits stand for |d|, one for its sign, and a sort gives W. The level
of a schedule is the largest multiple of 0.0001 at which the share of draws whose smallest p
over the looks is at or below it, plus two standard errors, stays at or below 1 - confidence.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from paribus.stats import looks
from paribus.stats.estimate import signed_rank_cdf

CONFIDENCES = (0.90, 0.95, 0.99)
CHUNK = 10_000


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
    arguments = parser.parse_args()
    start = time.perf_counter()
    if arguments.check:
        check(arguments.draws // 8, arguments.seed + 2)
    else:
        calibrate(arguments.draws, arguments.seed)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
