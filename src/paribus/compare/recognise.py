"""Whose output a text is, and what it says: several outputs in one text are taken apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, takewhile

from paribus.benchmarks import BENCHMARKS, kernel_logs
from paribus.benchmarks._tool import HEAD
from paribus.compare.dates import started
from paribus.errors import ParseError
from paribus.model import Reading

MOST_CUT = 16 << 20
"""Characters of a text up to which it is searched for several outputs, one after the other."""

Reader = Callable[[str], Reading]


@cache
def _marks() -> Mapping[str, tuple[str, ...]]:
    """Return each mark with the tools whose it is: every tool's output has one near its start."""
    found: dict[str, tuple[str, ...]] = {}
    for benchmark in BENCHMARKS.values():
        for mark in benchmark.marks:
            found[mark] = (*found.get(mark, ()), benchmark.name)
    return {**found, kernel_logs.MARK: (kernel_logs.TOOL,)}


@cache
def _words() -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """Return marks by their longest whole word, and those that have none.

    A text is split into words once, instead of being searched for each of some hundred marks. A
    mark is taken to begin with a word.
    """
    found: dict[str, tuple[str, ...]] = {}
    others = []
    for mark in _marks():
        inside = re.findall(r"(?:^|(?<=\s))\S+(?=\s)", mark)
        if inside:
            word = max(inside, key=len)
            found[word] = (*found.get(word, ()), mark)
        else:
            others.append(mark)
    return found, tuple(others)


def tools(head: str) -> list[str]:
    """Return the tools whose mark is in the beginning of a text."""
    words, others = _words()
    likely = [mark for word in words.keys() & set(head.split()) for mark in words[word]]
    found = {name for mark in (*likely, *others) if mark in head for name in _marks()[mark]}
    return [name for name in _order() if name in found]


@cache
def _order() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in _marks().values() for name in names))


def _reader(tool: str) -> Reader:
    if tool == kernel_logs.TOOL:
        return kernel_logs.read
    reader = BENCHMARKS[tool].read
    assert reader is not None  # whoever has marks has a reader
    return reader


def readings(
    text: str, likely: Sequence[str]
) -> tuple[list[tuple[int, Reading]], list[tuple[str, str]]]:
    """Return what a text holds, and what it holds of a tool that was refused: tool and sentence.

    A reader refuses two outputs in one; then they are cut apart where an output begins, and each
    must prove itself. Parts are numbered from 1, a whole text is 0.
    """
    found, problems = _whole(text, likely, 0)
    if problems and not found:
        for parts in _cuts(text):
            read = [_whole(part, tools(part[:HEAD]), line) for line, part in parts]
            if all(readings for readings, _ in read):
                break
        numbered = [(n, r) for n, (readings, _) in enumerate(read, 1) for r in readings]
        if numbered:
            return numbered, [problem for _, refused in read for problem in refused]
    return [(0, reading) for reading in found], problems


def _whole(
    text: str, likely: Sequence[str], before: int
) -> tuple[list[Reading], list[tuple[str, str]]]:
    """Return what the readers of a text read, and what they refuse; it follows `before` lines."""
    found, problems = [], []
    for tool in likely:
        try:
            reading = _reader(tool)(text)
            if (at := started(tool, text)) is not None:
                reading = replace(reading, facts={**reading.facts, "log.started": at})
            found.append(reading)
        except ParseError as error:
            line = f", line {before + error.line}" if error.line else ""
            problems.append((tool, f"{tool}: {error.cause}{line}"))
        except Exception as error:  # a reader's own fault costs its file, not the comparison
            problems.append((tool, f"{tool}: not understood ({type(error).__name__}: {error})"))
    return found, problems


def _cuts(text: str) -> Iterator[list[tuple[int, str]]]:
    """Yield ways to cut a text into the outputs in it, each with the number of lines before it.

    First where outputs of the tool begin that is the first in it, for HPCC prints what HPL prints;
    then where outputs of any tool begin.
    """
    first: dict[str, tuple[int, str]] = {}
    for mark, names in _marks().items():
        if len(text) <= MOST_CUT and (at := text.find(mark)) >= 0:
            for name in names:
                first[name] = min(first.get(name, (at, mark)), (at, mark))
    marks = [mark for _, mark in sorted(set(first.values()))]
    for several in (marks[:1], marks):
        begins = {begin for mark in several for begin in _begins(text, mark)}
        others = {text.rfind("\n", 0, text.find(mark) + 1) + 1 for mark in several[1:]}
        ends = sorted({0, *begins, *others, len(text)})
        yield [(text.count("\n", 0, b), text[b:e]) for b, e in pairwise(ends) if text[b:e].strip()]


def _begins(text: str, mark: str) -> Iterator[int]:
    """Yield where the outputs with `mark` begin: before what stands above it in each of them.

    What is above the first mark belongs to its output as far as it is above the others as well.
    """
    places = [
        m.start() + len(mark) - len(mark.lstrip()) for m in re.finditer(re.escape(mark), text)
    ]
    above = text[: places[0]].split("\n")[:-1][::-1]
    for at, before in zip(places[1:], places, strict=False):
        lines = text[before:at].split("\n")[:-1][::-1]
        same = sum(1 for _ in takewhile(_alike, zip(above, lines, strict=False)))
        line = text.rfind("\n", 0, at) + 1
        yield line - sum(len(one) + 1 for one in lines[:same])


def _alike(lines: tuple[str, str]) -> bool:
    """Return whether two lines begin alike: a date at their end may differ."""
    one, other = lines
    return one[:8] == other[:8]
