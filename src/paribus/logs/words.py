"""Sentences about logs: why they are paired as they are, and why files were not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from paribus.core import Unreadable, Untimed, count
from paribus.words import lists
from paribus.words.lists import listed

if TYPE_CHECKING:
    from paribus.logs.pairing import Grounds

PAIRED: Mapping[str, str] = {
    "one": "one log of each arm",
    "time": "neighbours in time",
    "name": "logs of the same name",
    "order": "logs in the order of their names",
}
"""What a pair is, by the way of pairing."""

_UNTIMED: Mapping[Untimed, str] = {
    Untimed.NOT_ALL_DATED: "not all of them have a date",
    Untimed.ONE_DATE: "they all have the same date",
    Untimed.ZONES_MIXED: "some of their dates are in UTC, some in a local time that is not named",
    Untimed.DATES_JUMP: (
        "their dates jump by {hours:g} h against those times (another time zone, or a changed"
        " clock)"
    ),
    Untimed.SEVERAL_IN_A_FILE: "one file holds several",
    Untimed.FILES_COPIED: "the files were copied, or their times are too coarse",
}

_IN_VAIN: Mapping[str, str] = {
    "name": "few logs have the same name in every arm",
    "order": "the arms have different numbers of logs to be paired in order",
}

_BY = {"dates": ", by the dates in the logs", "files": ", by the times of their files"}


MOST_TOOLS = 6
"""Tools that a sentence names."""


def read_from(files: int, outputs: int | None, tools: Sequence[str], paired: str) -> str:
    """Return in one sentence what was read and how it is paired.

    `outputs` is None where every file holds one.
    """
    found = count(files, "log")
    if outputs is not None:
        found = f"{count(outputs, 'output')} in {count(files, 'file')}"
    return f"{found} of {listed(tools, MOST_TOOLS)}, {paired}."


ASKED: Mapping[str, str] = {
    "repeated": "Outputs in one file that print the same settings are repeats, as requested.",
    "place": "The n-th output of each file is case n, as requested.",
    "name": "Files of other names are other cases, as requested.",
}


def held(files: int, outputs: int, read: int) -> str:
    """Return in one sentence how many outputs files hold, and how many of them were read."""
    refused = f", {outputs - read} refused" if outputs > read else ""
    return f"{count(outputs, 'output')} found in {count(files, 'file')}, {read} read{refused}."


def how_paired(way: str, grounds: Grounds, *, apart: bool) -> str:
    """Return "paired: ..." with why, "ordered ..." or "not paired: ...", for a sentence.

    `apart` is whether the logs are ordered in time or by name, and have no pairs.
    """
    begin = "not paired:" if way == "none" else "ordered" if apart else "paired:"
    return f"{begin} {pairing(way, grounds, apart=apart)}"


def pairing(way: str, grounds: Grounds, *, apart: bool = False) -> str:
    """Return how logs are paired, or why they are not, for a sentence; as `how_paired`."""
    paired = PAIRED.get(way, "")
    if apart:
        paired = "in time" if way == "time" else "by name"
    untimed = filter(None, (grounds.undated, grounds.copied))
    untimed_why = [_UNTIMED[code].format(hours=grounds.hours) for code in untimed]
    if grounds.granted:
        though = f", though {untimed_why[0]}" if untimed_why else ""
        return f"{paired}, as requested{though}"
    vain = [_IN_VAIN[grounds.asked]] if grounds.asked in _IN_VAIN else []
    why = ", and ".join([*vain, *untimed_why])
    if way == "none":
        return why
    return f"{paired}{_BY.get(grounds.by, '')}{f': {why}' if why else ''}"


TWO_INTERVALS = (
    "Unpaired launches decide where they can, pairs elsewhere, each with half of the error."
)


def unmatched(label: str, counts: Mapping[str, int], example: str = "") -> str:
    """Return why logs of one kind have no match; `counts` are how many of them each arm has.

    Without `counts` every arm has some, but no case is in all. `example` is the name of one log.
    """
    if not counts:
        return f"{label}: no case is in all of its logs"
    has = ", ".join(f"{count(n, 'log')} of {lists.arm(arm)}" for arm, n in counts.items() if n)
    none = ", ".join(lists.arm(arm) for arm, n in counts.items() if not n)
    return f"{label}{f' ({example})' if example else ''}: {has}, none of {none}"


MOST_LINES = 3
"""Lines of files that a sentence names."""

_UNREAD: Mapping[Unreadable, str] = {
    Unreadable.SAME_FILE: "{be} the same file as {detail}",
    Unreadable.SAME_RUN: "{be} another output of a launch that is read",
    Unreadable.CANNOT_BE_READ: "cannot be read: {detail}",
    Unreadable.NO_FILE: "{be} a pipe or a device, not a file",
    Unreadable.LINK_TO_FOLDER: "{be} a link to a folder",
    Unreadable.TOO_LARGE: "{be} larger than {detail}",
    Unreadable.SHORTENED: "{be} not whole: {detail} of the output were not kept",
    Unreadable.EMPTY: "{be} empty",
    Unreadable.BINARY: "{be} binary",
    Unreadable.NOT_PLAIN: "{be} {detail}",
    Unreadable.NO_LOG: "{be} by name a source, a script, settings or a README, and no log",
    Unreadable.UNKNOWN_TOOL: "{be} not the output of a known tool",
    Unreadable.NO_READER: "{be} of a program that Paribus does not read: {detail}",
    Unreadable.LAUNCH_FAILED: "{be} from a failed launch: {detail!r}",
    Unreadable.WIRING: "{be} not a benchmark: the wiring of {detail}",
    Unreadable.WIRING_DAMAGED: "{be} a damaged output of nvidia-smi topo -m: {detail}",
    Unreadable.MIXED: (
        "outputs of {detail} hold lines of each other, as of ranks that write into one file: give"
        " each rank a file (srun --output=%t.out, mpirun --output-filename DIR)"
    ),
    Unreadable.REFUSED: "{detail}",
}


def unread(
    code: Unreadable, detail: str = "", *, several: bool = False, lines: Sequence[int] = ()
) -> str:
    """Return why a file, or `several`, was not read: the rest of a sentence after its name.

    `lines` are the numbers of the lines that show it.
    """
    why = _UNREAD[code].format(be="are" if several else "is", detail=detail)
    if not lines:
        return why
    where = ", ".join(map(str, lines[:MOST_LINES]))
    more = f" and {len(lines) - MOST_LINES} more" if len(lines) > MOST_LINES else ""
    return f"{why}, line{'s' if len(lines) > 1 else ''} {where}{more}"


def regarded(part_of_arm: Sequence[str], keys: Sequence[str]) -> str:
    """Return in a sentence which settings are facts of the arms, or keys, by the user's word."""
    sentences = (
        ("Part of the arms (--part-of-arm): {}.", part_of_arm),
        ("What distinguishes benchmarks (--key): {}.", keys),
    )
    return " ".join(text.format(", ".join(names)) for text, names in sentences if names)


def by_place(names: Sequence[str]) -> str:
    """Return how to compare logs that differ in these settings alone, as the end of a sentence."""
    given = ",".join(name.replace(" ", "_") for name in names)
    return f"; if the arms are machines, or models, that differ in this: --part-of-arm {given}"


BY_LABEL = (
    "; if the lines between the outputs of a log distinguish no cases, such as names of hosts:"
    " --repeated, or --by place to compare the n-th output of each log"
)
