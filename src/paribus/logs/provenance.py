"""How the numbers of a table came about: its design in a sentence, and notices on what it lacks.

Such as that nothing shows the order of launches within blocks, or that blocks are incomplete.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Literal

from paribus.core import Notice, NoticeName
from paribus.logs.tables.launches import Arrangement, Group
from paribus.logs.tables.table import Table
from paribus.stats.estimate import fewest_pairs
from paribus.words import tables as words

NEED_TIMES = (NoticeName.DRIFT, NoticeName.ORDER_EFFECT, NoticeName.ORDER_ONE_SIDED)
"""Notices that rest on the order of launches: they are left out where it is not known."""

MOST_KEPT = 1000
"""Entries of a list in the figures of a notice."""

Source = Literal["table", "logs"]
"""What the user gave."""


def design(table: Table, found: Arrangement, of: Source = "table") -> str:
    """Return in one sentence how the figures came about, as far as the table or the logs show.

    It names the benchmarks if they are not all of the table.
    """
    labels = [group.benchmark for group in found.groups]
    firsts = None
    if table.timed and found.kind in ("blocks", "neighbours"):
        counts = [sum(column) for column in zip(*map(_firsts, found.groups), strict=True)]
        firsts = dict(zip(found.arms, counts, strict=True)) if any(counts) else None
    return words.design_of_table(
        table.sources,
        labels if len(labels) < len({row.benchmark for row in table.rows}) else (),
        "single" if one_each(found.groups) else found.kind,
        of=of,
        firsts=firsts,
        gap_s=found.gap_s,
        several=found.several,
        sampled=found.sampled,
    )


def notices(
    table: Table,
    found: Arrangement,
    error: float,
    of: Source = "table",
    lacking: Container[str] = (),
) -> Iterator[Notice]:
    """Yield the notices on the design of a table, warnings first.

    `error` is that of one comparison of two arms, `of` what the user gave. In the benchmarks
    `lacking` so many blocks are incomplete that a verdict is withheld: that is a warning.
    """
    if found.kind in ("blocks", "neighbours") and not one_each(found.groups):
        yield from _order_notices(found, of)
        yield Notice(NoticeName.STOPPING_NOT_PLANNED, "warning", figures={"source": of})
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


def one_each(groups: Iterable[Group]) -> bool:
    """Return whether no arm has a second launch."""
    of_cells = [of for group in groups for of in group.figures.values()]
    return all(len(launches) < 2 for arms in of_cells for launches in arms.values())


def _firsts(group: Group) -> list[int]:
    """Return in how many blocks each arm came first, by the times; of two at one time none did."""
    times = group.times or {}
    counts = dict.fromkeys(times, 0)
    for block in group.numbers if times else ():
        first = min(of_arm[block] for of_arm in times.values())
        firsts = [arm for arm, of_arm in times.items() if of_arm[block] == first]
        counts[firsts[0]] += len(firsts) == 1
    return list(counts.values())


def _order_notices(found: Arrangement, of: Source) -> Iterator[Notice]:
    """Yield the notice that the order is unknown, or for each arm that it always came first."""
    if not any(any(_firsts(group)) for group in found.groups):
        figures = {"source": of, "timed": found.groups[0].times is not None}
        yield Notice(NoticeName.ORDER_UNKNOWN, "warning", figures=figures)
        return
    always = [g for g in found.groups if len(g.names) > 1 and max(_firsts(g)) == len(g.names)]
    for index, arm in enumerate(found.arms):
        if labels := tuple(g.benchmark for g in always if _firsts(g)[index]):
            yield Notice(NoticeName.ORDER_FIXED, "warning", labels, {"arm": arm})
