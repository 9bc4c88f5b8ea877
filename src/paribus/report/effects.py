"""Headlines as effects in one direction, times as slow, as terminal and page draw them.

The ratio of a rate is inverted, so that above 1 is worse in every row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from paribus.core import Comparison, Finding, Judgement, Word, count, slowness
from paribus.report import lookup, wording

BAR = 21
"""Characters of the bar that shows an interval against its margin; odd, so that 1 has a place."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A headline, and how many times as slow its arm is."""

    finding: Finding
    times: Comparison | None  # None: no size is known
    few: str = ""  # without an interval: how many launches of those needed, "4/16 launches"

    @property
    def word(self) -> str:
        """The verdict in a word or two, or "too few" launches for one."""
        word = self.finding.verdict.word
        return "too few" if self.few else "reliability" if word is Word.RELIABILITY else word.value

    @property
    def sign(self) -> str:
        return "…" if self.few else wording.SYMBOLS[self.finding.verdict.word]

    @property
    def kind(self) -> str:
        """The CSS class of its colour."""
        return "few" if self.few else wording.kind_of(self.finding.verdict.word)

    @property
    def ratio(self) -> str:
        """The ratio alone, or that its size is withheld; "" without a comparison."""
        if self.times is None:
            return "" if self.finding.comparison is None else wording.SIZE_WITHHELD
        return wording.ratio_text(self.times)

    @property
    def text(self) -> str:
        """The ratio with its interval, "1.187 [1.182, 1.192]", or "1.187, 4/16 launches"."""
        if self.few:
            return f"{self.ratio}, {self.few}"
        known = self.times if wording.has_interval(self.times) else None
        return wording.estimate(known) if known else self.ratio


def effects(judgement: Judgement) -> list[Effect]:
    """Return the headlines of `judgement` as effects."""
    return [Effect(f, slowness(f), too_few(judgement, f)) for f in judgement.headlines]


def too_few(judgement: Judgement, finding: Finding) -> str:
    """Return "4/16 launches" if these are too few for an interval, "" if they suffice."""
    known = finding.comparison
    undecided = finding.verdict.word is Word.UNDECIDED
    if not undecided or known is None or not known.blocks or wording.has_interval(known):
        return ""
    done, fewest = lookup.blocks_there(judgement, finding), lookup.fewest_blocks(judgement, finding)
    unit = lookup.unit(judgement)  # of both arms, as they are counted beside it
    return f"{2 * done}/{count(2 * fewest, unit)}" if done < fewest else ""


def place(ratio: float, margin: float) -> float:
    """Return the place of a ratio on a bar: 0 for a ratio of 1, 1 at the margin, then logarithmic.

    So the margin has the same place in all rows, and an effect of 20 margins still fits.
    """
    size = math.log2(1 + abs(math.log(ratio)) / math.log1p(margin))
    return math.copysign(size, math.log(ratio))


def reach(shown: Iterable[Effect]) -> float:
    """Return the largest place on the bars of these rows, at least 2; an open end adds 1."""
    ends = [abs(at) for one in shown for at in _ends(one)]
    known = [at for at in ends if math.isfinite(at)]
    return max([2.0, *known]) + (len(known) < len(ends))


def _ends(one: Effect) -> tuple[float, float, float] | tuple[()]:
    """Return the places of low end, ratio and high end; an end that is not known is infinite."""
    if one.times is None or not wording.has_interval(one.times):
        return ()
    margin = one.finding.margin
    low = place(one.times.low, margin) if one.times.low > 0 else -math.inf
    high = place(one.times.high, margin) if one.times.high < math.inf else math.inf
    return low, place(one.times.ratio, margin), high


def bar(one: Effect, far: float, width: int = BAR, *, ascii_only: bool = False) -> str:
    """Return the interval drawn against the margin in `width` characters; slower is on the right.

    `far` is the `reach` of all rows, so that they can be compared.
    """
    edge, dash, dot, middle_line = ":-o|" if ascii_only else "┊━●│"
    middle = width // 2
    cells = [" "] * width

    def cell(at: float) -> int:
        return middle + round(max(-1.0, min(1.0, at / far)) * middle)

    side = max(1, cell(1.0) - middle)
    cells[middle - side] = cells[middle + side] = edge
    cells[middle] = middle_line
    if ends := _ends(one):
        low, at, high = map(cell, ends)
        cells[low : high + 1] = dash * (high + 1 - low)
        cells[at] = dot
    return "".join(cells)
