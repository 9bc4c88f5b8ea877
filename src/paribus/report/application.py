"""An application: where its time goes, and what a study predicts for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paribus.core import Judgement, Prediction, count, format_seconds, percent
from paribus.report.markup import Html, element, escape
from paribus.report.printing import Row, heading, item, print_rows
from paribus.words import application as words

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.profile.profiler import Taken

MOST_CALLS = 8
MUCH = 0.02
"""Share of the time above which the profiler's own part is a warning: it is meant to be below."""


STARVED = 0.9
"""CPU time over time below which a profile may be of other programs: the busy waits of MPI use all
of a core. LAMMPS with 58, 50 and 20 % of its cores spent 38, 50 and 60 % of its time in MPI."""


def print_predictions(judgement: Judgement, console: Console) -> None:
    """Print what is predicted, an arm after the other."""
    if judgement.predictions:
        heading(console, words.TITLE)
    for one in judgement.predictions:
        item(console, words.said(one), name=one.arm)
        item(console, words.basis(one), style="dim")


def html_section(judgement: Judgement) -> Html:
    """Return the section of the HTML report, empty where nothing is predicted."""
    if not judgement.predictions:
        return Html("")
    rows = [
        element(
            "li",
            element("b", escape(f"{one.arm}: ")),
            escape(words.said(one)),
            element("small", escape(f" {words.basis(one)}")),
        )
        for one in judgement.predictions
    ]
    title = element("h2", escape(words.TITLE))
    return element("section", title, element("ul", *rows), aria_label="Prediction")


def to_json(one: Prediction) -> dict[str, Any]:
    """Return a prediction as JSON values; `text` is for people, `predicted` always true."""
    return {
        "arm": one.arm,
        "application": one.application,
        "command": one.command,
        "predicted": True,
        **{key: getattr(one, key) for key in ("ratio", "low", "high", "level")},
        "word": one.word,
        "parts": [
            {
                "part": part.part,
                "share": part.share,
                "kinds": [str(kind) for kind in part.kinds],
                **{key: getattr(part, key) for key in ("ratio", "low", "high")},
            }
            for part in one.parts
        ],
        "programs": list(one.programs),
        "text": f"{words.said(one)} {words.basis(one)}",
    }


def print_taken(taken: Taken, console: Console) -> None:
    """Print a profile that was just taken: shares with their spread over ranks, and calls."""
    profile = taken.profile
    heading(console, f"{profile.command}: {count(profile.ranks, 'rank')}")
    rows = [
        Row([words.PARTS[part], *(percent(table[part]) for table in tables)])
        for tables in [(profile.shares, taken.least, taken.most)]
        for part in words.PARTS
        if taken.most[part]
    ]
    head = ["share of time", "all ranks", "least rank", "most rank"]
    print_rows(console, head, rows, right={1, 2, 3}, verdict=0)
    first = sorted(taken.calls.items(), key=lambda one: -one[1]["seconds"])[:MOST_CALLS]
    rows = [
        Row([f"MPI_{call}", f"{row['calls']:,}", f"{row['seconds']:.4g} s", f"{row['bytes']:,} B"])
        for call, row in first
    ]
    if rows:
        head = ["call, all ranks", "calls", "time", "data"]
        print_rows(console, head, rows, right={1, 2, 3}, verdict=0)
    item(
        console,
        f"{format_seconds(taken.seconds)} between MPI_Init and MPI_Finalize; {profile.library};"
        f" {profile.machine}; {profile.taken}",
    )
    item(console, f"{words.SIZES} {words.NOT_SEPARATED} {words.LATE}")
    if taken.cpu < STARVED:
        item(console, f"A rank had {percent(taken.cpu)} of a core: {words.STARVED}")
    mine = f"Counting took about {percent(taken.own)} of the time"
    if taken.own > MUCH:
        item(console, f"{mine}: the program sends very many messages, and MPI's share is too high.")
    else:
        item(console, f"{mine}.")
    if taken.timed < 1:
        item(console, words.estimated(taken.timed, taken.error))
