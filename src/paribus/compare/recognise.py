"""Whose output a text is, and what it says: several outputs in one text are taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from paribus.errors import ParseError
from paribus.model import Metric, Reading, Scalar
from paribus.readers.harness import Failed, Harness
from paribus.readers.known import file_of, harnesses, readers
from paribus.readers.launches import FAILED
from paribus.readers.settings import NOTHING_PRINTED, Printed, printed
from paribus.readers.text import HEAD, within
from paribus.reasons import Unreadable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.uint16]

MOST_CUT = 16 << 20
"""Characters of a text up to which it is searched for several outputs, one after the other."""


class Found(NamedTuple):
    """An output that was read; `part` is its number, from 1, in a text that holds several, else 0.

    `date` is when it says that it was made (seconds since the epoch), and whether in a known zone.
    `metrics` and `arm` are those of a launch in a harness's file (readers/harness.py). `printed`
    are the settings that it shows beside those of its reading (readers/settings.py).
    """

    part: int
    reading: Reading
    date: tuple[float, bool] | None
    metrics: tuple[Metric, ...] = ()
    arm: str = ""
    printed: Printed = NOTHING_PRINTED


class Problem(NamedTuple):
    """What was not read, and why; `tool` if one was recognised in it.

    `of` and `arm` are the parameters and the arm of a launch that failed by a harness's file.
    """

    code: Unreadable
    detail: str = ""
    tool: str = ""
    of: Mapping[str, Scalar] = MappingProxyType({})
    arm: str = ""


@cache
def _marks() -> Mapping[str, tuple[str, ...]]:
    """Return each mark with the tools whose it is: every tool's output has one near its start."""
    found: dict[str, tuple[str, ...]] = {}
    marks = [(one.name, one.marks) for one in readers().values()]
    for name, several in (*marks, *((one.name, one.marks) for one in harnesses().values())):
        for mark in several:
            found[mark] = (*found.get(mark, ()), name)
    return found


class Seen(NamedTuple):
    """What a text shows before it is read: the marks of tools in its beginning.

    `clean`: no launcher says in it that a launch failed; asked once, not for every output in it.
    """

    near: list[str]
    clean: bool


def look(text: str) -> Seen:
    """Return what a text shows before it is read; it must be `plain`, for `readings` too."""
    return Seen(_marks_in(text[:HEAD]), clean=not within(FAILED, text))


def _marks_in(text: str) -> list[str]:
    """Return the marks of tools in a text, in their own order.

    Only those are searched for of which the text holds every pair of neighbouring bytes: a search
    for each of 263 marks takes 98 ns per character of recorded logs, this 9.
    """
    import numpy as np

    marks, pairs, begins = _pairs_of_marks()
    present = np.zeros(1 << 16, dtype=bool)
    present[_pairs(text)] = True
    likely = np.flatnonzero(np.logical_and.reduceat(present[pairs], begins))
    return within([marks[at] for at in likely.tolist()], text)


@cache
def _pairs_of_marks() -> tuple[tuple[str, ...], Ints, list[int]]:
    """Return the marks, the pairs of one after those of the other, and where those of each begin.

    A mark has two bytes at least.
    """
    import numpy as np

    pairs = [_pairs(mark) for mark in _marks()]
    begins = [0, *accumulate(map(len, pairs[:-1]))]
    return tuple(_marks()), np.concatenate(pairs), begins


def _pairs(text: str) -> Ints:
    """Return every two neighbouring bytes of a text as one number."""
    import numpy as np

    raw = np.frombuffer(text.encode(errors="surrogatepass"), dtype=np.uint8).astype(np.uint16)
    return raw[:-1] << np.uint16(8) | raw[1:]


def tools(marks: Sequence[str]) -> list[str]:
    """Return the tools whose marks these are."""
    found = {name for mark in marks for name in _marks()[mark]}
    return sorted(found, key=_order().__getitem__)


@cache
def _order() -> Mapping[str, int]:
    names = dict.fromkeys(name for names in _marks().values() for name in names)
    return {name: at for at, name in enumerate(names)}


def readings(text: str, seen: Seen) -> tuple[list[Found], list[Problem]]:
    """Return what a text holds, and what it holds of a tool that was refused.

    `seen` is what `look` says of the text. A reader refuses two outputs in one; then they are cut
    apart where an output begins, and each must prove itself.
    """
    found, problems = _whole(text, seen.near, seen.clean)
    if problems and not found and len(text) <= MOST_CUT:
        present = _marks_in(text) if len(text) > HEAD else seen.near
        for parts in _cuts(text, present):
            read = [
                _whole(part, _within(part[:HEAD], present), seen.clean, number, line)
                for number, (line, part) in enumerate(parts, 1)
            ]
            if all(found for found, _ in read):
                break
        if any(found for found, _ in read):
            found = [one for several, _ in read for one in several]
            if any(one.metrics for one in found):  # a part may hold several launches
                found = [one._replace(part=number) for number, one in enumerate(found, 1)]
            problems = [problem for _, refused in read for problem in refused]
    return found, problems


def _whole(
    text: str, near: Sequence[str], clean: bool, part: int = 0, before: int = 0
) -> tuple[list[Found], list[Problem]]:
    """Return what the readers of a text read, and what they refuse; it follows `before` lines.

    `clean`: no launcher says in it that its launch failed.
    """
    found, problems = [], []
    likely = tools(near)
    for harness in (harnesses()[tool] for tool in likely if tool in harnesses()):
        if harness.recognise(text):  # names that its user gave may look like another tool's
            return _of_harness(harness, text, part, before)
    for tool in likely:
        reader = readers()[tool]
        if len(likely) > 1 and not reader.recognise(text):  # HPL's own, or printed by HPCC?
            continue
        try:
            reading = reader.read_clean(text) if clean else reader.read(text)
            date = reader.started(text)
            found.append(Found(part, reading, date, printed=printed(file_of(tool), text)))
        except Exception as error:
            problems.append(_refused(tool, error, before))
    return found, problems


def _of_harness(
    harness: Harness, text: str, part: int, before: int
) -> tuple[list[Found], list[Problem]]:
    """Return the launches that a harness's file holds, and those that failed."""
    try:
        launches = harness.read_clean(text)
    except Exception as error:
        return [], [_refused(harness.name, error, before)]
    found, problems = [], []
    for number, one in enumerate(launches, 1):
        if isinstance(one, Failed):
            cause = f"{harness.name}: {one.cause}"
            problems.append(Problem(Unreadable.REFUSED, cause, harness.name, *one[1:]))
        else:
            mine = Found(number if len(launches) > 1 else part, *one)
            # What a file with all arms says of machines, it does not say of one of them.
            shown = NOTHING_PRINTED if one.arm else printed(harness.name, text)
            found.append(mine._replace(printed=shown))
    return found, problems


def _refused(tool: str, error: Exception, before: int) -> Problem:
    """Return why an output was refused that follows `before` lines.

    A reader's own fault costs its file, not the comparison.
    """
    why = f"not understood ({type(error).__name__}: {error})"
    if isinstance(error, ParseError):
        why = f"{error.cause}, line {before + error.line}" if error.line else error.cause
    return Problem(Unreadable.REFUSED, f"{tool}: {why}", tool)


def _within(head: str, present: Sequence[str]) -> list[str]:
    """Return the marks in the beginning of a part of a text that has these."""
    return [mark for mark in present if mark in head]


def _cuts(text: str, present: Sequence[str]) -> Iterator[list[tuple[int, str]]]:
    """Yield ways to cut a text into the outputs in it, each with the number of lines before it.

    First where outputs of the tool begin that is the first in it, for HPCC prints what HPL prints;
    then where outputs of any tool begin.
    """
    first: dict[str, tuple[int, str]] = {}
    for mark in present:
        at = text.find(mark)
        for name in _marks()[mark]:
            first[name] = min(first.get(name, (at, mark)), (at, mark))
    marks = [mark for _, mark in sorted(set(first.values()))]
    for several in (marks[:1], marks):
        begins = {begin for mark in several for begin in _begins(text, mark)}
        others = {text.rfind("\n", 0, text.find(mark) + 1) + 1 for mark in several[1:]}
        line, parts = 0, []
        for begin, end in pairwise(sorted({0, *begins, *others, len(text)})):
            part = text[begin:end]
            if not part.isspace():
                parts.append((line, part))
            line += part.count("\n")
        yield parts


def _begins(text: str, mark: str) -> Iterator[int]:
    """Yield where the outputs with `mark` begin: before what stands above it in each of them.

    What is above the first mark belongs to its output as far as it is above the others as well.
    """
    indent = len(mark) - len(mark.lstrip())
    places = [at + indent for at in _places(text, mark)]
    head = text[: places[0]]
    above = head.split("\n")[:-1][::-1]
    for at, before in zip(places[1:], places, strict=False):
        begin = at - len(head)
        if begin > before and text[begin - 1] == "\n" and text.startswith(head, begin):
            yield begin
            continue
        lines = text[before:at].rsplit("\n", len(above) + 1)[:-1][::-1]
        same = sum(1 for _ in takewhile(_alike, zip(above, lines, strict=False)))
        line = text.rfind("\n", 0, at) + 1
        yield line - sum(len(one) + 1 for one in lines[:same])


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + len(mark))


def _alike(lines: tuple[str, str]) -> bool:
    """Return whether two lines begin alike: a date at their end may differ."""
    one, other = lines
    return one[:8] == other[:8]
