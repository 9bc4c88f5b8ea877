"""A study's looks at one series of ratios: replayed in order until a verdict is final."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paribus.core import Comparison, Direction, Reason, Verdict, Word
from paribus.judge import few
from paribus.judge.monitoring import as_of_now
from paribus.plan import Plan
from paribus.stats.censoring import MOST_CENSORED, censored_share
from paribus.stats.estimate import compare
from paribus.stats.few import SIZE_SHARE, Weighed
from paribus.stats.verdict import blocks_needed, judge


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
    logs: few.Logs | None = None,
) -> tuple[Verdict, Comparison | None]:
    """Return the verdict after the latest look, and what it rests on; see `replay`."""
    verdict, history = replay(plan, at, pooled, better, margin, cut, over=over, logs=logs)
    return verdict, history[-1] if history else None


def replay(
    plan: Plan,
    at: Sequence[int],
    pooled: Mapping[int, float],
    better: Direction,
    margin: float,
    cut: Mapping[str, Sequence[int]],
    *,
    over: bool,
    logs: few.Logs | None = None,
) -> tuple[Verdict, Sequence[Comparison]]:
    """Replay the looks `at` so many blocks over them in order; the first final verdict stands.

    Returned beside it is what each look said, and what all blocks say where they are between two
    looks. A study that ends between two looks stands by the last one that it reached. `logs` are
    those of the launches where the design is that of few.
    """
    in_order = {block: pooled[block] for block in sorted(pooled)}
    if not in_order:
        return no_data(Reason.NO_COMPLETE_BLOCK), ()
    level = plan.looks.confidence
    if plan.study.settings.monitor:
        verdict, comparison = as_of_now(in_order, level, better=better, margin=margin)
        return verdict, (comparison,)
    blocks, ratios = list(in_order), list(in_order.values())
    reached = [look for look in at if look <= len(ratios)]
    weighed: list[Weighed] = []
    history: list[Comparison] = []
    for look in reached:
        last = look == at[-1] or (over and look == reached[-1])
        if logs is not None:
            weighed.append(few.weigh(plan, logs, blocks[:look]))
        # A forecast, not a verdict: it may rest on what came after the last look. What an earlier
        # look left open, a later one says.
        needed = _needed(plan, ratios, margin, weighed[-1:]) if last else None
        known = size_known(blocks[:look], cut)
        if logs is None:
            comparison = compare(ratios[:look], level)
            verdict = judge(
                comparison,
                better=better,
                margin=margin,
                last=last,
                needed=needed,
                size_known=known,
            )
        else:
            verdict, comparison = few.verdict(
                weighed, better=better, margin=margin, last=last, needed=needed, size_known=known
            )
        history.append(comparison)
        if verdict.final:
            return verdict, history
    undecided, comparison = _so_far(plan, at, in_order, margin, cut, over=over, logs=logs)
    return undecided, (*history, comparison)


def _so_far(
    plan: Plan,
    at: Sequence[int],
    in_order: Mapping[int, float],
    margin: float,
    cut: Mapping[str, Sequence[int]],
    *,
    over: bool,
    logs: few.Logs | None,
) -> tuple[Verdict, Comparison]:
    """Return "undecided" before the next look, and what all blocks say until then."""
    blocks, ratios = list(in_order), list(in_order.values())
    weighed = [few.weigh(plan, logs, blocks)] if logs is not None else []
    undecided = Verdict(
        Word.UNDECIDED,
        Reason.ENDED_BEFORE_FIRST_LOOK if over else Reason.BEFORE_NEXT_LOOK,
        final=over,
        blocks_needed=_needed(plan, ratios, margin, weighed),
        size_known=size_known(blocks, cut),
        figures={"blocks": len(ratios)} | ({} if over else {"next": _next_look(at, ratios)}),
    )
    if not weighed:
        return undecided, compare(ratios, plan.looks.confidence)
    return undecided, few.interval_now(weighed[0])


def _needed(
    plan: Plan, ratios: Sequence[float], margin: float, weighed: Sequence[Weighed]
) -> int | None:
    """Return about how many blocks settle a study, by the rules of its design."""
    level = plan.looks.confidence
    if not weighed:
        return blocks_needed(ratios, margin, level)
    signs = weighed[-1].uneven > 0
    first = plan.looks.at[0]
    return blocks_needed(ratios, margin, level, fewest=first, share=SIZE_SHARE, signs=signs)


def size_known(blocks: Sequence[int], cut: Mapping[str, Sequence[int]]) -> bool:
    """Return whether few enough launches of `blocks` were cut off for "by how much"."""
    shares = [
        censored_share(sum(b <= blocks[-1] for b in cuts), len(blocks)) for cuts in cut.values()
    ]
    return max(shares) <= MOST_CENSORED


def _next_look(at: Sequence[int], ratios: Sequence[float]) -> int:
    return next((look for look in at if look > len(ratios)), at[-1])
