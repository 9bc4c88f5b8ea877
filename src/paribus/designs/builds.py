"""Builds: each block has another build of every arm, with another layout; the build counts once.

Where the linker puts functions and data moves figures by several per cent, and alike in all
launches of a build. So these are no evidence about what was changed (T. Mytkowicz et al.,
ASPLOS'09, 265; C. Curtsinger, E. D. Berger, ASPLOS'13, 219).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from paribus.core import MOST_BUILDS, Judgement, Notice, NoticeName, count
from paribus.designs.sessions import Sessions, logs_of
from paribus.stats.looks import LOOKS, Looks
from paribus.stats.sessions import analysed

if TYPE_CHECKING:
    from paribus.judge.evidence import Evidence
    from paribus.plan import Plan


class Builds(Sessions):
    """Sessions in which a new build takes the place of a switch."""

    noun = "build"
    blocks_key = "builds"
    failed = "The value of a build is that of its launches that succeeded."
    value = (
        "Each block has another build of every arm, with another layout. The value of a build is"
        " the median of its launches{which}; its launches are repetitions, not independent"
        " evidence. The ratio compares builds of the same block only."
    )
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
        """Return the looks; of fewer builds than the first takes, there is no verdict."""
        if self.builds < self.first_look:
            return Looks((self.first_look,), 1 - self.settings.confidence)
        return super().looks()

    def notices(self, plan: Plan, evidence: Evidence) -> Iterable[Notice]:
        """Yield how much of the scatter of launches follows the build."""
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

    # --- words ---

    def counted(self, blocks: int) -> str:
        return f"{count(blocks, 'build')} of each arm"

    def compared(self) -> str:
        return "build by build within each block, a build being the median of its launches"

    def too_few(self, looks: Sequence[int]) -> str:
        """Return that there is no verdict on so few builds, "" where there may be one."""
        few = bool(looks) and self.settings.blocks < looks[0]
        return f"no verdict: it takes {looks[0]} builds of each arm" if few else ""

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        first, *rest = super().to_come(looks, level)
        return [self.too_few(looks) or first, *rest]

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        rows = super().rows(looks, level)
        return rows | {"Looks": self.too_few(looks) or rows["Looks"]}

    def stopped(self, judgement: Judgement) -> str:
        few = self.too_few(judgement.looks)
        return f"{few.capitalize()}." if few else super().stopped(judgement)

    def launched(self) -> str:
        several = count(self.settings.launches, "launch")
        return (
            f"Each block had another build of each arm ({self.arms()}), with another layout,"
            f" {self.drawn()} {self.seed()}. A build had a warm-up launch and then {several};"
            " the median of these counts once."
        )
