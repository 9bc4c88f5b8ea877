"""The figures of launches that a judgement rests on, one launch after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from paribus.core import Figures
from paribus.judge.evidence import Evidence
from paribus.plan import Plan


@dataclass(frozen=True, slots=True)
class FiguresOfLaunches:
    """The figures of every counting launch of a study, as its `evidence` has them.

    `begin` is when the first launch started, in seconds since the epoch.
    """

    plan: Plan
    evidence: Evidence
    begin: float

    def __iter__(self) -> Iterator[Figures]:
        """Yield them by benchmark, arm and block; the figures of what decides come first."""
        for label, metrics in self.plan.metrics.items():
            of = {metric.name: metric for metric in metrics}
            entries = self.evidence.entries(label)
            for arm in self.plan.study.arms:
                for entry in entries:
                    launch = entry.launch
                    if launch.arm == arm.name and self.evidence.counted(launch):
                        place = (launch.arm, launch.block, launch.number)
                        yield Figures(*place, entry.started - self.begin, label, of, entry.medians)
