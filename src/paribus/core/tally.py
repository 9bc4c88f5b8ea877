"""How many launches came to what: every launch that is stored is counted here once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Tally:
    """Launches of one benchmark in one arm, by what came of them; all took `wall_s` seconds.

    `counted` are those that the report rests on and `rerun` those of blocks that do not count: the
    `launches` are both, and of these some `failed`, `timed_out`, were `invalid`, or met a machine's
    `faults`. `first` are first attempts, without faults, and `first_failed` those that failed: by
    them reliability is judged. Apart is the `warm_up`, its reruns included, and those of it that
    gave no usable output, `warm_up_failed`.
    """

    benchmark: str
    arm: str
    counted: int
    failed: int
    timed_out: int
    invalid: int
    first_error: str = ""
    warm_up: int = 0
    warm_up_failed: int = 0
    wall_s: float = 0.0
    rerun: int = 0
    faults: int = 0
    first: int = 0
    first_failed: int = 0

    @property
    def launches(self) -> int:
        return self.counted + self.rerun

    @property
    def failures(self) -> int:
        """Return how many of the launches gave nothing usable."""
        return self.failed + self.timed_out + self.invalid + self.faults


class Total(NamedTuple):
    """Sums over tallies: launches and first attempts, and how many of either gave nothing usable.

    The warm-up is left out.
    """

    launches: int
    failures: int
    first: int
    first_failed: int

    @property
    def text(self) -> str:
        """Return the failures for people: "6 of 64 launches failed (4 of 60 first attempts)"."""
        return f"{self.failures} of {self.launches} launches failed{self.of_first}"

    @property
    def of_first(self) -> str:
        """Return " (4 of 60 first attempts)"; "" where these are all launches, or none failed."""
        told = self.first and self.failures and self.first < self.launches
        return f" ({self.first_failed} of {self.first} first attempts)" if told else ""


def total(tallies: Iterable[Tally]) -> Total:
    """Return the sums over some tallies."""
    listed = list(tallies)
    return Total(
        sum(one.launches for one in listed),
        sum(one.failures for one in listed),
        sum(one.first for one in listed),
        sum(one.first_failed for one in listed),
    )
