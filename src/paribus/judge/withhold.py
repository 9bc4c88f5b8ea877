"""The one way to withhold verdicts: a reason code and its figures in place of the word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from paribus.core import Finding, Judgement, Reason, Verdict, Word
from paribus.words.study import sentence

Because = tuple[Reason, Mapping[str, Any]]
"""Why a verdict is withheld: the code, and the figures that its sentence is made of."""


def withhold(judgement: Judgement, why: Callable[[Finding], Because | None]) -> Judgement:
    """Return the judgement with the verdict of every finding withheld for which `why` has a reason.

    One that has no data has nothing to withhold. Whether a verdict is final stays as it was.
    """

    def held(several: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(_held(finding, why(finding)) for finding in several)

    heads, others = held(judgement.headlines), held(judgement.others)
    return replace(
        judgement,
        sentence=sentence(heads, others),
        headlines=heads,
        others=others,
        cases=held(judgement.cases),
        layers=held(judgement.layers),
        endpoints=held(judgement.endpoints),
        pairs=held(judgement.pairs),
    )


def _held(finding: Finding, because: Because | None) -> Finding:
    if because is None or finding.verdict.word is Word.NO_DATA:
        return finding
    code, figures = because
    verdict = Verdict(Word.WITHHELD, code, finding.verdict.final, figures=figures)
    return replace(finding, verdict=verdict)
