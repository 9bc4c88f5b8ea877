"""All checks that need no launch, in order, and how many studies each takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from validation import (
    awkward,
    constructed,
    controls,
    errors,
    exactness,
    families,
    few,
    links,
    parts,
    screens,
    speed,
    steady,
    units,
)
from validation.figures import Check


@dataclass(frozen=True, slots=True)
class Planned:
    """A check, and the size of it for the page and for the tests (the same where that is quick)."""

    number: int
    check: Callable[[int], Check]
    size: int
    test_size: int

    @property
    def name(self) -> str:
        """The function's name: what the tests are called after."""
        return self.check.__name__


CHECKS = (
    Planned(1, errors.identical_arms, 10_000, 4000),
    Planned(2, errors.identical_recorded_arms, 10_000, 4000),
    Planned(3, errors.effect_at_the_margin, 10_000, 4000),
    Planned(4, errors.final_intervals, 10_000, 4000),
    Planned(5, errors.quiet_machine, 10_000, 4000),
    Planned(6, errors.outlying_launches, 10_000, 4000),
    Planned(7, controls.negative_controls, 10_000, 4000),
    Planned(8, exactness.exactness, 200, 200),
    Planned(9, exactness.equivariance, 200, 200),
    Planned(10, exactness.randomiser, 10_000, 10_000),
    Planned(11, families.ten_cases, 2000, 300),
    Planned(12, constructed.failures, 10_000, 4000),
    Planned(13, errors.planner, 1000, 300),
    Planned(16, speed.speed, 10_000, 1000),
    Planned(17, families.share_of_wrong_words, 2000, 600),
    Planned(18, families.few_cases, 1000, 100),
    Planned(19, families.headline_of_ten, 10_000, 4000),
    Planned(20, families.several_arms, 4000, 1000),
    Planned(21, units.sessions, 10_000, 2000),
    Planned(22, units.monitor, 10_000, 1000),
    Planned(23, awkward.false_alarms, 10_000, 4000),
    Planned(26, few.few_launches, 10_000, 4000),
    Planned(27, few.few_launches_unlike, 10_000, 1000),
    Planned(28, few.few_launches_cost, 10_000, 2000),
    Planned(29, few.few_launches_exactness, 200, 200),
    Planned(30, parts.explained, 1000, 200),
    Planned(31, screens.screens, 100, 10),
    Planned(32, steady.steps_within_launches, 500, 100),
    Planned(33, links.links, 200, 60),
    Planned(34, screens.in_batches, 200, 40),
)
"""Fixed seeds: the same size gives the same figures, on every machine."""
