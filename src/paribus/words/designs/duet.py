"""The sentences of reports on duets: the arms of a block are launched at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.words.designs.standard import Words


class DuetWords(Words):
    """The sentences of a study of duets."""

    share = " for each arm of a duet"
    nearness = "at the same time, each on half of the cores"
    shuffles = False

    def sentence(self) -> str:
        return (
            "Duets: the arms of a block were launched at the same time, each on its own share of"
            " the cores, assigned at random."
        )

    def compared(self) -> str:
        return "between launches that ran at the same time"

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        order = "the arms of a block at the same time, each on half of the cores"
        return super().rows(looks, level) | {"Order": order}

    def placed(self) -> str:
        return (
            "started at the same time, each on its own share of the cores, which was assigned at"
            f" random {self.seed()}"
        )
