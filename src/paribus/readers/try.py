# ruff: noqa: N999 - a name to type, which nothing imports
"""Show what a reader makes of one output, to the author of the reader.

    python -m paribus.readers.try NAME FILE

It prints samples, what two outputs must share, and facts of the arm. A file of several outputs is
divided by `paribus compare` alone.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paribus.core import ParseError, Reading, of_case
from paribus.readers.harness import Measured
from paribus.readers.known import every, file_of, harnesses, reader_of
from paribus.readers.settings import NOTHING_PRINTED, Printed, printed
from paribus.readers.text import plain

MOST = 5
"""Values of a sample that are printed."""


def shown(name: str, text: str) -> Iterator[str]:
    """Yield the lines to print on a text; raises ParseError where the reader refuses it."""
    if name in harnesses():
        for one in harnesses()[name].read(text):
            if isinstance(one, Measured):
                yield from _shown(one.reading, NOTHING_PRINTED)
            else:
                yield f"failed: {one.cause}"
    else:
        yield from _shown(reader_of(name).read(text), printed(file_of(name), plain(text)))
    if not every()[name].recognise(text):
        marks = ", ".join(every()[name].marks)
        yield f"`paribus compare` passes it over: no mark is in it: {marks}"


def _shown(reading: Reading, settings: Printed) -> Iterator[str]:
    """Yield the lines on one reading and the settings that its output prints beside it."""
    yield f"{reading.benchmark} {reading.version}".rstrip()
    for sample in reading.samples:
        more = len(sample.values) - MOST
        values = ", ".join(f"{value:g}" for value in sample.values[:MOST])
        of_more = f" and {more} more" if more > 0 else ""
        yield f"  {sample.metric}{of_case(sample.case)}: {values}{of_more}"
    ranks = {} if reading.ranks is None else {"ranks": reading.ranks}
    keys = {**reading.parameters, **ranks, **settings.keys, **settings.options}
    yield from _listed("keys: another value is another benchmark", keys)
    yield from _listed("facts of the arm", {**reading.facts, **settings.facts})
    yield from reading.guards


def _listed(heading: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield heading if values else f"{heading}: none"
    for name, value in values.items():
        yield f"  {name} = {value}"


def main(words: Sequence[str]) -> int:
    """Return the exit code: 0, or 2 with a line that says why."""
    if len(words) != 2:
        print("usage: python -m paribus.readers.try NAME FILE", file=sys.stderr)
        return 2
    name, file = words
    if name not in every():
        close = difflib.get_close_matches(name, every(), n=3)
        fix = f"near it: {', '.join(close)}" if close else "`paribus list` names them"
        print(f"{name}: readers/known.py names no such reader; {fix}", file=sys.stderr)
        return 2
    try:
        for line in shown(name, Path(file).read_text(errors="replace")):
            print(line)
    except (OSError, ParseError) as error:
        print(f"{file}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
