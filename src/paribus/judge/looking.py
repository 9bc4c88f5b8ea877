"""The verdict on one series of ratios, as the design of its study has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.core import Comparison, Direction, Reason, Verdict, Word
from paribus.designs.standard import Series
from paribus.plan import Plan


def no_data(code: Reason, figures: Mapping[str, Any] | None = None) -> Verdict:
    """Return the verdict of a comparison that has nothing to compare."""
    return Verdict(Word.NO_DATA, code, final=True, figures=figures or {})


def decide(
    plan: Plan,
    at: Sequence[int],
    pooled: Mapping[int, float],
    better: Direction,
    margin: float,
    cut: Mapping[str, Sequence[int]],
    *,
    over: bool,
    logs: Any = None,
) -> tuple[Verdict, Comparison | None]:
    """Return the verdict after the latest look, and what it rests on: `Design.replay`."""
    series = Series(plan, at, dict(sorted(pooled.items())), better, margin, cut, logs)
    verdict, history = replay(series, over=over)
    return verdict, history[-1] if history else None


def replay(series: Series, *, over: bool) -> tuple[Verdict, list[Comparison]]:
    """Return what `Design.replay` does; nothing without a block."""
    if not series.ratios:
        return no_data(Reason.NO_COMPLETE_BLOCK), []
    return series.plan.design.replay(series, over=over)
