"""Single order statistics of all pairwise sums, without making the sums: for many blocks.

The n (n + 1) / 2 sums of 5,000 values take 100 MB and a quarter of a second to order; the few that
an interval needs are found by counting how many lie below a guess, which sorted values make cheap.
Idea: D. B. Johnson & T. Mizoguchi, SIAM J. Comput. 7 (1978) 147.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FEW = 8
"""Sums per value that are sorted at the end, instead of halving the range further."""

SAMPLE = 64
"""Values whose sums give the first guess."""


def ordered_sums(values: Floats, ranks: Sequence[int]) -> list[float]:
    """Return the sums x_i + x_j, i <= j, of `ranks` (from 0) in ascending order of all sums.

    `values` are finite, in any order. Equal to sorting all sums, to the last bit but one.
    """
    import numpy as np

    ordered = np.sort(values)
    n = len(ordered)
    spread = ordered[np.linspace(0, n - 1, min(n, SAMPLE)).astype(int)]
    one, other = np.triu_indices(len(spread))
    guesses = np.sort(spread[one] + spread[other])
    total = n * (n + 1) // 2
    return [_at_rank(ordered, rank, guesses, rank / max(1, total - 1)) for rank in ranks]


def _at_rank(ordered: Floats, rank: int, guesses: Floats, share: float) -> float:
    """Return the sum of `rank`; about `share` of the `guesses` lie below it."""
    import numpy as np

    n = len(ordered)
    beyond = 1e-9 * float(ordered[-1] - ordered[0] + np.abs(ordered).max()) + 1e-300
    place, step = int(share * (len(guesses) - 1)), max(1, len(guesses) // 50)
    # At most `rank` sums are at or below `low`, more than `rank` at or below `high`.
    low, high = 2 * float(ordered[0]) - beyond, 2 * float(ordered[-1]) + beyond
    below, up_to = 0, n * (n + 1) // 2
    nearer = [
        float(guesses[max(0, place - step)]),
        float(guesses[min(len(guesses) - 1, place + step)]),
    ]
    while up_to - below > FEW * n:
        middle = nearer.pop() if nearer else low / 2 + high / 2
        if not low < middle < high:
            if nearer or middle not in (low, high):
                continue
            return high  # all sums left are equal to it
        count = int(_partners(ordered, middle).sum())
        if count > rank:
            high, up_to = middle, count
        else:
            low, below = middle, count
    begins = _partners(ordered, low)
    counts = _partners(ordered, high) - begins
    rows = np.repeat(np.arange(n), counts)
    inside = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    sums = ordered[rows] + ordered[rows + begins[rows] + inside]
    return float(np.sort(sums)[rank - int(begins.sum())])


def _partners(ordered: Floats, limit: float) -> NDArray[np.int64]:
    """Return, for each x_i, how many x_j with j >= i give a sum at or below `limit`."""
    import numpy as np

    found = np.searchsorted(ordered, limit - ordered, side="right") - np.arange(len(ordered))
    partners: NDArray[np.int64] = np.maximum(found, 0)
    return partners
