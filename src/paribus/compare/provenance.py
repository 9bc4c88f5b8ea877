"""What a table tells of how its numbers came about: what the design controls, and what not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from paribus.judgement import Notice
from paribus.reasons import Reason
from paribus.stats.estimate import fewest_pairs
from paribus.tables.launches import Arrangement, Group
from paribus.tables.table import Table, shown
from paribus.units import count, format_seconds
from paribus.words.lists import listed

NEED_TIMES = ("drift", "order effect")
"""Notices that say nothing where the order of launches is not known."""

Source = Literal["table", "logs"]
"""Where numbers come from, as the user knows it."""


def why_withheld(found: Arrangement) -> Reason | None:
    """Return why no verdict can rest on these numbers, None if one can."""
    if _one_each(found):
        return Reason.ONE_LAUNCH_EACH
    if found.kind == "apart":
        return Reason.NOT_ALTERNATING
    return Reason.ORDER_UNKNOWN if found.kind == "unordered" else None


def design(table: Table, found: Arrangement, of: Source = "table") -> str:
    """Return in one sentence how the figures came about, as far as table or logs tell."""
    source = f"Numbers from {listed(table.sources, last=' and ')}"
    value = _what_a_value_is(found)
    if _one_each(found):
        return f"{source}: one launch for each arm{value}; nothing was controlled."
    if found.kind == "blocks":
        return f"{source}: the arms paired by block{value}; one look. {_order(table, found)}"
    if found.kind == "neighbours":
        return (
            f"{source}: launches paired with their neighbours in time, about"
            f" {format_seconds(found.gap_s)} apart{value}; one look. {_order(table, found)}"
        )
    if found.kind == "apart":
        return (
            f"{source}: unpaired, because the arms do not alternate in time{value}. Neither drift"
            " nor the order of the arms was controlled."
        )
    return (
        f"{source}: unpaired, order unknown{value}. Neither drift nor the order of the arms was"
        f" controlled, as far as the {'logs tell' if of == 'logs' else 'table tells'}."
    )


def notices(
    table: Table, found: Arrangement, error: float, of: Source = "table"
) -> tuple[Notice, ...]:
    """Return what a reader must know about where the numbers come from, warnings first.

    `error` is that of one comparison of two arms, `of` what the user gave.
    """
    return (
        *_order_notices(found),
        *_stopping(found, of),
        *_few(found, error),
        *_left_out(found),
        *_unpaired(found),
        *_ignored(table),
    )


def without_confounded(others: Iterable[Notice], told: Sequence[Notice]) -> tuple[Notice, ...]:
    """Return `others` less order effects where the order is fixed: those are the ratio."""
    fixed = {label for n in told if n.name == "order fixed" for label in n.benchmarks}
    return tuple(n for n in others if n.name != "order effect" or not fixed & set(n.benchmarks))


def _what_a_value_is(found: Arrangement) -> str:
    of_launch = "its samples" if found.sampled else ""
    if found.several:
        inner = ", each the median of its samples" if found.sampled else ""
        return f", each value the median of an arm's launches in the block{inner}"
    return f", each value the median of {of_launch}" if of_launch else ""


def _one_each(found: Arrangement) -> bool:
    if found.kind in ("blocks", "neighbours"):
        return all(len(group.names) < 2 for group in found.groups)
    of_cells = [of for group in found.groups for of in group.figures.values()]
    return all(len(launches) < 2 for arms in of_cells for launches in arms.values())


def _firsts(group: Group) -> list[int]:
    """Return in how many blocks each arm came first, by the times."""
    times = group.times or {}
    counts = dict.fromkeys(times, 0)
    for block in group.numbers if times else ():
        counts[min(times, key=lambda arm: times[arm][block])] += 1
    return list(counts.values())


def _order(table: Table, found: Arrangement) -> str:
    if not table.timed:
        return "Their order within it is not known to be random."
    counts = [sum(column) for column in zip(*map(_firsts, found.groups), strict=True)]
    firsts = [f"{arm} {n}" for arm, n in zip(found.arms, counts, strict=True)]
    told = listed(firsts, last=" and ")
    return f"Came first in blocks: {told}; whether a coin decided that is not known."


def _order_notices(found: Arrangement) -> Iterable[Notice]:
    if found.kind not in ("blocks", "neighbours") or _one_each(found):
        return
    if found.groups[0].times is None:
        yield Notice(
            "order unknown",
            "warning",
            "The order within blocks is not known to be random: if one arm always came first,"
            " what the first launch does to the second is part of the ratio.",
            fix="A column time would show the order.",
        )
        return
    always = [g for g in found.groups if len(g.names) > 1 and max(_firsts(g)) == len(g.names)]
    for arm in found.arms:
        index = found.arms.index(arm)
        mine = [g for g in always if _firsts(g)[index]]
        if mine:
            yield Notice(
                "order fixed",
                "warning",
                f"{arm} came first in every block of"
                f" {listed([g.benchmark for g in mine], last=' and ')}: what the first launch does"
                " to the second is part of the ratio.",
                tuple(g.benchmark for g in mine),
                "Draw the order of each block by a coin.",
            )


def _stopping(found: Arrangement, of: Source) -> Iterable[Notice]:
    if found.kind in ("blocks", "neighbours") and not _one_each(found):
        yield Notice(
            "stopping not planned",
            "warning",
            f"{'Logs do' if of == 'logs' else 'The table does'} not tell whether the number of"
            " blocks was fixed beforehand: if measuring ended because the figures looked good, the"
            " error rate is not controlled.",
        )


def _few(found: Arrangement, error: float) -> Iterable[Notice]:
    fewest = fewest_pairs(error)
    few = [g for g in found.groups if 1 < len(g.names) < fewest]
    if few:
        counts = [f"{g.benchmark} has {len(g.names)} blocks" for g in few]
        yield Notice(
            "too few blocks",
            "warning",
            f"{listed(counts, last=' and ')}; an interval at"
            f" {(1 - error) * 100:.3g} % takes {fewest} or more.",
            tuple(g.benchmark for g in few),
        )


def _left_out(found: Arrangement) -> Iterable[Notice]:
    for group in found.groups:
        if group.left_out:
            first = "; ".join(f"block {name} lacks {what}" for name, what in group.left_out[:5])
            more = len(group.left_out) - 5
            yield Notice(
                "blocks left out",
                "warning",
                f"{len(group.left_out)} of {group.attempted} blocks of {group.benchmark} are not"
                f" whole and left out: {first}{f'; and {more} more' if more > 0 else ''}.",
                (group.benchmark,),
                figures={
                    "blocks": [name for name, _ in group.left_out[:1000]],
                    "left_out": len(group.left_out),
                    "of": group.attempted,
                },
            )


def _unpaired(found: Arrangement) -> Iterable[Notice]:
    if found.unpaired:
        one = found.unpaired == 1
        yield Notice(
            "launches left out",
            "note",
            f"{count(found.unpaired, 'launch')} {'has' if one else 'have'} no neighbour of the"
            f" other arm in time and {'is' if one else 'are'} left out; which, the times alone"
            " decided.",
            figures={"launches": found.unpaired},
        )


def _ignored(table: Table) -> Iterable[Notice]:
    if table.ignored:
        names = [shown(name) for name in table.ignored]
        yield Notice(
            "columns ignored",
            "note",
            f"Columns that are not used: {listed(names, 10)}.",
            figures={"columns": list(table.ignored[:1000])},
        )
