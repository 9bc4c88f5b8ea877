"""What is known of the output of a tool: `Reader`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from paribus.errors import ParseError
from paribus.model import Reading
from paribus.readers.launches import check_launch
from paribus.readers.text import HEAD, LONGEST, WINDOW, line_of, plain, refuse

_RUN = re.compile(r"(.)\1{299}")


@dataclass(frozen=True, slots=True)
class Reader:
    """What is known of a tool's output.

    `of_plain` reads a whole text without colour codes, tags of ranks and carriage returns.
    `marks`: one of them is near the beginning of every output of the tool and of no other's;
    `belongs` decides instead where a mark alone does not. `versions` were seen, `proof` is what is
    demanded of an output, `means` what its figures mean.
    """

    name: str
    of_plain: Callable[[str], Reading]
    marks: tuple[str, ...]
    versions: str
    proof: str
    means: str
    belongs: Callable[[str], bool] | None = None

    def read(self, text: str) -> Reading:
        """Return what any text says; raises ParseError also where a launcher says it failed."""
        text = plain(text)
        try:
            reading = self.read_clean(text)
        except ParseError as error:
            if not error.line:
                check_launch(text)
            raise
        check_launch(text)
        return reading

    def read_clean(self, text: str) -> Reading:
        """Return what a text says that is `plain` and holds no word of a launch that failed.

        That is `read` without what one look at a whole file does once.
        """
        _check_runs(text)
        try:
            reading = self.of_plain(text)
        except (ValueError, OverflowError, RecursionError) as error:
            raise ParseError(str(error)[:LONGEST]) from error
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            cause = f"is not laid out as {self.name} writes it: {error!r}"
            raise ParseError(cause[:LONGEST]) from error
        places = [sample[:2] for sample in reading.samples]
        if len(set(places)) < len(places):
            (metric, case), _ = Counter(places).most_common(1)[0]
            refuse(f"{metric} at {case} is there twice")
        if not places:
            refuse(f"nothing that {self.name} measures is in it")
        return reading

    def recognise(self, text: str) -> bool:
        """Return whether the tool takes a text for its own."""
        if self.belongs is not None:
            return self.belongs(text)
        head = plain(text[:HEAD])
        return any(mark in head for mark in self.marks)


def _check_runs(text: str) -> None:
    """Refuse a line that is mostly one character: no tool prints it, and patterns take long on it.

    Only where a window holds no end of a line, so that it costs nothing elsewhere.
    """
    for at in range(0, len(text), WINDOW):
        if text.find("\n", at, at + WINDOW) < 0 and (run := _RUN.search(text, at, at + WINDOW)):
            said = f"a line with hundreds of {run[1]!r} in a row: the output is damaged"
            refuse(said, line_of(text, at))
