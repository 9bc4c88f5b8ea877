"""The rules of `--fail-on`: which verdicts fail a pipeline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from paribus.core import (
    LENSES,
    Comparison,
    Finding,
    Metric,
    Verdict,
    Word,
    format_bytes,
    parse_bytes,
    parse_share,
    percent,
)

WORDS: Mapping[str, Word | str] = {
    "slower": Word.SLOWER,
    "undecided": Word.UNDECIDED,
    "reliability": Word.RELIABILITY,
    **{rule: rule for one in LENSES.values() for rule in one.rules if rule != "@"},
}
"""The words of the rules: of verdicts, and of lenses."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A verdict that fails; with `beyond` its interval must lie beyond this share.

    With `sizes`, the least and the greatest number of bytes, the rule is about these alone.
    """

    word: Word | str
    beyond: float | None = None
    sizes: tuple[float, float] | None = None

    def __str__(self) -> str:
        name = next(name for name, word in WORDS.items() if word is self.word)
        share = "" if self.beyond is None else f":{percent(self.beyond)}"
        if self.sizes is None:
            return f"{name}{share}"
        low, high = (
            "".join(format_bytes(int(one)).split()) if 0 < one < math.inf else ""
            for one in self.sizes
        )
        return f"{name}{share}@{low}-{high}"


def rule_of(text: str) -> Rule:
    """Return the rule that is written as "slower", "slower:5%" or "slower:5%@64KiB-4MiB".

    Only slower has a share and sizes. Raises ValueError for any other text.
    """
    rest, at, sizes = text.partition("@")
    word, colon, share = (part.strip() for part in rest.partition(":"))
    if word not in WORDS or ((colon or at) and word != "slower"):
        raise ValueError(text)
    beyond = parse_share(share) if colon else None
    if not at:
        return Rule(WORDS[word], beyond)
    low, dash, high = (part.strip() for part in sizes.partition("-"))
    ends = (parse_bytes(low) if low else 0, parse_bytes(high) if high else math.inf)
    if not (dash and (low or high) and ends[0] <= ends[1]):
        raise ValueError(text)
    return Rule(WORDS[word], beyond, ends)


class Judged(Protocol):
    """A headline, or a change of one between two studies."""

    @property
    def metric(self) -> Metric: ...
    @property
    def margin(self) -> float: ...
    @property
    def comparison(self) -> Comparison | None: ...
    @property
    def verdict(self) -> Verdict: ...


T = TypeVar("T", bound=Judged)


def failures(
    several: Iterable[T], rules: Sequence[Rule], *, monitored: bool = False
) -> list[tuple[T, Rule]]:
    """Return what fails, each with the first rule that says so."""
    found = []
    for one in several:
        rule = next((rule for rule in rules if failing(one, rule, monitored=monitored)), None)
        if rule is not None:
            found.append((one, rule))
    return found


def failing(one: Judged, rule: Rule, *, monitored: bool = False) -> bool:
    """Return whether a comparison fails by a rule.

    With a share: if its whole interval lies beyond, whatever its margin makes of that. An interval
    counts where the study stands by it: at the last look, or at any time if it is `monitored`.
    A figure that does not decide fails as slower only, where its family supports that word: many
    figures may fail by noise no more often than one.
    """
    if rule.sizes is not None:
        return False  # lenses/ranges.py judges sizes
    verdict, comparison = one.verdict, one.comparison
    if isinstance(one, Finding) and not one.decides and verdict.word is not Word.SLOWER:
        return False
    if rule.beyond is None:
        return verdict.word is rule.word
    if verdict.word is Word.SLOWER and one.margin >= rule.beyond:
        return True
    judged = verdict.word in (Word.SLOWER, Word.EQUIVALENT, Word.UNDECIDED)
    stands = judged and verdict.size_known and (verdict.final or monitored)
    if comparison is None or not stands:
        return False
    if one.metric.better == "lower":
        return comparison.low > 1 + rule.beyond
    return comparison.high < 1 / (1 + rule.beyond)
