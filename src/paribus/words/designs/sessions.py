"""The sentences of reports on sessions: launches between two switches of the factor."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import count
from paribus.words.designs.standard import Words


class SessionsWords(Words):
    """The sentences of a study whose unit is the session."""

    noun = "session"
    failed = "The value of a session is that of its launches that succeeded."
    value = (
        "A session lies between two switches of the factor. Its value is the median of its"
        " launches{which}; its launches are repetitions, not independent evidence. A block holds"
        " one session of every arm, in random order; the ratio compares sessions of the same block"
        " only."
    )
    shuffles = False

    def sentence(self) -> str:
        return (
            f"{self.noun.capitalize()}s of {count(self.settings.launches, 'launch')}, each arm once"
            f" per block {self.at_random()}; the median of a {self.noun} counts once."
        )

    def counted(self, blocks: int) -> str:
        several = "pair" if len(self.study.arms) == 2 else "round"
        return f"{count(blocks, several)} of sessions"

    def launched_in(self, blocks: int) -> str:
        return f" in {self.counted(blocks)}"

    def compared(self) -> str:
        return "session by session within each pair, a session being the median of its launches"

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        rows = super().rows(looks, level)
        order = f"{self.noun}s of {count(self.settings.launches, 'launch')}, {rows['Order']}"
        return rows | {"Order": order}

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        several = count(self.settings.launches, "launch")
        unit = f"{self.noun}s of {several} and a warm-up; the {self.noun} is the unit"
        return [*super().to_come(looks, level), unit]

    def launched(self) -> str:
        several = len(self.study.benchmarks) > 1
        benchmarks = "each benchmark" if several else "the benchmark"
        return (
            f"Sessions of {self.arms()} were randomised in blocks: each block held one session of"
            f" each arm, {self.drawn()} {self.seed()}. A session was a warm-up launch of"
            f" {benchmarks} and then {count(self.settings.launches, 'launch')} of it; the median of"
            " these launches counts once."
        )
