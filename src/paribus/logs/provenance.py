"""How launches came about that no plan paired: when and in which order; what a verdict must say.

A design in a sentence, a reservation in verdicts on arms that were not launched in turns, and
notices, such as that nothing shows the order of launches within blocks, or that some lack an arm.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from paribus.core import DatedBy, Finding, Judgement, Notice, NoticeName, Reason, Word
from paribus.judge.headlines import with_findings
from paribus.logs.tables.launches import Arrangement, Group, alternating, neighbours
from paribus.logs.tables.table import Table
from paribus.stats.estimate import fewest_pairs
from paribus.words import tables as words

SAID = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
"""Verdicts that say something."""


@dataclass(frozen=True, slots=True)
class Made:
    """When the launches of each arm of a benchmark were made.

    `by` is what says so, None for nothing. `times` are in seconds by arm; `dates` is whether they
    count from 1970.
    """

    by: DatedBy | None = None
    times: Mapping[str, Sequence[float]] = field(default_factory=dict)
    dates: bool = True

    @property
    def in_turns(self) -> bool:
        """Return whether the times show that the arms alternate."""
        return self.by is not None and alternate(self.times)


def alternate(times: Mapping[str, Sequence[float]]) -> bool:
    """Return whether enough launches have neighbours of the other arms to be paired."""
    placed = [(at, arm) for arm, several in times.items() for at in several]
    begins = neighbours([arm for _, arm in sorted(placed)], len(times))
    return alternating(len(begins), len(times), len(placed))


def stopping(source: str) -> Notice:
    """Return the notice that nothing shows whether the number of launches was fixed before."""
    return Notice(NoticeName.STOPPING_NOT_PLANNED, "warning", figures={"source": source})


def reserved(judgement: Judgement, made: Mapping[str, Made], source: str) -> Judgement:
    """Return the judgement with what `made`, when launches were made, says of its verdicts.

    One on arms that were not launched in turns has a reservation. One that is withheld for too few
    launches says whether the time zone of dates is not known, and what the user gave, `source`.
    """

    def with_times(f: Finding) -> Finding:
        of, more = made[f.benchmark], dict[str, Any]()
        if f.verdict.word in SAID and not of.in_turns:
            more = {"unless": _between(of, f.reference or judgement.reference, f.arm)}
        elif f.verdict.code is Reason.TOO_FEW_LAUNCHES:
            unknown = of.by is DatedBy.DATES_WITHOUT_ZONE
            more = {"source": source, "zones_unknown": unknown}
        figures = {**f.verdict.figures, **more}
        return replace(f, verdict=replace(f.verdict, figures=figures)) if more else f

    return with_findings(judgement, with_times)


def _between(made: Made, *arms: str) -> dict[str, Any]:
    """Return the figures of the reservation: from when to when the launches of `arms` were made."""
    every = [at for arm in arms for at in made.times.get(arm, ())] if made.dates else []
    first, last = (
        (
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
            for at in (min(every), max(every))
        )
        if every
        else (None, None)
    )
    return {"arms": list(arms), "dated_by": made.by, "first": first, "last": last}


def not_in_turns(judgement: Judgement, made: Mapping[str, Made]) -> Iterator[Notice]:
    """Yield notices on verdicts on arms that were not launched in turns, by when they were `made`.

    Benchmarks of which the same is known share a notice: that one arm was launched before the
    other, or that nothing shows the order.
    """
    reference, *others = (arm.name for arm in judgement.study.arms)
    known = {f.benchmark for f in judgement.headlines if f.verdict.word is not Word.WITHHELD}
    alike: dict[tuple[str | None, str, str], list[str]] = {}
    for label, of in made.items():
        for arm in others if label in known and not of.in_turns else ():
            first = second = ""
            if of.by:
                one, other = sorted((reference, arm), key=lambda name: min(of.times[name]))
                if max(of.times[one]) < min(of.times[other]):
                    first, second = one, other
            labels = alike.setdefault((of.by, first, second), [])
            labels += [label] if label not in labels else []
    for (dated_by, first, second), labels in alike.items():
        figures = {"dated_by": dated_by}
        if first:
            figures |= {"first": first, "second": second}
        name = NoticeName.ONE_ARM_AFTER_THE_OTHER if first else NoticeName.NOT_IN_TURNS
        yield Notice(name, "warning", tuple(labels), figures)


# --- the design of a table ---

NEED_TIMES = (NoticeName.DRIFT, NoticeName.ORDER_EFFECT, NoticeName.ORDER_ONE_SIDED)
"""Notices that rest on the order of launches: they are left out where it is not known."""

MOST_KEPT = 1000
"""Entries of a list in the figures of a notice."""


def design(table: Table, found: Arrangement) -> str:
    """Return in one sentence how the figures came about, as far as the table or the logs show.

    It names the benchmarks if they are not all of the table.
    """
    labels = [group.benchmark for group in found.groups]
    firsts = None
    if table.timed and found.paired:
        counts = [sum(column) for column in zip(*map(_firsts, found.groups), strict=True)]
        firsts = dict(zip(found.arms, counts, strict=True)) if any(counts) else None
    return words.design_of_table(
        table.sources,
        labels if len(labels) < len({row.benchmark for row in table.rows}) else (),
        "single" if _one_each(found) else found.kind,
        of=table.of,
        firsts=firsts,
        gap_s=found.gap_s,
        several=found.several,
        sampled=found.sampled,
    )


def notices(
    table: Table, found: Arrangement, error: float, lacking: Container[str]
) -> Iterator[Notice]:
    """Yield the notices on the design of a table, warnings first.

    `error` is that of one comparison of two arms. In the benchmarks `lacking` so many blocks are
    incomplete that a verdict is withheld: that is a warning.
    """
    if found.paired and not _one_each(found):
        yield from _order_notices(found, table.of)
        yield stopping(table.of)
    fewest = fewest_pairs(error)
    if few := {g.benchmark: len(g.names) for g in found.groups if 1 < len(g.names) < fewest}:
        figures: dict[str, Any] = {"blocks": few, "fewest": fewest, "confidence": 1 - error}
        yield Notice(NoticeName.TOO_FEW_BLOCKS, "warning", tuple(few), figures)
    for group in found.groups:
        if group.left_out:
            names, lacks = zip(*group.left_out[:MOST_KEPT], strict=True)
            figures = {"blocks": [*names], "lacking": [*lacks], "left_out": len(group.left_out)}
            figures["of"] = group.attempted
            level: Literal["warning", "note"] = "warning" if group.benchmark in lacking else "note"
            yield Notice(NoticeName.BLOCKS_LEFT_OUT, level, (group.benchmark,), figures)
    if found.unpaired:
        figures = {"launches": found.unpaired}
        yield Notice(NoticeName.LAUNCHES_LEFT_OUT, "note", figures=figures)
    if table.ignored:
        figures = {"columns": list(table.ignored[:MOST_KEPT]), "number": len(table.ignored)}
        yield Notice(NoticeName.COLUMNS_IGNORED, "note", figures=figures)


def without_confounded(others: Iterable[Notice], own: Sequence[Notice]) -> tuple[Notice, ...]:
    """Return the notices `others` without those on effects of the order where it is fixed.

    There the effect is a part of the ratio, as one of the table's `own` notices says.
    """
    of_order = (NoticeName.ORDER_EFFECT, NoticeName.ORDER_ONE_SIDED)
    fixed = {label for n in own if n.name is NoticeName.ORDER_FIXED for label in n.benchmarks}
    return tuple(n for n in others if n.name not in of_order or not fixed & set(n.benchmarks))


def _one_each(found: Arrangement) -> bool:
    """Return whether no arm has a second launch."""
    return all(group.one_each for group in found.groups)


def _firsts(group: Group) -> list[int]:
    """Return in how many blocks each arm came first, by the times; of two at one time none did."""
    times = group.times or {}
    counts = dict.fromkeys(times, 0)
    for block in group.numbers if times else ():
        first = min(of_arm[block] for of_arm in times.values())
        firsts = [arm for arm, of_arm in times.items() if of_arm[block] == first]
        counts[firsts[0]] += len(firsts) == 1
    return list(counts.values())


def _order_notices(found: Arrangement, of: str) -> Iterator[Notice]:
    """Yield the notice that the order is unknown, or for each arm that it always came first."""
    if not any(any(_firsts(group)) for group in found.groups):
        figures = {"source": of, "timed": found.groups[0].times is not None}
        yield Notice(NoticeName.ORDER_UNKNOWN, "warning", figures=figures)
        return
    always = [g for g in found.groups if len(g.names) > 1 and max(_firsts(g)) == len(g.names)]
    for index, arm in enumerate(found.arms):
        if labels := tuple(g.benchmark for g in always if _firsts(g)[index]):
            yield Notice(NoticeName.ORDER_FIXED, "warning", labels, {"arm": arm})
