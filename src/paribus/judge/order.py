"""The order within blocks: its effect, and where it cannot be separated from that of an arm."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence

from paribus.core import Finding, Notice, NoticeName, Point, Word
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import pooled_ratios
from paribus.plan import Plan
from paribus.stats.order import bias, order_effect

ORDER_ERROR = 0.05
"""Share of benchmarks in which chance finds an order effect, all arms together."""

FEWEST_OTHERWISE = 2
"""Blocks of the rarer order below which an effect of the order cannot be told from the arm."""


def order_effects(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Say in which benchmarks a launch fares differently after the other of its block.

    Every arm is compared with the reference, at an error that they share. Arms that are launched at
    once have no order, and those of a shuffled block others between them.
    """
    if plan.design.at_once:
        return
    reference, *others = (arm.name for arm in plan.study.arms)
    confidence = 1 - ORDER_ERROR / len(others)
    for label in plan.metrics:
        at = {(p.block, p.arm): p.at_s for p in points if p.benchmark == label and p.block}
        for arm in others:
            ratios = pooled_ratios(evidence, label, reference, arm, plan.metrics[label][0])
            apart = {
                block: at[(block, arm)] - at[(block, reference)]
                for block, ratio in ratios.items()
                if math.isfinite(ratio) and not plan.shuffled(block)
            }
            first = [ratios[block] for block, after in apart.items() if after < 0]
            second = [ratios[block] for block, after in apart.items() if after > 0]
            effect = order_effect(first, second, confidence)
            if effect is None or not effect.found:
                continue
            moved = bias(effect, first, second)
            figures = {
                "arm": arm,
                "reference": reference,
                "ratio": effect.ratio,
                "low": effect.low,
                "high": effect.high,
                "bias": moved,
                "first": len(first),
                "blocks": effect.blocks,
            }
            yield Notice(NoticeName.ORDER_EFFECT, "warning", (label,), figures)


def one_sided(
    plan: Plan,
    evidence: Evidence,
    points: Sequence[Point],
    headlines: Sequence[Finding],
    withheld: Container[Finding],
) -> Iterable[Notice]:
    """Say which verdicts rest on blocks in which one arm came first in all, or in all but one."""
    if plan.design.at_once:
        return
    reference = plan.study.arms[0].name
    for head in headlines:
        said = head.verdict.word in (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
        if not said or head.comparison is None or head in withheld:
            continue
        label, arm = head.benchmark, head.arm
        ratios = pooled_ratios(evidence, label, reference, arm, head.metric)
        blocks = plan.design.stands_on(sorted(ratios), head.comparison)
        at = {(p.block, p.arm): p.at_s for p in points if p.benchmark == label}
        apart = [at[block, arm] - at[block, reference] for block in blocks]
        first = sum(after < 0 for after in apart)
        if any(map(plan.shuffled, blocks)) or not all(apart):
            continue  # of launches that are shuffled, or of one time, none comes second
        if min(first, len(blocks) - first) < FEWEST_OTHERWISE:
            figures = {"arm": arm, "reference": reference, "first": first, "blocks": len(blocks)}
            yield Notice(NoticeName.ORDER_ONE_SIDED, "warning", (label,), figures)
