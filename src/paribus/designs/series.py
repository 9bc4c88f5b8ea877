"""Arms in an order, such as releases of a library: the step between neighbours is judged too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paribus.core import Comparison, Metric, Reason, Verdict, Word, count
from paribus.designs.standard import Design, Said, Series
from paribus.stats.estimate import compare
from paribus.stats.looks import Looks, schedule
from paribus.stats.verdict import blocks_needed, judge

if TYPE_CHECKING:
    from paribus.judge.evidence import Evidence

LEAST_ARMS, MOST_ARMS = 3, 20
"""The number of arms of a series: two are an ordinary study, and all share the error."""


class InOrder(Design):
    """Blocks of all arms; the neighbours of the order and its ends share the error of the study."""

    ranks = False

    def refusal(self) -> tuple[str, object, str, str] | None:
        arms, settings = len(self.study.arms), self.settings
        if "series" not in self.study.asked:
            fix = 'say what the arms are an order of: [series] over = "mpi"'
            return "design", "series", "is of a study with a table [series]", fix
        if not LEAST_ARMS <= arms <= MOST_ARMS:
            fix = f"give {LEAST_ARMS} to {MOST_ARMS}; compare two without [series]"
            return "design", "series", f"is of several arms, not of {arms}", fix
        if settings.unit != "launch" or settings.layout == "duet" or settings.monitor:
            fix = "remove unit, layout and monitor, or [series]"
            return "design", "series", "is of launches with an end", fix
        return super().refusal()

    def looks(self) -> Looks:
        """Return the looks: every pair of neighbours and the two ends have a share of the error."""
        settings = self.settings
        several = len(self.study.arms)
        return schedule(settings.blocks, settings.confidence, comparisons=several)

    def logs(
        self, evidence: Evidence, arms: tuple[str, str], of: Sequence[tuple[str, Metric]]
    ) -> Mapping[int, float] | None:
        """Return the log ratios of an arm to the one before it; None for several benchmarks."""
        names = [arm.name for arm in self.study.arms]
        place = names.index(arms[1])
        if len(of) != 1 or place < 2:
            return None  # the step of the second arm is its headline
        label, metric = of[0]
        before, after = (
            self.levels(evidence, label, name, metric) for name in (names[place - 1], arms[1])
        )
        both = sorted(before.keys() & after.keys())
        found = {block: after[block] - before[block] for block in both if block > 0}
        return {block: ratio for block, ratio in found.items() if not math.isnan(ratio)}

    def look(self, series: Series, looks: Sequence[int], *, last: bool) -> Said:
        """Return verdict and comparison of an arm; final only if its step is decided too."""
        verdict, comparison = super().look(series, looks, last=last)
        if not verdict.final or last or series.logs is None:
            return verdict, comparison
        found = step(series.logs, series.blocks[: looks[-1]], series.level)
        if found is None:
            return verdict, comparison
        if judge(found, better=series.better, margin=series.margin, last=False).final:
            return verdict, comparison
        code = Reason.STEP_UNDECIDED
        return Verdict(Word.UNDECIDED, code, final=False, figures=verdict.figures), comparison

    def needed(self, series: Series, blocks: int) -> int | None:
        """Return about how many blocks verdicts on an arm and on its step need."""
        of_arm = super().needed(series, blocks)
        if of_arm is None or not series.logs:
            return of_arm
        of_step = blocks_needed(list(series.logs.values()), series.margin, series.level)
        return of_arm if of_step is None else max(of_arm, of_step)

    def sentence(self) -> str:
        many = count(len(self.study.arms), "arm")
        return f"Blocks of {many} in an order; the launch is the experimental unit."


def step(logs: Mapping[int, float], blocks: Sequence[int], level: float) -> Comparison | None:
    """Return the comparison of two neighbours over these blocks; None if no block has both."""
    row = [logs[block] for block in blocks if block in logs]
    return compare(row, level) if row else None
