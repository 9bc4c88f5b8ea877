"""Sentences about two studies of one question: what changed between them, what is not compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.core import LeftOut, format_factor
from paribus.words import lists
from paribus.words.lists import listed

CONTROL = (
    "Each effect is controlled within its study. The change is not: all that changed between the"
    " studies may be its cause."
)

_WHY: Mapping[LeftOut, str] = {
    LeftOut.FACTOR_DIFFERS: "is another",
    LeftOut.REFERENCE_DIFFERS: "is another",
    LeftOut.BENCHMARK_DIFFERS: "is another benchmark",
    LeftOut.RANKS_DIFFER: "has another number of ranks",
    LeftOut.PARAMETERS_DIFFER: "has other parameters",
    LeftOut.METRICS_DIFFER: "has another metric that decides",
    LeftOut.CASES_DIFFER: "has other cases",
}


def left_out(code: LeftOut, what: str, figures: Mapping[str, Any]) -> str:
    """Return why `what` is not compared, without a full stop; `figures` are those of the code."""
    if code is LeftOut.MISSING:
        return f"{what} is only in {figures['only_in']}"
    return f"{what} {_WHY[code]}: {figures['first']} in one study, {figures['second']} in the other"


BACKWARDS = "was measured before the first study: the change is against the course of time."


def sentence(
    studies: tuple[str, str], reference: str, changes: Sequence[tuple[str, str, str, float | None]]
) -> str:
    """Return changes in one sentence; each is arm, word, benchmark, and times as slow or None."""
    groups: dict[tuple[str, str], list[str]] = {}
    for arm, word, benchmark, ratio in changes:
        size = f" ({format_factor(ratio)})" if ratio is not None else ""
        groups.setdefault((arm, word), []).append(f"{benchmark}{size}")
    parts = [
        f"{_claim(word, arm, reference)} in {listed(of, 4, last=' and ')}"
        for (arm, word), of in groups.items()
    ]
    return f"From {studies[0]} to {studies[1]}: {'; '.join(parts)}."


def _claim(word: str, arm: str, reference: str) -> str:
    """Return for example "bridged worsened against host"."""
    arm, reference = lists.arm(arm), lists.arm(reference)
    if word == "withheld":
        return f"no verdict on the change of {arm}"
    if word in ("undecided", "no data"):
        return f"{word} for {arm}"
    return f"{arm} {'is ' * (word == 'unchanged')}{word} against {reference}"
