"""One output of a text: what is known of it, from its title to what was read of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from paribus.logs.labels import COMMAND, Label, in_force
from paribus.logs.log import Log, Unread
from paribus.readers.harness import Harness
from paribus.readers.heads import Head
from paribus.readers.reader import Reader
from paribus.readers.text import line_of


class Title(NamedTuple):
    """The title of an output: where it stands, of which tools it is, none if nobody reads them.

    `at` is its first character but blanks, `line` where its line begins.
    """

    at: int
    line: int
    head: Head
    tools: tuple[str, ...]

    @property
    def deeper(self) -> int:
        """Return by how many blanks it is indented beyond those that the tool prints.

        Of a title that is centred it is not known.
        """
        indent = self.head.indent
        return 0 if indent is None else self.at - self.line - indent


class Failure(NamedTuple):
    """A launch that failed: the number of the line that says so, from 1, the line, and its labels.

    The labels of one without an output are in the line with which it begins. `another` is whether
    its program is one that measures nothing, so that no output is missing. `before` is whether a
    tool says it that may not have begun its output: that above, if whole, is of another launch.
    """

    line: int
    said: str
    labels: tuple[Label, ...] = ()
    another: bool = False
    before: bool = False


@dataclass(slots=True)
class Output:
    """One output: its lines, whose it is, what stands beside it, and what was read of it.

    Its title stands `at` a place of its text, None of what has no known title. `readers` are none
    if no benchmark is read that begins so. `numbers` are those of the lines of the file, from 1,
    without those that were left out; `first` is the place of its own first line among them. `tail`
    are lines below it that look like labels of the next. `number` is its own among several that
    have readers, from 1, else 0; `longest` are the characters of the longest other output of its
    readers, if it is the last of a text: what is further below is of nobody; else 0.

    `labels` stand directly above it, and `said` is what they and earlier ones say of it; `counted`
    is the number of its launch there. All outputs below the same labels have the number of the
    `first_below` them. `failure` is why its launch failed, `wrote` which rank of one wrote it.
    """

    text: str
    readers: Sequence[Reader | Harness] = ()
    title: Title | None = None
    at: int = 0
    numbers: Sequence[int] = ()
    first: int = 0
    tail: str = ""
    number: int = 0
    longest: int = 0
    labels: tuple[Label, ...] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    counted: str = ""
    first_below: int = 0
    failure: Failure | None = None
    wrote: str = ""
    found: list[Log] = field(default_factory=list)
    problems: list[Unread] = field(default_factory=list)

    def line(self, number: int) -> int:
        """Return the number in the file of a line of the text, from 1."""
        return self.numbers[min(self.first + number, len(self.numbers)) - 1]

    @property
    def title_line(self) -> int:
        """Return the number in the file of the line of its title."""
        return self.line(line_of(self.text, self.at))

    @property
    def name(self) -> str:
        """Return the name of the tool that it is of, "" if that is not known."""
        return self.readers[0].name if self.readers else ""


def set_beside(outputs: Sequence[Output]) -> None:
    """Set what the outputs of a text, in order, show of each other: numbers, and labels in force.

    Of one alone all lines above are its own, and say as facts what they say.
    """
    named, counted, first = dict[str, str](), "", 0
    known = [one for one in outputs if one.readers]
    for number, one in enumerate(known if len(known) > 1 else (), 1):
        one.number = number
    for at, one in enumerate(outputs):
        if one.labels:
            named, first = in_force(one.labels, named), at
            counted = " ".join(label.counts for label in one.labels).strip() or counted
        one.said, one.counted, one.first_below = named, counted, first
    *others, last = outputs
    last.longest = max((len(one.text) for one in others if one.readers == last.readers), default=0)
    if not others:
        last.said = {form: said for form, said in named.items() if form == COMMAND}
