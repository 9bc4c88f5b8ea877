"""The energy that launches took, as a report shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["rapl", "nvml", "ipmi", "slurm"]
"""Who counted it: processors, GPUs, the machine's BMC, or the scheduler."""


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of a launch of `benchmark` in `arm`, over that in the reference, as `source` says.

    `ratio` is of `blocks` and has the interval [low, high] at `level`; `word` says what that means
    against `margin`. `joules` are the medians of the reference and of the arm.
    """

    benchmark: str
    arm: str
    blocks: int
    ratio: float
    low: float
    high: float
    level: float
    margin: float
    word: Literal["less", "more", "equal", "undecided", "withheld"]
    joules: tuple[float, float]
    source: Source = "rapl"
