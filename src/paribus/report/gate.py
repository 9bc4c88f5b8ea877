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
"""The words by which rules are written: of verdicts, and those of lenses."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A word that fails a pipeline; with `beyond`, the interval must lie beyond this share.

    With `sizes`, the least and the greatest number of bytes, the rule is about cases of these only.
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
    """Return the rule written as "slower", "slower:5%" or "slower:5%@64KiB-4MiB".

    Only "slower" may have a share and sizes. Raises ValueError for any other text.
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
    """What rules apply to: a headline, or its change between two studies."""

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
    """Return those of `several` that fail, each with the first rule by which it does."""
    found = []
    for one in several:
        rule = next((rule for rule in rules if failing(one, rule, monitored=monitored)), None)
        if rule is not None:
            found.append((one, rule))
    return found


def failing(one: Judged, rule: Rule, *, monitored: bool = False) -> bool:
    """Return whether a comparison fails by a rule.

    With a share it fails if its whole interval lies beyond that, whatever the margin. An interval
    counts only if it is final, or at any time if the study is `monitored`. A metric that does not
    decide fails only with the word "slower", which its family supports: otherwise many metrics
    would fail by noise more often than one.
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
