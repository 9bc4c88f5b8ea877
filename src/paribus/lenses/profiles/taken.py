"""What `paribus profile` prints on a terminal once it has profiled an application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paribus.core import FEW_CPUS, count, format_seconds, percent
from paribus.lenses.profiles.prediction import LATE, PARTS
from paribus.report.printing import Row, heading, item, print_rows

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.profile.profiler import Taken

MOST_CALLS = 8
MUCH = 0.02
"""Share of the time above which that of the profiler itself is worth a warning."""

SIZES = "Small: up to 1 KiB; large: from 64 KiB on."

NOT_SEPARATED = "Compute and memory are not separated: the profiler reads no hardware counters."
STARVED = "other programs, or files, held it up; repeat the profile when nothing else is running."


def estimated(timed: float, error: float) -> str:
    """Return the sentence on the error of a profile that timed only the share `timed` of calls."""
    return (
        f"All calls were counted and {percent(timed)} timed: of short ones one of 32, by a draw."
        f" So times are estimates: a share is within {percent(error)} of the time of what"
        " timing all would give (95 %)."
    )


def _skeleton(taken: Taken) -> str:
    """Return the sentence on the calls that a study can replay, or on why there are none."""
    known = taken.skeleton
    if taken.profile.skeleton is None:
        return (
            "No skeleton, so no forecast: several threads call MPI, or a call names a communicator"
            " between two groups, or requests that are not known."
        )
    part = "all" if known["whole"] else f"{known['loop'] or 'a part'} of"
    waits = ""
    if not known["off_node"]:
        waits = f" {percent(known['late'])} of the time in MPI waits for ranks that come later"
        if any(taken.profile.shares[f"messages_{size}"] for size in ("small", "middle", "large")):
            waits += (
                f"; {percent(known['early'])} of the messages were sent before they were needed"
            )
        waits += "."
    took = format_seconds(taken.profile.skeleton.seconds)
    return f"Its skeleton has {part} the calls, {known['events']:,} in {took}.{waits}"


def print_taken(taken: Taken, console: Console) -> None:
    """Print a profile: shares with their spread over ranks, the calls that took most, notes."""
    profile = taken.profile
    heading(console, f"{profile.command}: {count(profile.ranks, 'rank')}")
    rows = [
        Row([PARTS[part], *(percent(table[part]) for table in tables)])
        for tables in [(profile.shares, taken.least, taken.most)]
        for part in PARTS
        if taken.most[part]
    ]
    head = ["share of time", "all ranks", "least rank", "most rank"]
    print_rows(console, head, rows, right={1, 2, 3}, coloured=(0,))
    first = sorted(taken.calls.items(), key=lambda one: -one[1]["seconds"])[:MOST_CALLS]
    rows = [
        Row([f"MPI_{call}", f"{row['calls']:,}", f"{row['seconds']:.4g} s", f"{row['bytes']:,} B"])
        for call, row in first
    ]
    if rows:
        head = ["call, all ranks", "calls", "time", "data"]
        print_rows(console, head, rows, right={1, 2, 3}, coloured=(0,))
    item(
        console,
        f"{format_seconds(taken.seconds)} between MPI_Init and MPI_Finalize; {profile.library};"
        f" {profile.machine}; {profile.taken}",
    )
    item(console, f"{SIZES} {NOT_SEPARATED} {LATE}")
    item(console, _skeleton(taken))
    if taken.cpu < FEW_CPUS:
        item(console, f"A rank had {percent(taken.cpu)} of a core: {STARVED}")
    mine = f"Counting took about {percent(taken.own)} of the time"
    if taken.own > MUCH:
        item(console, f"{mine}: the program sends very many messages, and MPI's share is too high.")
    else:
        item(console, f"{mine}.")
    if taken.timed < 1:
        item(console, estimated(taken.timed, taken.error))
