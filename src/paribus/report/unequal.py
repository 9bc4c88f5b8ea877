"""What was not held equal, as a table that reads in ten seconds: terminal and HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paribus import units
from paribus.judgement import Difference, Judgement
from paribus.model import Facts, Study
from paribus.report import sentences
from paribus.report.markup import Html, element, escape, join, table
from paribus.report.printing import heading, item, line

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.audit.audit import Audit

MEANS: Mapping[str, str] = {
    "unexplained": "NOT EXPLAINED by the factor",
    "accepted": "accepted by the user",
    "factor": "the factor",
    "explained": "explained: follows from the factor",
    "noted": "noted",
    "unknown": "unknown: could not be compared",
}
"""What each kind of difference is called, in the order in which they are shown."""

LIKELY = (
    "not known to move these figures",
    "seldom moves these figures",
    "often moves these figures",
    "nearly always moves these figures",
)
"""What `Difference.rank` says."""

SILENT = "facts.error"
"""The key that says of a node that it gave no facts."""

MOST_SHOWN = 6
"""Differences of one kind that are shown with their values; the unexplained are never cut."""


def print_differences(
    differences: Sequence[Difference],
    equal: str,
    console: Console,
    *,
    several: bool = False,
    everything: bool = False,
) -> None:
    """Print differences by kind, most pressing first; `equal` says how many facts are equal.

    `several` arms are named beside each difference. Unknown facts are only counted, and long
    lists cut, unless `everything` is asked for.
    """
    for kind, means in MEANS.items():
        mine = _joined([d for d in differences if d.kind == kind])
        if not mine:
            continue
        if kind == "unknown" and not everything:
            line(console, f"{means}: {len(mine)}", indent=2, style="dim")
            for one, arms in mine:
                if one.key == SILENT:
                    said = f"{', '.join(arms)}: {one.arm_value}"
                    line(console, said, indent=4, hang=2, style="bold", name="no facts")
            continue
        line(console, f"{means}: {len(mine)}", indent=2, style=_style(kind))
        cut = not everything and kind != "unexplained"
        for one, arms in mine[: MOST_SHOWN if cut else None]:
            _print_one(one, arms if several else (), console)
        if cut and len(mine) > MOST_SHOWN:
            rest = ", ".join(one.key for one, _ in mine[MOST_SHOWN:])
            line(console, f"and {len(mine) - MOST_SHOWN} more: {rest}", indent=4, hang=2, most=2)
    item(console, equal, style="dim")


def _print_one(one: Difference, arms: Sequence[str], console: Console) -> None:
    who = f" on {one.node}" if one.node else ""
    who += f" ({', '.join(arms)})" if arms else ""
    told = f"{one.key}{who}: {one.reference_value} -> {one.arm_value}"
    if one.kind == "unexplained":
        item(console, told, style="bold", indent=4)
        if one.reason:
            item(console, f"{LIKELY[one.rank]}: {one.reason}", indent=6)
    elif one.kind == "accepted":
        item(console, f"{told}, because: {one.reason}", indent=4)
    else:
        item(console, told, indent=4)


def print_section(judgement: Judgement, console: Console) -> None:
    """Print the section of the report."""
    heading(console, "Not held equal")
    print_differences(
        judgement.differences,
        sentences.equal_text(judgement),
        console,
        several=len(judgement.study.arms) > 2,
    )


def print_audit(
    study: Study,
    nodes: Mapping[str, Mapping[str, Facts]],
    answer: Audit,
    console: Console,
    *,
    everything: bool = False,
) -> None:
    """Print the answer of `paribus audit`: one sentence, then what differs."""
    line(console, _answer(study, answer), style="bold")
    line(console, _asked(study, nodes), style="dim")
    console.print()
    equal = f"{units.count(len(answer.equal), 'fact')} equal in all arms."
    several = len(study.arms) > 2
    print_differences(answer.differences, equal, console, several=several, everything=everything)


def _answer(study: Study, answer: Audit) -> str:
    count = len({d.key for d in answer.differences if d.kind == "unexplained"})
    if not count:
        return f"Nothing is unexplained: what differs is the factor ({study.factor}), or follows."
    what = "fact differs" if count == 1 else "facts differ"
    return (
        f"{count} {what} beyond the factor ({study.factor}): verdicts are withheld until that is"
        ' made equal, named under `explains`, or accepted with --accept KEY="reason".'
    )


def _asked(study: Study, nodes: Mapping[str, Mapping[str, Facts]]) -> str:
    told = [
        f"{arm.name} ({', '.join(nodes.get(arm.name, {})) or 'no nodes'})" for arm in study.arms
    ]
    return f"Facts of {told[0]} against {'; '.join(told[1:])}."


def unexplained(judgement: Judgement) -> bool:
    """Return whether something differs that withholds verdicts: the report then leads with it."""
    return any(d.kind == "unexplained" for d in judgement.differences)


def html_section(judgement: Judgement) -> Html:
    """Return the section of the page: a table of what differs, and what is unknown folded."""
    compared = [d for d in judgement.differences if d.kind != "unknown"]
    unknown = [d for d in judgement.differences if d.kind == "unknown"]
    head = [
        "Fact",
        "Arm",
        f"In {judgement.reference}",
        "In the arm",
        "Explained by",
        "Why it matters",
    ]
    shown = table(
        head,
        [_cells(d) for d in _sorted(compared)],
        "Facts that differ between the arms",
        left=range(len(head)),
    )
    return element(
        "section",
        element("h2", "What was not held equal"),
        shown if compared else Html(""),
        element("p", escape(sentences.equal_text(judgement))),
        _folded(unknown, head[:4]) if unknown else Html(""),
    )


def _folded(unknown: Sequence[Difference], head: Sequence[str]) -> Html:
    count = len({d.key for d in unknown})
    return element(
        "details",
        element("summary", escape(f"{count} facts could not be compared")),
        table(
            head, [_cells(d)[:4] for d in unknown], "Unknown in one arm or in both", left=range(4)
        ),
    )


def _cells(d: Difference) -> list[Html]:
    said = escape(MEANS[d.kind])
    why = f"{LIKELY[d.rank]}: {d.reason}" if d.kind == "unexplained" and d.reason else d.reason
    return [
        join(element("code", escape(d.key)), escape(f" on {d.node}" if d.node else "")),
        escape(d.arm),
        escape(d.reference_value),
        escape(d.arm_value),
        element("b", said) if d.kind == "unexplained" else said,
        escape(why),
    ]


def _sorted(differences: Sequence[Difference]) -> list[Difference]:
    kinds = list(MEANS)
    return sorted(differences, key=lambda d: (kinds.index(d.kind), -d.rank))


def _joined(differences: Sequence[Difference]) -> list[tuple[Difference, list[str]]]:
    """Return differences that several arms share once, with the arms."""
    grouped: dict[tuple[object, ...], tuple[Difference, list[str]]] = {}
    for d in _sorted(differences):
        alike = (d.key, d.reference_value, d.arm_value, d.kind, d.node)
        grouped.setdefault(alike, (d, []))[1].append(d.arm)
    return list(grouped.values())


def _style(kind: str) -> str:
    return "bold" if kind in ("unexplained", "accepted") else ""
