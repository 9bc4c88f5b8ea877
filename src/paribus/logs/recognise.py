"""Read each output of a text by the reader of its tool.

In goes the text of a file; out comes `Held`: a `Log` for each output that was read, and an `Unread`
for each that was refused, or whose launch failed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from paribus.core import ParseError, Unreadable, format_bytes
from paribus.logs.divide import divided, titles
from paribus.logs.hints import hint
from paribus.logs.labels import in_force, without_command, without_commands
from paribus.logs.launches import (
    failures,
    labels_by_rank,
    refused_with,
    tagged_launches,
    take_out_mixed,
    without_failures,
)
from paribus.logs.log import Log, Unread, rare
from paribus.logs.output import Output
from paribus.logs.ranks import by_rank, in_order
from paribus.readers.harness import Failed, Harness, Launches
from paribus.readers.heads import BRACES, UNREAD
from paribus.readers.json import in_json
from paribus.readers.known import every, file_of
from paribus.readers.reader import Read, Reader
from paribus.readers.settings import NOTHING_PRINTED, printed
from paribus.readers.tags import ranks
from paribus.readers.text import HEAD, LONGEST, line_at, within

MOST_CUT = 16 << 20
"""Characters of one of several outputs in a text, at most. One that is alone may be longer."""

MOST_RARE = 16 << 10
"""Characters of an output that are searched for what shows that another file records it too."""


class Held(NamedTuple):
    """What a text holds: the logs that were `found` in it, and the `problems` of what was not read.

    `outputs` is how many outputs it has, `read` of how many of them something was read.
    """

    found: list[Log]
    problems: list[Unread]
    outputs: int = 0
    read: int = 0


def shows(text: str) -> bool:
    """Return whether the beginning of a `plain` text shows any known tool."""
    return bool(titles(text[:HEAD]) or near(text))


def near(text: str) -> list[str]:
    """Return the names of the tools that may have printed a `plain` text, by its beginning.

    By titles, or where there are none by the marks that outputs have near their beginning.
    """
    head = text[:HEAD]
    named = {name for title in titles(head) for name in title.tools}
    if not named:
        document = head.lstrip()[:1] in BRACES
        named = {one.name for one in every().values() if _has_mark(one.marks, head, document)}
    return [name for name in every() if name in named]


def _has_mark(marks: Sequence[str], head: str, document: bool) -> bool:
    """Return whether a text has one of the marks; in a JSON document blanks do not count."""
    of_json = (mark for mark in marks if document and '"' in mark)
    return bool(within(marks, head)) or any(in_json(mark).search(head) for mark in of_json)


def readings(text: str, tagged: str = "") -> Held:
    """Return what a `plain` text holds: each output is read by itself, or refused.

    Where there is no title, the whole is given to the readers of the tools whose marks it has.
    `tagged` is the text with the tags of ranks, "" if it has none: outputs of several ranks are
    cases of one launch.
    """
    lines = ranks(tagged, text) if tagged else []
    order = by_rank(lines) if len({*lines} - {""}) > 1 else []
    if order != sorted(order):
        text, lines = in_order(text, order), [lines[at] for at in order]
    outputs = divided(text) or [_untitled(text)]
    lost = failures(text, outputs)
    launches = tagged_launches(text, outputs, lines)
    pasted: list[Output] = []
    for one in outputs:
        # A table without its title may have been pasted above it.
        if one.at and (likely := hint(one.text[: one.at])):
            likely = replace(likely, line=one.line(likely.line))
            pasted.append(Output("", problems=[likely]))
        _read(one)
        if one.found or one.failure:
            one.text = ""  # of a long file all are as long again
    whole = [log for one in outputs for log in one.found]
    for one in outputs:
        _read_above(one, whole)
        one.text = ""
    lost += [one.failure for one in outputs if one.found and one.failure]
    take_out_mixed(outputs)
    labels_by_rank(outputs, launches)
    outputs += pasted
    found = [log for one in outputs for log in one.found]
    if len(outputs) > 1 and any(log.metrics for log in found):  # each may hold several launches
        found = [replace(log, part=number) for number, log in enumerate(found, 1)]
    problems = [
        replace(why, output=0 if one.found else number, labels=one.labels_in_force)
        for number, one in enumerate(outputs, 1)
        for why in one.problems
    ]
    for failure in lost:
        code, detail = Unreadable.LAUNCH_FAILED, failure.text
        if failure.another:
            code, detail = Unreadable.REFUSED, f"another program was not started: {detail!r}"
        labels = in_force(failure.labels, {})
        problems.append(Unread(code, detail, line=failure.line, labels=labels))
    if order:
        problems = [replace(why, line=why.line and order[why.line - 1] + 1) for why in problems]
    read = sum(bool(one.found) for one in outputs)
    return Held(found, problems, len(outputs) if found or problems else 0, read)


def _untitled(text: str) -> Output:
    """Return a text without a title as one output, with the readers of all tools it may be of."""
    likely = [every()[name] for name in near(text)]
    readers = [one for one in likely if len(likely) == 1 or one.recognise(text)]
    return Output(text, readers, numbers=range(1, text.count("\n") + 2))


def _read(one: Output) -> None:
    """Add to an output what its readers read, and what they refuse: all if its launch failed."""
    if one.number and len(one.text) > MOST_CUT:
        cause = f"an output of more than {format_bytes(MOST_CUT)} among others"
        one.problems.append(Unread(Unreadable.REFUSED, cause, one.name, line=one.line(1)))
    elif not one.readers and one.title:
        if likely := hint(one.text):
            one.problems.append(replace(likely, line=one.title_line))
            return
        family = UNREAD.get(one.title.head, "IMB-MPI1")
        detail = f"{family}, {line_at(one.text, one.at).strip()[:LONGEST]!r}"
        one.problems.append(Unread(Unreadable.NO_READER, detail, line=one.title_line))
    else:
        for reader in one.readers:
            try:
                if isinstance(reader, Harness):
                    _of_harness(one, reader.name, _reading(reader.read_clean, one))
                    return
                _of_tool(one, reader)
            except Exception as error:
                died = one.failure if isinstance(error, ParseError) else None
                at = error.line if isinstance(error, ParseError) else 0
                if died and (not at or one.line(at) >= died.line):
                    one.problems.append(refused_with(died, reader.name))
                else:
                    one.problems.append(_refused(one, reader.name, error))


def _read_above(one: Output, whole: Sequence[Log]) -> None:
    """Read a refused output again up to the line that was refused, if others of its file are whole.

    It counts if it has all figures that one of them has: below it a script sums up what it has
    measured, in rows as the tool prints them.
    """
    refused = [why.line for why in one.problems if why.code is Unreadable.REFUSED]
    above = bisect_left(one.numbers, refused[0]) - one.first if refused else 0
    lines = one.text.split("\n")
    if not 0 < above < len(lines) or not lines[above].lstrip()[:1].isdigit():
        return
    again = replace(one, text="\n".join([*lines[:above], ""]), tail="", found=[], problems=[])
    _read(again)
    shapes, mine = (
        {(log.test, *(sample[:2] for sample in log.reading.samples)) for log in logs}
        for logs in (whole, again.found)
    )
    if mine and mine <= shapes:
        one.found, one.problems = again.found, []


def _of_tool(one: Output, reader: Reader) -> None:
    """Add the log of a tool's output, or that its launch failed; raises as its reader does."""
    reading = _reading(reader.read_clean, one)
    if one.failure and not one.failure.before:
        one.problems.append(refused_with(one.failure, reader.name))
        return
    # What the commands above it say is among the labels.
    own = without_command(one.text, one.at, one.longest) if one.title else one.text
    shown = printed(file_of(reader.name), without_failures(own))
    labels, counted = one.labels_in_force, one.counted
    log = Log(reading, reader.started(one.text), one.number, printed=shown)
    prints = " ".join(rare(one.text[one.at : one.at + MOST_RARE]))
    one.found.append(replace(log, labels=labels, counted=counted, rare=prints))


def _of_harness(one: Output, name: str, launches: Launches) -> None:
    """Add a log for each launch in a harness's file that gave figures, and why others did not."""
    # What a file with several arms says of machines, it does not say of one of them.
    alone = len({launch.arm for launch in launches}) == 1
    for number, launch in enumerate(launches, 1):
        if isinstance(launch, Failed):
            cause = f"{name}: {launch.cause}"
            one.problems.append(Unread(Unreadable.REFUSED, cause, name, *launch[1:]))
        else:
            part = number if len(launches) > 1 else one.number
            shown = printed(name, one.text) if alone else NOTHING_PRINTED
            log = Log(launch.reading, launch.date, part, launch.metrics, launch.arm, shown)
            one.found.append(replace(log, labels=one.labels_in_force, counted=one.counted))


def _reading(read: Callable[[str], Read], one: Output) -> Read:
    """Return what a reader says of an output; raises ParseError for what it refuses.

    Before that the reader tries it without echoed commands, with the lines below it that look like
    labels of the next output, and without complaints.
    """
    try:
        return read(one.text)
    except ParseError:
        several = without_commands(one.text, one.at) if len(one.text) <= MOST_CUT else []
        if one.tail:
            several.append(one.text + one.tail)
        if one.failure and one.failure.before:
            several.append(without_failures(one.text))
        for text in several:
            with suppress(ParseError):
                return read(text)
        raise


def _refused(one: Output, tool: str, error: Exception) -> Unread:
    """Return why an output was refused.

    Any error is one of its output alone, a fault of the reader too: the comparison goes on.
    """
    why = f"not understood ({type(error).__name__}: {error})"
    line, code = 0, Unreadable.REFUSED
    if isinstance(error, ParseError):
        why = error.cause
        line = error.line or (one.number and 1)
        code = Unreadable.MIXED if error.alone and one.number else code
    of = "" if isinstance(error, ParseError) and error.form else tool  # no launch failed
    return Unread(code, f"{tool}: {why}", of, line=one.line(line) if line else 0)
