"""The energy of launches in each arm against the reference, paired by blocks as times are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from paribus.core import (
    Finding,
    Judgement,
    Lens,
    Ratio,
    Reason,
    Seen,
    Source,
    State,
    Word,
    format_changes,
    format_value,
)
from paribus.judge.headlines import margin_of
from paribus.probes.energy import ENERGY, JOULES, work_of
from paribus.report.rows import kept, listed_as
from paribus.stats.estimate import compare, fewest_pairs
from paribus.stats.verdict import judge
from paribus.store import Stored


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of a launch of `benchmark` in `arm`, over that in the reference, as `source` says.

    `ratio` is of `blocks` and has the interval [low, high] at `level`; `word` is the verdict on it
    by `margin`. `joules`: the medians of the reference and of the arm. With `per`, such as "Top",
    it is the energy of one unit of the work that the benchmark counts.
    """

    benchmark: str
    arm: str
    blocks: int
    ratio: float
    low: float
    high: float
    level: float
    margin: float
    word: Literal["less", "more", "equal", "undecided", "withheld"]
    joules: tuple[float, float]
    source: Source = "rapl"
    per: str = ""


Rows = tuple[Energy, ...]

_WORDS: Mapping[Word, Literal["less", "more", "equal"]] = {
    Word.FASTER: "less",
    Word.SLOWER: "more",
    Word.EQUIVALENT: "equal",
}


def energies(seen: Seen) -> Rows:
    """Return the energy of a launch, and of a unit of its work, by benchmark, arm and source.

    A row takes enough blocks for an interval, which has the level of a look. Where the verdict on
    times is withheld, so is that on energy.
    """
    plan, evidence = seen.plan, seen.evidence
    good = [
        one
        for one in seen.launches
        if one.void is None and one.outcome.state is State.OK and evidence.counted(one.launch)
    ]
    fewest = fewest_pairs(round(1 - plan.looks.confidence, 12))
    found = []
    units = {key for one in good for key in one.outcome.facts if work_of(key)}
    facts: list[tuple[Source, str]] = [*JOULES.items(), *(("nvml", key) for key in sorted(units))]
    for source, fact in facts:
        known = _known(good, fact)
        for head in seen.judgement.headlines if known else ():
            of = known.get(head.benchmark, {})
            arms = plan.study.arms[0].name, head.arm
            ours, theirs = (
                {block: statistics.median(some) for block, some in of.get(arm, {}).items()}
                for arm in arms
            )
            if len(ours.keys() & theirs.keys()) >= fewest:
                margin = margin_of(plan, evidence, head.benchmark, head.metric)
                one = _energy(head, ours, theirs, plan.looks.confidence, margin, source)
                found.append(replace(one, per=work_of(fact)))
    return tuple(found)


def _known(launches: Iterable[Stored], fact: str) -> dict[str, dict[str, dict[int, list[float]]]]:
    """Return the joules of launches, by benchmark, arm and block, that have this fact."""
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
    """Return the energy of a headline, from the joules of launches by block: `ours` and `theirs`.

    Ours is the reference, theirs the arm.
    """
    ratios = [math.log(theirs[block] / ours[block]) for block in ours.keys() & theirs.keys()]
    over = compare(ratios, confidence)
    at_look = head.verdict.code is not Reason.BEFORE_NEXT_LOOK
    word = judge(over, better="lower", margin=margin, last=True).word if at_look else Word.UNDECIDED
    withheld = head.verdict.word is Word.WITHHELD
    return Energy(
        *(head.benchmark, head.arm, over.blocks, over.ratio, over.low, over.high),
        *(over.level, margin),
        word="withheld" if withheld else _WORDS.get(word, "undecided"),
        joules=(statistics.median(ours.values()), statistics.median(theirs.values())),
        source=source,
    )


# --- words -----------------------------------------------------------------------------------

TITLE = "Energy of a launch"

TITLES = {"rapl": "RAPL", "nvml": "NVML", "ipmi": "IPMI", "slurm": "Slurm"}
"""The names of the sources."""

BASIS = {
    "rapl": "RAPL: processor packages and memory of the launch's nodes, whatever else ran there;"
    " GPUs, networks and power supplies are not in it",
    "nvml": "NVML: all NVIDIA GPUs of the launch's nodes, whatever else ran there",
    "ipmi": "IPMI: the launch's nodes as a whole, as their BMCs say: the mean power over the last"
    " part of a launch, at least a third of it, times its duration",
    "slurm": "Slurm: the launch's nodes, as its plug-in acct_gather_energy counts them"
    " (ConsumedEnergyRaw)",
}
"""What each source counts."""

OF_UNIT = (
    "each unit of work: NVML around the part that the benchmark measures under load, without"
    " start-up (Top: 10^12 operations)"
)

DENIED = (
    "not known, for only root may read /sys/class/powercap/*/energy_uj (CVE-2020-8694); ask for"
    " read permission there, such as by a udev rule"
)

WORDS = {"less": "takes less", "more": "takes more", "equal": "takes as much"}
"""Verdicts on energy in sentences; "undecided" and "withheld" stay as they are."""


def said(one: Energy) -> str:
    """Return the verdict, the change of the energy with its interval, and both values."""
    middle, least, most = format_changes((one.ratio, one.low, one.high))
    ours, theirs = map(format_value, one.joules)
    word = WORDS.get(one.word, one.word)
    unit = f"J/{one.per}" if one.per else "J"
    return (
        f"{one.benchmark} ({_counted(one)}): {word}, {middle} ({least} to {most}):"
        f" {theirs} {unit}, against {ours} {unit}"
    )


def _counted(one: Energy) -> str:
    """Return the name of the source, and the unit of work if it is of one: "NVML, each Top"."""
    return f"{TITLES[one.source]}, each {one.per}" if one.per else TITLES[one.source]


def _lines(judgement: Judgement, rows: Rows) -> list[tuple[str, str]]:
    """Return a sentence for each row, by arm; without rows, the arms that may not read RAPL."""
    if rows:
        return [(one.arm, said(one)) for one in rows]
    return [
        (arm, DENIED)
        for arm, facts in judgement.facts.items()
        if any(key.startswith(ENERGY) and isinstance(facts[key], dict) for key in facts)
    ]


def _bases(rows: Rows) -> list[str]:
    found = [BASIS[source] for source in dict.fromkeys(one.source for one in rows if not one.per)]
    return [*found, OF_UNIT] if any(one.per for one in rows) else found


# --- reports ---------------------------------------------------------------------------------


def _ratios(judgement: Judgement, rows: Rows) -> Iterator[Ratio]:
    for one in rows:
        if 0 < one.low <= one.high < math.inf:
            yield Ratio(
                *(one.benchmark, one.arm, f"energy ({_counted(one)})"),
                *(one.ratio, one.low, one.high, one.margin),
                word=WORDS.get(one.word, one.word),
                decided=one.word in WORDS,
            )


LENS = Lens(
    judge=energies,
    **kept("energy", Energy, lambda judgement, one: said(one), none=()),
    **listed_as(TITLE, "Energy", _lines, _bases),
    ratios=_ratios,
)
