"""The judgement of logs that are paired alike: of launches by themselves, and of pairs.

What launches say without pairs stands, so dates, names and order of logs can only add to it, and
two folders with the same figures have the same word with and without them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from paribus.core import DatedBy, Finding, Judgement, Notice, NoticeName, Reason, Word
from paribus.judge.headlines import Because, withhold
from paribus.logs import words
from paribus.logs.imported import Answers, WithUnpaired, judge_table
from paribus.logs.pairing import Kind, Pairing, alternate, made, source_of
from paribus.logs.tables.table import build
from paribus.stats.unpaired import LEAST_LAUNCHES

SAID = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)


def way(kind: Kind) -> Pairing:
    """Return what makes pairs: logs in order of time have none if their arms do not alternate.

    Nor have those in the order of their names, where their launches can be judged unpaired.
    """
    if kind.pairing == "order" and _many(kind):
        return "none"
    times: dict[str, list[float]] = {}
    for log in kind.logs:
        times.setdefault(log.arm, []).append(log.at)
    return "none" if kind.pairing == "time" and not alternate(times) else kind.pairing


def _many(kind: Kind) -> bool:
    """Return whether some arm and the reference have launches enough to be judged unpaired."""
    reference, *others = kind.counts.values()
    return min(reference, max(others)) >= LEAST_LAUNCHES


def alike(kinds: Iterable[Kind]) -> Iterable[list[Kind]]:
    """Return kinds in groups whose figures make one table, with the same intervals."""
    groups: dict[object, list[Kind]] = {}
    for kind in kinds:
        groups.setdefault((kind.pairing, kind.grounds, way(kind), _many(kind)), []).append(kind)
    return groups.values()


def judged(
    kinds: Sequence[Kind], arms: Sequence[str], answers: Answers, directory: str
) -> Judgement:
    """Return the judgement of kinds that are alike: of their launches, and of pairs if they can be.

    A word that launches alone support stands, whatever pairs say: so nothing becomes known by
    what is not known of the logs. Both intervals share the error.
    """
    tools = {kind.label: kind.tool for kind in kinds}
    pairing, many = way(kinds[0]), _many(kinds[0])

    def of(how: Pairing) -> Judgement:
        table = build([source_of(arms, how, kinds)])
        share = 0.5 if many else 1.0
        return judge_table(table, answers, directory=directory, tools=tools, of="logs", share=share)

    part = of("time" if kinds[0].pairing == "time" else pairing)
    by_label = {kind.label: kind for kind in kinds}
    why = {
        (head.benchmark, head.arm): _why_withheld(by_label[head.benchmark], head)
        for head in part.headlines
    }
    part = withhold(part, lambda f: why.get((f.benchmark, f.arm)))
    if many and pairing == "none":
        stopping = Notice(NoticeName.STOPPING_NOT_PLANNED, "warning", figures={"source": "logs"})
        part = replace(part, notices=(stopping, *part.notices))
    elif many:
        alone = of("none")
        part = replace(
            part,
            headlines=_stronger(alone.headlines, part.headlines),
            others=_stronger(alone.others, part.others),
            cases=_stronger(alone.cases, part.cases),
            design=f"{part.design} {words.TWO_INTERVALS}",
            figures=WithUnpaired(part.figures, alone.figures),
        )
    return withhold(_reserved(_told_when(part, kinds), by_label), lambda _: None)


def _stronger(alone: Sequence[Finding], paired: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of launches alone where they say a word, otherwise those of pairs."""
    of = {(f.benchmark, f.arm, f.metric.name, f.case): f for f in alone}
    found = []
    for pair in paired:
        one = of[pair.benchmark, pair.arm, pair.metric.name, pair.case]
        found.append(one if one.verdict.word in SAID else pair)
    return tuple(found)


def _reserved(part: Judgement, kinds: Mapping[str, Kind]) -> Judgement:
    """Return the judgement with the reservation in each word on arms not launched in turns."""
    apart = {label for label, kind in kinds.items() if not kind.in_turns}

    def reserved(several: Sequence[Finding]) -> tuple[Finding, ...]:
        return tuple(
            replace(f, verdict=replace(f.verdict, figures={**f.verdict.figures, **unless(f)}))
            if f.verdict.word in SAID and f.benchmark in apart
            else f
            for f in several
        )

    def unless(f: Finding) -> dict[str, Any]:
        return {"unless": _times(kinds[f.benchmark], f.reference or part.study.arms[0].name, f.arm)}

    return replace(
        part,
        headlines=reserved(part.headlines),
        others=reserved(part.others),
        cases=reserved(part.cases),
        pairs=reserved(part.pairs),
    )


def _times(kind: Kind, *arms: str) -> dict[str, Any]:
    """Return the figures of the reservation: from when to when the launches of `arms` were made."""
    says, times = made(kind.logs)
    every = [at for arm in arms if says for at in times[arm]]
    first, last = (
        (
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
            for at in (min(every), max(every))
        )
        if every
        else (None, None)
    )
    return {"arms": list(arms), "dated_by": says, "first": first, "last": last}


def _told_when(part: Judgement, kinds: Sequence[Kind]) -> Judgement:
    """Return a part of the judgement with what would show the order of its logs."""
    dated = [made(kind.logs)[0] for kind in kinds]
    dated_by = dated[0] if kinds[0].pairing in ("name", "order") and all(dated) else None
    notices = (
        replace(n, figures={**n.figures, "dated_by": dated_by})
        if n.name is NoticeName.ORDER_UNKNOWN
        else n
        for n in part.notices
    )
    return replace(part, notices=tuple(notices))


def _why_withheld(kind: Kind, head: Finding) -> Because | None:
    """Return why pairing supports no verdict on a kind, None if what its table says stands."""
    says, _ = made(kind.logs)
    if way(kind) == "order":
        return (Reason.PAIRED_BY_ORDER, {"dated_by": says}) if says else (Reason.TIMES_UNKNOWN, {})
    judged = head.comparison is not None and math.isfinite(head.comparison.high)
    if kind.pairing == "one" or way(kind) != "none" or judged:
        return None
    return Reason.TOO_FEW_LAUNCHES, {
        "launches": {arm: kind.counts[arm] for arm in (next(iter(kind.counts)), head.arm)},
        "fewest": LEAST_LAUNCHES,
        "zones_unknown": says is DatedBy.DATES_WITHOUT_ZONE,
    }
