"""Bounds on a share of simulated studies that hold for a sample of them too."""

from __future__ import annotations

import math

from scipy.stats import hypergeom

CHANCE = 1e-5
"""How often a sample lies beyond its bound though all studies keep theirs."""


def at_most(share: float, tried: int, of: int) -> float:
    """Return the bound on a share among `tried` studies drawn from `of` that keep `share`.

    That of the hypergeometric distribution; `share` itself where all are tried.
    """
    most = math.floor(share * of + 1e-9)
    return float(hypergeom.ppf(1 - CHANCE, of, most, tried)) / tried
