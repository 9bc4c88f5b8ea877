"""Builds: each block has another build of every arm, with another layout; the build counts once.

Where the linker puts functions and data moves figures by several per cent, and equally in all
launches of a build. So launches of one build are no independent evidence of a change (T. Mytkowicz
et al., ASPLOS'09, 265; C. Curtsinger, E. D. Berger, ASPLOS'13, 219).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING

from paribus.core import MOST_BUILDS, Notice, NoticeName
from paribus.designs.sessions import Sessions, logs_of
from paribus.stats.looks import LOOKS, Looks
from paribus.stats.sessions import analysed
from paribus.words.designs.builds import BuildsWords

if TYPE_CHECKING:
    from paribus.judge.evidence import Evidence
    from paribus.plan import Plan


class Builds(BuildsWords, Sessions):
    """Sessions in which a new build takes the place of a switch."""

    unit = "build"
    first_look = LOOKS[0]
    most_blocks = MOST_BUILDS

    @property
    def builds(self) -> int:
        return self.settings.blocks

    def refusal(self) -> tuple[str, object, str, str] | None:
        if self.settings.design == "few":
            return "design", "few", "is of launches, and here builds count", "remove it"
        return super().refusal()

    def looks(self) -> Looks:
        """Return the looks; with too few builds for the first one, a look that is not reached."""
        if self.builds < self.first_look:
            return Looks((self.first_look,), 1 - self.settings.confidence)
        return super().looks()

    def notices(self, plan: Plan, evidence: Evidence) -> Iterable[Notice]:
        """Yield notes on how much of the scatter of launches is between builds."""
        for label in plan.metrics:
            arms = {arm.name: logs_of(plan, evidence, label, arm.name) for arm in plan.study.arms}
            medians = {name: list(map(statistics.median, logs)) for name, logs in arms.items()}
            if min(map(len, medians.values())) < 2:
                continue
            sd_build, sd_launch = analysed(list(arms.values()))
            both = sd_build**2 + sd_launch**2
            figures = {
                "builds": min(map(len, medians.values())),
                "per_build": plan.session,
                "least": self.first_look,
                "apart": {name: math.exp(max(of) - min(of)) - 1 for name, of in medians.items()},
            }
            if both > 0:
                figures |= {"sd_build": sd_build, "sd_launch": sd_launch}
                figures["share"] = sd_build**2 / both
            yield Notice(NoticeName.BUILDS, "note", (label,), figures)
