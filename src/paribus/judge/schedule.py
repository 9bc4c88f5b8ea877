"""When the evidence of a study is weighed: the looks of its plan, as its blocks let them be."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.judge.evidence import Evidence
from paribus.plan import Plan


def last_block_over(plan: Plan, evidence: Evidence, label: str) -> bool:
    """Return whether every stage that the last planned block of `label` holds was launched.

    Of blocks that were shuffled with the last one, too.
    """
    blocks, most = evidence.blocks.get(label, {}), plan.study.settings.blocks
    last = range(1, most + 1) if plan.shuffled(most) else (most,)
    return all(name in blocks.get(n, {}) for n in last for name in plan.design.holds(label, n))


def looks_at(
    plan: Plan, evidence: Evidence, labels: Sequence[str], complete: int
) -> tuple[int, ...]:
    """Return after how many complete blocks the evidence on `labels` is weighed.

    Those are the looks of the plan. Once the last planned block is over, the last look is at the
    `complete` blocks, even if some failed: which number that is does not depend on what they
    measured, so the error of all looks stays that of the plan (tests/test_stats_missing.py).
    """
    at = plan.looks.at
    over = all(last_block_over(plan, evidence, label) for label in labels)
    if not over or not at or complete < at[0]:
        return at
    return (*(look for look in at if look < complete), complete)
