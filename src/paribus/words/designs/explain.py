"""The sentences of reports on a study that explains which change makes the difference."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Judgement, count, percent
from paribus.core.changes import confidence_of, parts_of
from paribus.words.designs.standard import Words


class ExplainWords(Words):
    """The sentences of a study that says which change makes the difference."""

    @property
    def _several(self) -> str:
        return count(len(parts_of(self.study)), "change")

    @property
    def _sure(self) -> float:
        return confidence_of(self.study, parts_of(self.study))

    def sentence(self) -> str:
        return (
            f"Blocks of both arms and of combinations of their {self._several}, in random order;"
            " the launch is the experimental unit."
        )

    def promise(self, *, several_looks: bool) -> str:
        over = "all parts, the whole and all looks" if several_looks else "all parts and the whole"
        return f"Intervals: {percent(self._sure)} confidence over {over}."

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        order = f"both arms and combinations of {self._several} per block, in random order"
        rows = super().rows(looks, level)
        sure = f"{percent(self._sure)} over all parts, the whole and looks"
        sure += f", {percent(level)} at each" if looks else ""
        return rows | {"Design": "explain", "Order": order, "Confidence": sure}

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        named = [f"  {part.name}: {', '.join(part.keys)}" for part in parts_of(self.study)]
        return [*super().to_come(looks, level), f"explains {self._several}:", *named]

    def in_blocks(self) -> str:
        return (
            f"Launches of {self.arms()} and of combinations of their {self._several} were"
            f" randomised in blocks, {self.drawn()} {self.seed()}."
        )

    def estimated(self, judgement: Judgement) -> str:
        means, medians = "by least squares or means", "from one value of each block in the same way"
        how = means if len(parts_of(self.study)) > 3 else medians
        return (
            f"{super().estimated(judgement)} The part of a change is its mean effect over the"
            f" orders in which the changes can be switched (its Shapley value), estimated {how}."
        )
