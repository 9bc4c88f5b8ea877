"""The rules of `--fail-on`: which verdicts fail a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from paribus.core import LENSES, Comparison, Finding, Metric, Verdict, Word, percent

WORDS: Mapping[str, Word | str] = {
    "slower": Word.SLOWER,
    "undecided": Word.UNDECIDED,
    "reliability": Word.RELIABILITY,
    **{rule: rule for one in LENSES.values() for rule in one.rules},
}
"""The words of the rules: of verdicts, and of lenses."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A verdict that fails; with `beyond` its interval must lie beyond this share."""

    word: Word | str
    beyond: float | None = None

    def __str__(self) -> str:
        name = next(name for name, word in WORDS.items() if word is self.word)
        return name if self.beyond is None else f"{name}:{percent(self.beyond)}"


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
