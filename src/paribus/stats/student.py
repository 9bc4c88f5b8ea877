"""Student's t distribution."""

from __future__ import annotations

from statistics import NormalDist


def quantile(tail: float, freedom: int) -> float:
    """Return what a variable of the t distribution exceeds with probability `tail`.

    By the expansion in 1 / freedom (Abramowitz & Stegun 26.7.5): 6 % too low at 2 degrees and a
    tail of 0.0125, 1 % at 5.
    """
    z = NormalDist().inv_cdf(1 - tail)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + ((third / freedom + second) / freedom + first) / freedom
