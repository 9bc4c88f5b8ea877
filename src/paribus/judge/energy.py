"""The energy of launches in each arm against the reference, by blocks as everything is compared."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from paribus.energy import Energy
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import margin_of
from paribus.judgement import Finding, Word
from paribus.model import State
from paribus.plan import Plan
from paribus.records.rows import Stored
from paribus.stats.estimate import compare, fewest_pairs
from paribus.stats.verdict import judge

JOULES = "launch.energy_j"
"""The fact of a launch: what the packages and memory of its nodes took meanwhile."""


_WORDS: Mapping[Word, Literal["less", "more", "equal"]] = {
    Word.FASTER: "less",
    Word.SLOWER: "more",
    Word.EQUIVALENT: "equal",
}


def energies(
    plan: Plan, evidence: Evidence, launches: Iterable[Stored], headlines: Sequence[Finding]
) -> tuple[Energy, ...]:
    """Return the energy of a launch by benchmark and arm; none from too few blocks that know it.

    The interval is at the level of a look. A verdict that is withheld for times is for energy too.
    """
    fewest = fewest_pairs(round(1 - plan.looks.confidence, 12))
    known: dict[str, dict[str, dict[int, list[float]]]] = {}
    for one in launches:
        launch, used = one.launch, one.outcome.facts.get(JOULES)
        good = one.void is None and one.outcome.state is State.OK and evidence.counted(launch)
        if good and isinstance(used, int | float) and used > 0:
            of_arm = known.setdefault(launch.benchmark, {}).setdefault(launch.arm, {})
            of_arm.setdefault(launch.block, []).append(used)
    found = []
    for head in headlines:
        ours, theirs = (
            {block: statistics.median(some) for block, some in of.items()}
            for arm in (plan.study.arms[0].name, head.arm)
            for of in (known.get(head.benchmark, {}).get(arm, {}),)
        )
        ratios = [math.log(theirs[block] / ours[block]) for block in ours.keys() & theirs.keys()]
        if len(ratios) < fewest:
            continue
        over = compare(ratios, plan.looks.confidence)
        margin = margin_of(plan, evidence, head.benchmark, head.metric)
        word = judge(over, better="lower", margin=margin, last=True).word
        held = head.verdict.word is Word.WITHHELD
        both = statistics.median(ours.values()), statistics.median(theirs.values())
        found.append(
            Energy(
                *(head.benchmark, head.arm, over.blocks, over.ratio, over.low, over.high),
                *(over.level, margin),
                word="withheld" if held else _WORDS.get(word, "undecided"),
                joules=both,
            )
        )
    return tuple(found)
