"""The sentence on how figures of a table, or of logs, came about, and what was controlled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paribus.core import count, format_seconds
from paribus.words import lists
from paribus.words.lists import listed


def design_of_table(
    sources: Sequence[str],
    labels: Sequence[str],
    kind: str,
    *,
    of: str,
    firsts: Mapping[str, int] | None,
    gap_s: float,
    several: bool,
    sampled: bool,
) -> str:
    """Return in one sentence how the figures of a table, or `of` logs, came about.

    `labels` are the benchmarks that it is about, none for all.
    `kind`, `gap_s`, `several` and `sampled` are those of an Arrangement; "single" is one launch of
    each arm. `firsts` is the number of blocks in which each arm ran first, None if unknown.
    """
    on = f" on {listed(labels, last=' and ')}" if labels else ""
    source = f"Numbers{on} from {listed(sources, last=' and ')}"
    value = _what_a_value_is(several=several, sampled=sampled)
    if kind == "single":
        return f"{source}: one launch for each arm{value}; nothing was controlled."
    if kind == "blocks":
        return f"{source}: the arms paired by block{value}; one look. {_order(firsts)}"
    if kind == "neighbours":
        gap = f", about {format_seconds(gap_s)} apart" if gap_s else ""
        paired = f"launches paired with their neighbours in time{gap}"
        return f"{source}: {paired}{value}; one look. {_order(firsts)}"
    if kind == "apart":
        return (
            f"{source}: unpaired, because the arms do not alternate in time{value}. Neither drift"
            " nor the order of the arms was controlled."
        )
    shown = "logs show" if of == "logs" else "table shows"
    value = value or ", each value counted as a launch" * (of == "table")
    return (
        f"{source}: unpaired, order unknown{value}. Neither drift nor the order of the arms was"
        f" controlled, as far as the {shown}."
    )


def _what_a_value_is(*, several: bool, sampled: bool) -> str:
    if several:
        inner = ", each the median of its samples" if sampled else ""
        return f", each value the median of an arm's launches in the block{inner}"
    return ", each value the median of its samples" if sampled else ""


def _order(firsts: Mapping[str, int] | None) -> str:
    if firsts is None:
        return "Whether their order was randomised is unknown."
    (arm, number), *others = firsts.items()
    said = [f"{lists.arm(arm)} ran first in {count(number, 'block')}"]
    said += [f"{lists.arm(name)} in {n}" for name, n in others]
    return f"{listed(said)}; whether the order was randomised is unknown."
