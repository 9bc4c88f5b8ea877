"""All checks that need no launch, in order, and how many studies each takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from validation import controls, errors, exactness
from validation.figures import Check


@dataclass(frozen=True, slots=True)
class Planned:
    """A check, and the size of it for the page and for the tests (the same where that is quick)."""

    check: Callable[[int], Check]
    size: int
    test_size: int

    @property
    def name(self) -> str:
        """The function's name: what the tests are called after."""
        return self.check.__name__


CHECKS = (
    Planned(errors.identical_arms, 10_000, 4000),
    Planned(errors.identical_recorded_arms, 10_000, 4000),
    Planned(errors.effect_at_the_margin, 10_000, 4000),
    Planned(errors.final_intervals, 10_000, 4000),
    Planned(errors.quiet_machine, 10_000, 4000),
    Planned(errors.outlying_launches, 10_000, 4000),
    Planned(controls.negative_controls, 10_000, 4000),
    Planned(exactness.exactness, 200, 200),
    Planned(exactness.equivariance, 200, 200),
    Planned(exactness.randomiser, 10_000, 10_000),
    Planned(errors.planner, 1000, 300),
)
"""Fixed seeds: the same size gives the same figures, on every machine."""
