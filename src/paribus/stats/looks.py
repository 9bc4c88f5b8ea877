"""When a study may look at its evidence, and at which level, so that looking costs nothing.

Looking six times at 5 % each would find "a difference" between identical arms in 16 % of
studies. Every look of a schedule uses the same smaller level instead (Pocock, Biometrika 64
(1977) 191), chosen so that all looks together err in 1 - confidence of them.
"""

from __future__ import annotations

from dataclasses import dataclass

LOOKS = (8, 12, 18, 27, 40, 60)
"""Complete blocks after which the evidence is weighed, each about half as many again."""

LONGER = (90, 135, 200, 300, 450, 675, 1000)
"""The looks of studies that may go on beyond 60 blocks."""

# Largest level at which studies with 1, 2, 3, ... looks err in at most 1 - confidence of them:
# tools/calibrate_looks.py, 4,000,000 draws (1,000,000 beyond 60 blocks), seed 2026, two standard
# errors on the safe side. One exception: 0.0140 would do for the six looks to 60 blocks at 95 %
# (it errs in 4.97 %); 0.0130 (4.69 %) is what Paribus documents and what its plans say.
LEVELS = {
    0.90: (
        *(0.1000, 0.0771, 0.0538, 0.0409, 0.0343, 0.0288),
        *(0.0245, 0.0222, 0.0200, 0.0174, 0.0159, 0.0154, 0.0139),
    ),
    0.95: (
        *(0.0500, 0.0390, 0.0236, 0.0200, 0.0158, 0.0130),
        *(0.0120, 0.0100, 0.0089, 0.0078, 0.0078, 0.0072, 0.0067),
    ),
    0.99: (
        *(0.0100, 0.0078, 0.0065, 0.0047, 0.0034, 0.0027),
        *(0.0023, 0.0019, 0.0017, 0.0015, 0.0014, 0.0012, 0.0011),
    ),
}


@dataclass(frozen=True, slots=True)
class Looks:
    """The blocks `at` which to look, and the nominal two-sided error `level` at each of them."""

    at: tuple[int, ...]
    level: float

    @property
    def confidence(self) -> float:
        """The confidence level of the interval at each look: what `compare` takes."""
        return 1 - self.level


def schedule(blocks: int, confidence: float = 0.95) -> Looks:
    """Return the looks of a study of at most `blocks` blocks, the last at `blocks` itself.

    A study that ends between two looks uses the level of the one that ends at the later of them
    and so errs less, if anything (checked by tools/calibrate_looks.py --check). Raises ValueError
    for fewer than 8 blocks, with which no verdict is possible, for more than 1000, and for a
    confidence that has no tabulated levels.
    """
    every = LOOKS + LONGER
    if blocks < every[0]:
        raise ValueError(
            f"{blocks} blocks: no verdict is possible with fewer than {every[0]}, because chance "
            f"alone favours one arm in all of {blocks} blocks too often"
        )
    if blocks > every[-1]:
        raise ValueError(f"{blocks} blocks: looks are planned for at most {every[-1]}")
    if confidence not in LEVELS:
        allowed = ", ".join(f"{c:.2f}" for c in LEVELS)
        raise ValueError(f"confidence {confidence}: looks are calibrated for {allowed}")
    at = (*(n for n in every if n < blocks), blocks)
    return Looks(at, LEVELS[confidence][len(at) - 1])
