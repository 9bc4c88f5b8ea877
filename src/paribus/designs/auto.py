"""The default design: the warm-up decides between few launches, if these are long, and standard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from paribus.core import State, Study
from paribus.designs.standard import Design
from paribus.stats.looks import FEW_LOOKS

if TYPE_CHECKING:
    from paribus.judge.evidence import Evidence
    from paribus.plan import Plan

EXPENSIVE_S = 120.0
"""Seconds of a warm-up launch above which the design for few launches is chosen."""


class Auto(Design):
    """The standard design until the warm-up is over."""

    is_open = True

    def settled(self, study: Study) -> Study:
        """Return `study` with the standard design if there is no choice.

        For sessions and duets, which have no start to shuffle, `few` is chosen only on request.
        """
        if self.session or self.at_once or why_not_few(self.study):
            return replace(study, settings=replace(study.settings, design="standard"))
        return study

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        first = _few(self.study).looks().at[0]
        later = f"  from {first} on where a warm-up launch takes over {EXPENSIVE_S / 60:g} min"
        return [*super().to_come(looks, level), later]

    def chosen(self, frozen: Plan, evidence: Evidence) -> Plan:
        """Return the plan of few launches if a good launch of the warm-up was expensive."""
        warm = [
            entry.wall_s
            for label in frozen.metrics
            for entry in evidence.blocks.get(label, {}).get(0, {}).values()
            if entry.state is State.OK
        ]
        return self.after(frozen, max(warm, default=0.0))

    def after(self, frozen: Plan, longest_s: float) -> Plan:
        return as_few(frozen) if longest_s > EXPENSIVE_S else frozen


def why_not_few(study: Study) -> tuple[str, str] | None:
    """Return why a study cannot have the design "few", and the fix; None if it can."""
    settings = study.settings
    if len(study.arms) != 2:
        return "compares two arms", "make a study for each pair of arms"
    if settings.confidence != 0.95:
        return "is calibrated for a confidence of 0.95", "leave confidence out"
    if settings.blocks > FEW_LOOKS[-1]:
        return f"ends after {FEW_LOOKS[-1]} blocks at the latest", "lower blocks"
    if settings.monitor or study.scaling or settings.decides != "headline":
        return (
            "has an end and compares one size by its headline",
            "leave out monitor, [scaling] and `decides`",
        )
    return None


def as_few(frozen: Plan) -> Plan:
    """Return `frozen` with the looks and the order of the design of few launches.

    Its digest stays that of the stored plan.
    """
    design = _few(frozen.study)
    launches = tuple(design.launches(frozen.even))
    return replace(frozen, study=design.study, looks=design.looks(), launches=launches)


def _few(study: Study) -> Design:
    from paribus.designs import design_of

    return design_of(replace(study, settings=replace(study.settings, design="few")))
