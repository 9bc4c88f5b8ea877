"""The sentences of reports on a study whose blocks have builds of their own."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Judgement, count
from paribus.words.designs.sessions import SessionsWords


class BuildsWords(SessionsWords):
    """The sentences of a study whose unit is the build."""

    noun = "build"
    blocks_key = "builds"
    failed = "The value of a build is that of its launches that succeeded."
    value = (
        "Each block has another build of every arm, with another layout. The value of a build is"
        " the median of its launches{which}; its launches are repetitions, not independent"
        " evidence. The ratio compares builds of the same block only."
    )

    def counted(self, blocks: int) -> str:
        return f"{count(blocks, 'build')} of each arm"

    def compared(self) -> str:
        return "build by build within each block, a build being the median of its launches"

    def too_few(self, looks: Sequence[int]) -> str:
        """Return a clause if there are too few builds for a verdict, else ""."""
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
