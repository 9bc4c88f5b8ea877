"""The energy of launches in each arm against the reference, by blocks as everything is compared."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from paribus.core import Energy, Finding, Source, State, Word
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import margin_of
from paribus.plan import Plan
from paribus.probes.energy import JOULES
from paribus.stats.estimate import compare, fewest_pairs
from paribus.stats.verdict import judge
from paribus.store import Stored

_WORDS: Mapping[Word, Literal["less", "more", "equal"]] = {
    Word.FASTER: "less",
    Word.SLOWER: "more",
    Word.EQUIVALENT: "equal",
}


def energies(
    plan: Plan, evidence: Evidence, launches: Iterable[Stored], headlines: Sequence[Finding]
) -> tuple[Energy, ...]:
    """Return the energy of a launch by benchmark, arm and source.

    None from too few blocks that know it. The interval is at the level of a look. A verdict that is
    withheld for times is for energy too.
    """
    good = [
        one
        for one in launches
        if one.void is None and one.outcome.state is State.OK and evidence.counted(one.launch)
    ]
    fewest = fewest_pairs(round(1 - plan.looks.confidence, 12))
    found = []
    for source, fact in JOULES.items():
        known = _known(good, fact)
        for head in headlines if known else ():
            of = known.get(head.benchmark, {})
            arms = plan.study.arms[0].name, head.arm
            ours, theirs = (
                {block: statistics.median(some) for block, some in of.get(arm, {}).items()}
                for arm in arms
            )
            if len(ours.keys() & theirs.keys()) >= fewest:
                margin = margin_of(plan, evidence, head.benchmark, head.metric)
                found.append(_energy(head, ours, theirs, plan.looks.confidence, margin, source))
    return tuple(found)


def _known(launches: Iterable[Stored], fact: str) -> dict[str, dict[str, dict[int, list[float]]]]:
    """Return the joules of launches by benchmark, arm and block."""
    known: dict[str, dict[str, dict[int, list[float]]]] = {}
    for one in launches:
        launch, used = one.launch, one.outcome.facts.get(fact)
        if isinstance(used, int | float) and used > 0:
            of_arm = known.setdefault(launch.benchmark, {}).setdefault(launch.arm, {})
            of_arm.setdefault(launch.block, []).append(used)
    return known


def _energy(
    head: Finding,
    ours: Mapping[int, float],
    theirs: Mapping[int, float],
    confidence: float,
    margin: float,
    source: Source,
) -> Energy:
    ratios = [math.log(theirs[block] / ours[block]) for block in ours.keys() & theirs.keys()]
    over = compare(ratios, confidence)
    word = judge(over, better="lower", margin=margin, last=True).word
    held = head.verdict.word is Word.WITHHELD
    return Energy(
        *(head.benchmark, head.arm, over.blocks, over.ratio, over.low, over.high),
        *(over.level, margin),
        word="withheld" if held else _WORDS.get(word, "undecided"),
        joules=(statistics.median(ours.values()), statistics.median(theirs.values())),
        source=source,
    )
