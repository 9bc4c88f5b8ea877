"""The sentences of reports on the design for few launches: looks from 6 blocks on.

The first launches are in one random order, except in sessions and duets.
"""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Judgement, count, percent
from paribus.words.designs.standard import Words
from paribus.words.lists import listed


class FewWords(Words):
    """The sentences of a study of few launches."""

    shuffles = True

    @property
    def _start(self) -> str:
        return count(self.shuffled, "launch")

    @property
    def _goes_on(self) -> bool:
        return self.settings.blocks > self.shuffled

    def sentence(self) -> str:
        rest = ", then pairs of neighbouring launches" * self._goes_on
        return (
            f"{self._start} of each arm in one random order{rest}; the launch is the experimental"
            " unit."
        )

    def compared(self) -> str:
        rest = ", then launch by launch within each block" * self._goes_on
        return f"between all of the first {self._start} of each arm{rest}"

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        rows, sure = super().rows(looks, level), percent(self.settings.confidence)
        start = f"{self._start} of each arm in one random order, then " if self.shuffled else ""
        sides = "1.5 % of the error away from a ratio of 1 and 3.5 % towards it"
        return rows | {
            "Design": "few launches",
            "Order": start + rows["Order"],
            "Confidence": f"{sure} over all looks, {sides}",
        }

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        said = [f"design for few launches: looks after {', '.join(map(str, looks))} blocks"]
        if self.shuffled:
            said.append(f"  the first {self._start} of each arm are in one random order")
        return said

    def in_blocks(self) -> str:
        if not self.shuffled:
            return super().in_blocks()
        said = (
            f"The first {self._start} of each of {self.arms()} were started in one order, drawn at"
            f" random {self.seed()}."
        )
        if self._goes_on:
            said += f" Blocks followed: each held one launch of each arm, {self.placed()}."
        return said

    def estimated(self, judgement: Judgement) -> str:
        """Return what the ratio and its interval are, and which headlines rest on signs."""
        said = super().estimated(judgement)
        if self.shuffled:
            said = (
                f"{self.against()} is the weighted median of the differences between the arms'"
                " logarithms in the shuffled start and of the averages of two log ratios within"
                " later blocks, with the exact interval of the two counts together (Mann-Whitney"
                " and signed rank)."
            )
        signs = {f.benchmark for f in judgement.headlines if f.verdict.figures.get("uneven")}
        if signs:
            said += (
                f" The arms' launches of {listed(sorted(signs), last=' and ')} scattered"
                " differently: there the ratio is the median within blocks, with the exact interval"
                " of the sign test."
            )
        return said

    def level(self, level: float) -> str:
        return (
            "Each end of an interval has a level of its look and of its side, 1.5 % away from a"
            " ratio of 1 and 3.5 % towards it over all looks"
        )
