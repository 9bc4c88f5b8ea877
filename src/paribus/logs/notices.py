"""The sentences of the notices on logs, tables and published figures.

`TEXTS` has a function for each notice, from the benchmarks it is about and its figures to a
sentence; `FIXES` has what the user can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paribus.core import DatedBy, NoticeName, Reason, Unreadable, count, typed
from paribus.logs import words
from paribus.words import lists
from paribus.words.lists import and_others, listed
from paribus.words.recorded import DATED_BY, order_fix
from paribus.words.verdicts import sentence, the_same

Figures = Mapping[str, Any]
Labels = Sequence[str]

MOST_SAID = 10
"""Logs, or reasons, that a sentence shows; of others it gives the number."""

MOST_NAMED = 6
"""Logs or benchmarks that a sentence names."""

MOST_GUARDS = 3
"""Signs of contamination that a sentence gives."""

MOST_COLUMNS = 10
MOST_BLOCKS = 5
"""Columns, and blocks, that a sentence names."""

LONGEST = 60
"""Characters of a column's name that a sentence shows."""


def unread(figures: Figures, most: int) -> str:
    """Return how many files were not read, and for `most` reasons why; files of a reason together.

    `figures` are those of the notice "not read".
    """
    parts = []
    for one in figures["reasons"][:most]:
        code, number = Unreadable(one["code"]), one["files"]
        why = words.unread(code, one["detail"], several=number > 1, lines=one.get("lines", ()))
        parts.append(f"{and_others(one['names'], number)}{':' * one['of_tool']} {why}")
    reasons = _joined(parts, figures["number"], "reason")
    again = {one["code"] for one in figures["reasons"]} == {Unreadable.SAME_RUN}
    return f"{count(figures['files'], 'output' if again else 'file')} not read: {reasons}"


def unmatched(figures: Figures, most: int = MOST_SAID) -> str:
    """Return which logs have no match in the other arms; `figures` are those of the notice."""
    parts = [words.unmatched(one["label"], one["counts"], one["example"]) for one in figures["all"]]
    return _joined(parts[:most], figures["number"])


def nothing(skipped: Figures, unread_files: Figures) -> str:
    """Return why nothing can be compared: what was found instead.

    The figures are those of the notices "not comparable" and "not read".
    """
    refused = unread(unread_files, 5) if unread_files["files"] else ""
    of_tool = any(one["of_tool"] for one in unread_files["reasons"])
    found = unmatched(skipped) or ("" if of_tool else "no log of a known tool")
    return f"nothing to compare: {'; '.join(filter(None, (found, refused)))}"


def _joined(texts: Sequence[str], number: int, noun: str = "") -> str:
    """Return some of a `number` of texts, and how many others there are."""
    others = number - len(texts)
    more = count(others, f"more {noun}") if noun else f"{others} more"
    return "; ".join(texts) + (f"; and {more}" if others else "")


def _truncated(one: Figures) -> str:
    lack = "lacks" if len(one["logs"]) == 1 else "lack"
    return (
        f"{one['label']}, {one['arm']}: {and_others(one['logs'])} {lack} {len(one['lacking'])} of"
        f" {count(one['of'], 'case')} ({_named(one['lacking'])})"
    )


def _cases(one: Figures) -> str:
    where = f"not in every arm, in {lists.arm(one['arm'])}" if one["arm"] else "not in every log"
    return f"{one['label']}: {count(len(one['cases']), 'case')} {where}: {_named(one['cases'])}"


def _named(cases: Sequence[str]) -> str:
    comma = "; " if any(", " in one for one in cases) else ", "
    return comma.join(cases[:4]) + (f"{comma}..." if len(cases) > 4 else "")


def _several(one: Callable[[Figures], str]) -> Callable[[Figures], str]:
    """Return the function that joins the texts of all of a notice; `one` gives one of them."""
    return lambda f: _joined([one(each) for each in f["all"][:MOST_SAID]], f["number"])


def _of_arms(values: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{lists.arm(arm)} {', '.join(several)}" for arm, several in values.items())


def _versions(labels: Labels, figures: Figures) -> str:
    be = "is" if len(labels) == 1 else "are"
    differ = f"{be} not of one version" if figures["known"] else "may be of different versions"
    return (
        f"{listed(labels, MOST_NAMED)} {differ}: {_of_arms(figures['versions'])}. Part of the ratio"
        " may be due to the program."
    )


def _contamination(labels: Labels, figures: Figures) -> str:
    guards = figures["guards"]
    texts = [f"{listed(one['logs'], MOST_NAMED)}: {one['guard']}" for one in guards[:MOST_GUARDS]]
    arms = listed(figures["arms"], MOST_NAMED, last=" and ")
    return f"{labels[0]}, {arms}: {_joined(texts, figures['number'])}."


def _withheld(labels: Labels, figures: Figures) -> str:
    return f"{listed(labels, MOST_NAMED)}: {sentence(Reason(figures['code']), figures)}."


def _identical(labels: Labels, figures: Figures) -> str:
    return (
        f"{listed(labels, MOST_NAMED)}: {the_same(figures['groups'], 'are identical files')}. They"
        " hold so few figures that launches can print the same, so each counts as a launch. If"
        " some are copies, give the log of each launch once."
    )


def _one_after_the_other(labels: Labels, figures: Figures) -> str:
    first, second = lists.arm(figures["first"]), lists.arm(figures["second"])
    return (
        f"{listed(labels, MOST_NAMED)}: by {DATED_BY[DatedBy(figures['dated_by'])]} all launches"
        f" of {first} are older than those of {second}, so other changes in between are part of the"
        " ratio."
    )


def _not_in_turns(labels: Labels, figures: Figures) -> str:
    by = figures["dated_by"]
    shown = f"by {DATED_BY[DatedBy(by)]} the arms were not" if by else "no time shows the arms"
    return (
        f"{listed(labels, MOST_NAMED)}: {shown} launched in turns, so other changes between their"
        " launches are part of the ratio."
    )


def _not_mixed(labels: Labels, figures: Figures) -> str:
    return (
        f"{listed(labels, MOST_NAMED)} give figures of the {figures['layer']} layer in"
        f" {figures['unit']} with different definitions. Every ratio compares one program with"
        " itself; do not compare figures of different programs."
    )


def undirected(labels: Labels, figures: Figures) -> str:
    """Return that figures are not compared, because nothing says which values are better."""
    several = figures["metrics"]
    names = [one["name"] + f" ({one['unit']})" * (one["unit"] != "1") for one in several]
    be = "is" if len(several) == 1 else "are"
    return (
        f"{labels[0]}: {listed(names, MOST_NAMED, last=' and ')} {be} not compared: the file does"
        " not say whether lower or higher is better"
    )


def direct(figures: Figures) -> str:
    """Return which options say which values are better, for the figures of `undirected`."""
    names = [one["name"] for one in figures["metrics"][:MOST_NAMED]]
    options = " ".join(typed(("--better", f"{name}=lower")) for name in names)
    return f"say it, with lower or higher: {options}"


# --- how the numbers of a table, or of logs, came about ---------------------------------------


def _order_fixed(labels: Labels, figures: Figures) -> str:
    return (
        f"{lists.arm(figures['arm'])} ran first in every block of"
        f" {listed(labels, last=' and ')}: the effect of the first launch on the second is part of"
        " the ratio."
    )


def _stopping(_: Labels, figures: Figures) -> str:
    source = "Logs do" if figures["source"] == "logs" else "The table does"
    return (
        f"{source} not show whether the number of launches was fixed in advance. If the measurement"
        " was stopped because the figures looked good, the error rate is not controlled."
    )


def _few(labels: Labels, figures: Figures) -> str:
    has = [f"{label} has {count(figures['blocks'][label], 'block')}" for label in labels]
    return (
        f"{listed(has, last=' and ')}; an interval at {figures['confidence'] * 100:.3g} %"
        f" confidence needs {figures['fewest']} or more."
    )


def _blocks(labels: Labels, figures: Figures) -> str:
    lacking = zip(figures["blocks"], figures["lacking"], strict=True)
    first = [f"block {name} lacks {what}" for name, what in lacking][:MOST_BLOCKS]
    number = figures["left_out"]
    more = f"; and {number - MOST_BLOCKS} more" if number > MOST_BLOCKS else ""
    return (
        f"{number} of {count(figures['of'], 'block')} of {labels[0]}"
        f" {'is' if number == 1 else 'are'} incomplete and left out: {'; '.join(first)}{more}."
    )


def _launches(_: Labels, figures: Figures) -> str:
    number = figures["launches"]
    have, are = ("has", "is") if number == 1 else ("have", "are")
    return (
        f"{count(number, 'launch')} {have} no neighbour of the other arm in time and {are} left"
        " out; only the times decide which."
    )


def _columns(_: Labels, figures: Figures) -> str:
    names = [
        repr(name if len(name) <= LONGEST else f"{name[:LONGEST]}...")
        for name in figures["columns"][:MOST_COLUMNS]
    ]
    others = figures["number"] - len(names)
    more = f" and {others} more" if others else ""
    return f"Columns that are not used: {', '.join(names)}{more}."


TEXTS: Mapping[NoticeName, Callable[[Labels, Figures], str]] = {
    NoticeName.NOT_READ: lambda _, f: f"{unread(f, 2 * MOST_SAID)}.",
    NoticeName.NOT_COMPARABLE: lambda _, f: (
        f"Skipped, no matching log in the other arm: {unmatched(f)}."
    ),
    NoticeName.TRUNCATED_LOGS: lambda _, f: (
        f"Skipped, truncated (cases of other logs are missing): {_several(_truncated)(f)}."
    ),
    NoticeName.CASES_LEFT_OUT: lambda _, f: f"Cases skipped: {_several(_cases)(f)}.",
    NoticeName.DIRECTION_UNKNOWN: lambda labels, f: f"{undirected(labels, f)}.",
    NoticeName.VERSIONS_DIFFER: _versions,
    NoticeName.ITERATIONS_DIFFER: lambda labels, f: (
        f"{labels[0]} took different numbers of iterations: {_of_arms(f['iterations'])}. The"
        " comparison uses the time of one iteration."
    ),
    NoticeName.WORK_DIFFERS: _withheld,
    NoticeName.LAUNCHES_FAILED: _withheld,
    NoticeName.COPIES: lambda labels, f: (
        _withheld(labels, f) if f.get("code") else _identical(labels, f)
    ),
    NoticeName.REPEATS_UNCLEAR: _withheld,
    NoticeName.ONE_ARM_AFTER_THE_OTHER: _one_after_the_other,
    NoticeName.NOT_IN_TURNS: _not_in_turns,
    NoticeName.CONTAMINATION: _contamination,
    NoticeName.TOOLS_NOT_MIXED: _not_mixed,
    NoticeName.NOT_PUBLISHED: lambda _, f: (
        f"{f['source']} does not give: {'; '.join(f['missing'])}."
    ),
    NoticeName.ORDER_UNKNOWN: lambda *_: (
        "Whether the order within blocks was randomised is unknown. If one arm always ran first,"
        " the effect of the first launch on the second is part of the ratio."
    ),
    NoticeName.ORDER_FIXED: _order_fixed,
    NoticeName.STOPPING_NOT_PLANNED: _stopping,
    NoticeName.TOO_FEW_BLOCKS: _few,
    NoticeName.BLOCKS_LEFT_OUT: _blocks,
    NoticeName.LAUNCHES_LEFT_OUT: _launches,
    NoticeName.COLUMNS_IGNORED: _columns,
}

FIXES: Mapping[NoticeName, Callable[[Figures], str]] = {
    NoticeName.DIRECTION_UNKNOWN: lambda f: f"To compare them, {direct(f)}.",
    NoticeName.ONE_ARM_AFTER_THE_OTHER: lambda _: "Launch the arms in turns.",
    NoticeName.NOT_IN_TURNS: lambda _: "Launch the arms in turns, and keep the times.",
    NoticeName.ORDER_UNKNOWN: lambda f: (
        order_fix(f["dated_by"])
        if f["source"] == "logs"
        else "Times of more digits would show the order."
        if f.get("timed")
        else "A column time would show the order."
    ),
    NoticeName.ORDER_FIXED: lambda _: "Randomise the order in each block.",
}
