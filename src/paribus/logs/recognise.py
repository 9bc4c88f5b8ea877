"""Whose output a text is, and what it says: each of the outputs in it is read by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import NamedTuple

from paribus.core import ParseError, Unreadable, format_bytes
from paribus.logs.divide import Part, divided, titles
from paribus.logs.failures import Failure, failures
from paribus.logs.hints import hint
from paribus.logs.labels import (
    COMMAND,
    Label,
    above,
    without_command,
    without_commands,
)
from paribus.logs.log import Log, Unread
from paribus.logs.ranks import by_rank, in_order, is_alone, of_tags, started
from paribus.readers.harness import Failed, Harness, Launches
from paribus.readers.heads import UNREAD
from paribus.readers.known import every, file_of
from paribus.readers.launches import FAILED, failed
from paribus.readers.reader import Read, Reader
from paribus.readers.settings import NOTHING_PRINTED, printed
from paribus.readers.tags import ranks
from paribus.readers.text import HEAD, LONGEST, within

MIXED = Unreadable.MIXED

LEAST_TORN = 3
"""Outputs of a tool in a text that hold lines of another, from which on they are mixed: one or two
may lack their title.
"""

MOST_CUT = 16 << 20
"""Characters of one of several outputs in a text, at most. One that is alone may be longer."""


class Held(NamedTuple):
    """What a text holds, and what of it was not read, and why.

    Of the `outputs` in it something was read of `read`, and nothing of the others.
    """

    found: list[Log]
    problems: list[Unread]
    outputs: int = 0
    read: int = 0


_Read = tuple[list[Log], list[Unread]]


class _Output(NamedTuple):
    """One output: its text, and whose it is, nobody's if no benchmark is read that begins so.

    `number` is its own among several that have readers, from 1, else 0. `part` and the lines
    `before` it in that say which line of the file one of the text is; without a part they are the
    same. `labels` stand above it. `longest` are the characters of the longest other output of its
    tool, if it is the last of a text: what is further below is of nobody; else 0.
    """

    text: str
    readers: Sequence[Reader | Harness]
    number: int
    part: Part | None
    before: int = 0
    labels: Sequence[Label] = ()
    longest: int = 0

    @property
    def shown(self) -> str:
        """Return its text without the commands above it, of which labels hold what they say."""
        if self.part is None or self.before:
            return self.text
        return without_command(self.text, self.part.at, self.longest)

    @property
    def title(self) -> int:
        """Return the number in the file of the line of its title."""
        return self.part.said[1] if self.part and not self.before else self.line(1)

    def line(self, number: int) -> int:
        """Return the number in the file of a line of the text."""
        return self.part.number(self.before + number) if self.part else number


def shows(text: str) -> bool:
    """Return whether the beginning of a text, which is `plain`, shows any known tool."""
    return bool(titles(text[:HEAD]) or near(text))


def near(text: str) -> list[str]:
    """Return the tools of which the beginning of a text, which is `plain`, shows something.

    By a title, or where there is none by what else an output has near its beginning.
    """
    head = text[:HEAD]
    found = [title.tools for title in titles(head)]
    named = {name for names in found for name in names}
    named = named or {one.name for one in every().values() if within(one.marks, head)}
    return [name for name in every() if name in named]


def readings(text: str, tagged: str = "") -> Held:
    """Return what a text, which is `plain`, holds: each output is read by itself, or refused.

    Where there is no title, the whole is given to the readers of the tools whose marks it has.
    `tagged` is the text with the tags of ranks: outputs of several ranks are cases, not launches.
    """
    parts = divided(text)
    lines = ranks(tagged, text) if tagged else []
    order = by_rank(lines) if len({*lines} - {""}) > 1 else []
    if order != sorted(order):
        text, lines = in_order(text, order), [lines[at] for at in order]
        parts = divided(text)
    outputs = _outputs(parts) or [_untitled(text)]
    of, lost = _failed(text, outputs) if failed(text) else ({}, [])
    pasted = [problem for part in parts for problem in _pasted_above(part)]
    launches = (
        of_tags(text, [one.title for one in outputs], lines, _forms(outputs)) if parts else []
    )
    parts.clear()
    held: list[_Read] = []
    for at, output in enumerate(outputs):
        held.append(_read(output, of.get(at)))
        outputs[at] = output._replace(text="", part=None)  # of a long file all are as long again
    _take_out_mixed(held)
    _label(outputs, held, launches, of)
    held += [([], [problem]) for problem in pasted]
    found = [one for several, _ in held for one in several]
    if len(held) > 1 and any(one.metrics for one in found):  # each may hold several launches
        found = [replace(one, part=number) for number, one in enumerate(found, 1)]
    problems = [
        replace(problem, output=0 if several else number)
        for number, (several, refused) in enumerate(held, 1)
        for problem in refused
    ]
    for one in lost:
        labels = _in_force({}, one.labels)
        problems.append(Unread(Unreadable.LAUNCH_FAILED, one.said, line=one.line, labels=labels))
    if order:
        problems = [replace(one, line=one.line and order[one.line - 1] + 1) for one in problems]
    read = sum(bool(several) for several, _ in held)
    return Held(found, problems, len(held) if found or problems else 0, read)


def _take_out_mixed(held: list[_Read]) -> None:
    """Refuse all outputs of a tool of which several hold lines of each other.

    So they are where ranks write into one file without turns: what is whole by chance is no sample.
    """
    torn = Counter(one.tool for _, refused in held for one in refused if one.code is MIXED)
    mixed = {tool for tool, number in torn.items() if number >= LEAST_TORN}
    for several, refused in held:
        tools = {*(one.reading.benchmark for one in several), *(one.tool for one in refused)}
        if not tools.isdisjoint(mixed):
            several.clear()
            refused[:] = [Unread(MIXED, tool, tool) for tool in sorted(tools & mixed)]
        for at, one in enumerate(refused):
            if one.code is MIXED and one.tool not in mixed:
                refused[at] = replace(one, code=Unreadable.REFUSED)


def _label(
    outputs: Sequence[_Output],
    held: Sequence[_Read],
    launches: list[dict[int, str]],
    of: Mapping[int, Failure],
) -> None:
    """Give what was read the labels in force, and say which are of ranks of one launch.

    If one of these failed, so did all: none of their figures counts.
    """
    named: Mapping[str, str] = {}
    counted, below = "", dict[tuple[int, str], list[int]]()
    for at, (output, (several, refused)) in enumerate(zip(outputs, held, strict=True)):
        named = _in_force(named, output.labels) if output.labels else named
        counted = " ".join(one.counts for one in output.labels).strip() or counted
        first = at if output.labels or not below else next(reversed(below))[0]
        below.setdefault((first, output.readers[0].name if output.readers else ""), []).append(at)
        # Of one alone all lines above are its own, and say as facts what they say.
        mine = named if len(outputs) > 1 else {k: v for k, v in named.items() if k == COMMAND}
        several[:] = [replace(one, labels=mine, counted=counted) for one in several]
        refused[:] = [replace(one, labels=mine) for one in refused]
    for places in below.values() if not launches else ():
        alike = [one for at in places for one in held[at][0]]
        if len(places) < 2 or not alike or not all(is_alone(one.reading) for one in alike):
            continue
        number, by_command = started(alike[0].labels)
        if by_command and len(places) == number:
            launches.append({at: f"output {n}/{number}" for n, at in enumerate(places, 1)})
        elif number > 1 and (by_command or len(places) % number == 0):
            for at in places:
                held[at][0][:] = [replace(one, ranks=number) for one in held[at][0]]
    for launch in launches:
        died = next((of[at] for at in launch if at in of), None)
        for at, wrote in launch.items():
            several, refused = held[at]
            if died is not None:
                refused += [_died(one.reading.benchmark, died) for one in several]
                several.clear()
            several[:] = [replace(one, labels={**one.labels, "wrote": wrote}) for one in several]


def _failed(text: str, outputs: Sequence[_Output]) -> tuple[dict[int, Failure], list[Failure]]:
    """Return which outputs of a text failed, by their place, and launches without an output."""
    titles = [one.title for one in outputs if one.part or one.readers]
    said = FAILED if titles else (*FAILED, *complaints())
    return failures(text, said, titles, _forms(outputs))


@cache
def complaints() -> tuple[str, ...]:
    """Return what tools say of a launch that failed before they say their name."""
    said = (one.complaints for one in every().values())
    return tuple(dict.fromkeys(chain.from_iterable(said)))


def _forms(outputs: Sequence[_Output]) -> set[str]:
    """Return the forms of headings between outputs: of those that stand above the first as well."""
    return {label.form for label in outputs[0].labels}


def _pasted_above(part: Part) -> Iterable[Unread]:
    """Yield what is refused of the text above an output: a table that was pasted without title."""
    if likely := hint(part.text[: part.at]) if part.at else None:
        yield likely.refused(part.number(likely.line))


def _in_force(before: Mapping[str, str], new: Iterable[Label]) -> Mapping[str, str]:
    """Return what labels say below the new ones: each until another of its form is there."""
    found: dict[str, str] = {}
    for label in new:
        if label.said:
            found[label.form] = f"{found.get(label.form, '')} {label.said}".strip()
    return {**before, **found}


def _outputs(parts: Iterable[Part]) -> list[_Output]:
    """Return the outputs in parts of a text, in order: those with one heading each by itself."""
    found: list[_Output] = []
    for alone in parts:
        mine = _readers_of(alone)
        one = mine[0] if mine else None
        part = alone.after(one.library) if isinstance(one, Reader) and one.library else alone
        several = [(0, part.text)]
        if isinstance(one, Reader) and one.several:
            several = one.several(part.text)
        named = part.labels
        last = ""
        for before, each in several:
            if last:
                named = above(last.split("\n"), part.title.deeper).labels
            found.append(_Output(each, mine, 0, part, before, named))
            last = each
    if found:
        others = [len(one.text) for one in found[:-1] if one.readers == found[-1].readers]
        found[-1] = found[-1]._replace(longest=max(others, default=0))
    known = [at for at, one in enumerate(found) if one.readers]
    if len(known) > 1:
        for number, at in enumerate(known, 1):
            found[at] = found[at]._replace(number=number)
    return found


def _readers_of(part: Part) -> list[Reader | Harness]:
    """Return whose an output is: of tools with one title, those whose marks are in it.

    One that ended before it named its benchmarks is refused in the name of the first of them.
    """
    mine: list[Reader | Harness] = [every()[name] for name in part.title.tools]
    if len(mine) < 2:
        return mine
    head = part.text[: part.at + HEAD]
    marked = [one for one in mine if within(one.marks, head)]
    return marked or ([] if part.title.head.names in part.text else mine[:1])


def _untitled(text: str) -> _Output:
    """Return what has no title as one output of every tool of which it shows something."""
    likely = [every()[name] for name in near(text)]
    mine = [one for one in likely if len(likely) == 1 or one.recognise(text)]
    return _Output(text, mine, 0, None)


def _read(output: _Output, failure: Failure | None) -> _Read:
    """Return what the readers of an output read, and what they refuse: all if its launch failed."""
    if output.number and len(output.text) > MOST_CUT:
        said = f"an output of more than {format_bytes(MOST_CUT)} among others"
        name = output.readers[0].name if output.readers else ""
        return [], [Unread(Unreadable.REFUSED, said, name, line=output.line(1))]
    if not output.readers and output.part:
        title, line = output.part.said
        if likely := hint(output.text):
            return [], [likely.refused(line)]
        of = UNREAD.get(output.part.title.head, "IMB-MPI1")
        return [], [Unread(Unreadable.NO_READER, f"{of}, {title[:LONGEST]!r}", line=line)]
    found: list[Log] = []
    problems: list[Unread] = []
    for one in output.readers:
        try:
            if isinstance(one, Harness):
                return _of_harness(output, one.name, _reading(one.read_clean, output))
            reading = _reading(one.read_clean, output)
            if failure is not None:
                problems.append(_died(one.name, failure))
                continue
            date, shown = one.started(output.text), printed(file_of(one.name), output.shown)
            found.append(Log(reading, date, output.number, printed=shown))
        except Exception as error:
            unplaced = isinstance(error, ParseError) and not error.line
            if failure is not None and unplaced:
                problems.append(_died(one.name, failure))
            else:
                problems.append(_refused(output, one.name, error))
    return found, problems


def _died(tool: str, failure: Failure) -> Unread:
    said = f"{tool}: the launch failed: {failure.said!r}"
    return Unread(Unreadable.REFUSED, said, tool, line=failure.line)


def _reading(read: Callable[[str], Read], output: _Output) -> Read:
    """Return what a reader says of an output, or of it without commands that are echoed in it.

    Or of it with what stands below it and looks like labels of the next.
    """
    try:
        return read(output.text)
    except ParseError:
        title = output.part.at if output.part and not output.before else 0
        several = without_commands(output.text, title) if len(output.text) <= MOST_CUT else []
        if output.part and output.part.tail:
            several.append(output.text + output.part.tail)
        for text in several:
            with suppress(ParseError):
                return read(text)
        raise


def _of_harness(output: _Output, name: str, launches: Launches) -> _Read:
    found, problems = [], []
    for number, one in enumerate(launches, 1):
        if isinstance(one, Failed):
            cause = f"{name}: {one.cause}"
            problems.append(Unread(Unreadable.REFUSED, cause, name, *one[1:]))
        else:
            part = number if len(launches) > 1 else output.number
            # What a file with all arms says of machines, it does not say of one of them.
            shown = NOTHING_PRINTED if one.arm else printed(name, output.text)
            found.append(Log(one.reading, one.date, part, one.metrics, one.arm, shown))
    return found, problems


def _refused(output: _Output, tool: str, error: Exception) -> Unread:
    """Return why an output was refused; a reader's own fault costs its file, not the comparison."""
    why = f"not understood ({type(error).__name__}: {error})"
    line, code = 0, Unreadable.REFUSED
    if isinstance(error, ParseError):
        why = error.cause
        line = error.line or (output.number and 1)
        code = MIXED if error.alone and output.number else code
    at = output.line(line) if line else 0
    of = "" if isinstance(error, ParseError) and error.form else tool  # no launch failed
    return Unread(code, f"{tool}: {why}", of, line=at)
