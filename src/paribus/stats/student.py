"""Student's t distribution."""

from __future__ import annotations

import math
from statistics import NormalDist


def quantile(tail: float, freedom: int) -> float:
    """Return what a variable of the t distribution exceeds with probability `tail`.

    Exact at 2 degrees. Else by the expansion in 1 / freedom (Abramowitz & Stegun 26.7.5), to the
    fourth order: 0.2 % too low at 3 degrees and a tail of 0.025, 0.03 % at 5, 0.01 % at 11 and a
    tail of 0.001.
    """
    if freedom == 2:
        return (1 - 2 * tail) / math.sqrt(2 * tail * (1 - tail))
    z = NormalDist().inv_cdf(1 - tail)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom ** (n + 1) for n, term in enumerate(terms))


def p_value(t: float, freedom: int) -> float:
    """Return the two-sided p: the chance that a variable of the t distribution is as far from 0.

    Exact but for rounding (Abramowitz & Stegun 26.7.3 and 26.7.4).
    """
    angle = math.atan(abs(t) / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    terms = [term] if freedom > 1 else []
    for n in range(3 if odd else 2, freedom - 1, 2):
        term *= square * (n - 1) / n
        terms.append(term)
    nearer = math.sin(angle) * math.fsum(terms)
    return max(0.0, 1 - ((angle + nearer) * 2 / math.pi if odd else nearer))
