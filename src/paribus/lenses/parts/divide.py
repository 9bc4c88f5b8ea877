"""How the difference of two arms divides among their changes, by what stored launches say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.core import Comparison, Finding, Seen, Word
from paribus.core.changes import Part, of_variable, plain_name, value_text
from paribus.designs import explain
from paribus.judge.headlines import pooled_ratios
from paribus.probes.variables import shown
from paribus.stats import parts as stats
from paribus.stats.estimate import compare
from paribus.stats.verdict import judge

if TYPE_CHECKING:
    from paribus.core import Arm


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a change in a difference, or of a pair of changes what they do together.

    `keys` are those of the arm that are switched, `text` what they are switched to; `beside` is the
    other change of a pair. `comparison` is a ratio of the arm's value to the reference's; those of
    all parts and the rest multiply to the whole.
    """

    name: str
    text: str
    keys: tuple[str, ...]
    comparison: Comparison | None
    word: Word
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Division:
    """How the difference of `arm` in a benchmark divides: its parts, the rest, and pairs.

    `whole` is the ratio of arm and reference, `rest` that over the product of the parts. `acting`
    are the pairs of changes of which one makes more, or less, where the other is switched, beyond
    the margin, the strongest first. `fixed` are differences that nothing can switch.
    """

    benchmark: str
    arm: str
    metric: str
    margin: float
    word: Word
    whole: Comparison
    parts: tuple[Share, ...]
    rest: Comparison
    acting: tuple[Share, ...] = ()
    fixed: tuple[str, ...] = ()


def divisions(seen: Seen) -> tuple[Division, ...] | None:
    """Return how each benchmark's difference divides; None of a study that explains nothing."""
    design = seen.plan.design
    if not isinstance(design, explain.Explain):
        return None
    fixed = tuple(
        one.key
        for one in seen.judgement.differences
        if one.kind in ("unexplained", "accepted") and not one.node
    )
    every = (_division(seen, design, head, fixed) for head in seen.judgement.headlines)
    return tuple(one for one in every if one) or None


def _division(
    seen: Seen, design: explain.Explain, head: Finding, fixed: tuple[str, ...]
) -> Division | None:
    plan, evidence, whole = seen.plan, seen.evidence, head.comparison
    reference, arm = plan.study.arms
    logs = design.logs(evidence, (reference.name, arm.name), [(head.benchmark, head.metric)])
    if whole is None or logs is None:
        return None
    ratios = pooled_ratios(evidence, head.benchmark, reference.name, arm.name, head.metric)
    blocks = design.stands_on(sorted(ratios), whole)
    held = head.verdict.word if head.verdict.word in HELD else None

    def word_on(found: Comparison | None) -> Word:
        if held or found is None:
            return held or Word.NO_DATA
        return judge(found, better=head.metric.better, margin=head.margin, last=True).word

    found = explain.compared(logs, blocks, plan.looks.confidence)
    parts = tuple(
        Share(part.name, _text(part, arm), part.keys, one, word_on(one))
        for part, one in zip(design.parts, found, strict=True)
    )
    in_all = [block for block in blocks if all(block in one for one in logs.parts)]
    rest = _rest(whole, found, [ratios[block] for block in in_all], logs, in_all)
    error = (1 - plan.study.settings.confidence) / (len(parts) + stats.BESIDE)
    level = 1 - plan.looks.nominal(error / max(1, len(parts) * (len(parts) - 1) // 2))
    acting = []
    for (one, other), by_block in logs.pairs.items():
        values = [by_block[block] for block in blocks if block in by_block]
        if values:
            first, second = design.parts[one], design.parts[other]
            more = compare(values, level)
            keys = first.keys + second.keys
            acting.append(Share(first.name, "", keys, more, word_on(more), second.name))
    named = [one for one in acting if one.word in (Word.FASTER, Word.SLOWER)]
    named.sort(key=lambda one: -abs(math.log(one.comparison.ratio)) if one.comparison else 0.0)
    return Division(
        *(head.benchmark, head.arm, head.metric.name, head.margin, head.verdict.word),
        *(whole, parts, rest, tuple(named), fixed),
    )


HELD = (Word.WITHHELD, Word.RELIABILITY, Word.NO_DATA)
"""Words on the whole that leave none on a part."""


def _rest(
    whole: Comparison,
    parts: Sequence[Comparison | None],
    ratios: Sequence[float],
    logs: explain.Logs,
    blocks: Sequence[int],
) -> Comparison:
    """Return the whole over the product of the parts, of blocks that have all of them."""
    known = [one for one in (whole, *parts) if one and 0 < one.ratio < math.inf]
    if not blocks or len(known) <= len(parts):
        return Comparison(0, 1.0, 0.0, math.inf, whole.level)
    several = [ratios, *([one[block] for block in blocks] for one in logs.parts)]
    return Comparison(len(blocks), *stats.remainder(known[0], known[1:], several), whole.level)


def _text(part: Part, arm: Arm) -> str:
    """Return what a change switches to; of a group, and where its study names it, its name.

    So of a variable whose value is private.
    """
    (key, *others), name = part.keys, of_variable(part.keys[0])
    private = name in arm.env and not shown(name, arm.env[name])
    return (
        part.name if others or private or part.name != plain_name([key]) else value_text(key, arm)
    )
