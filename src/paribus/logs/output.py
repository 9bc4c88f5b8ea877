"""One output of a text while it is being read: divide.py makes it, launches.py and recognise.py
fill in why its launch failed and what was read of it.
"""

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
    """The title of an output, such as "# OSU MPI Latency Test v7.4", and where it stands.

    `at` is the position of its first character that is no blank, `line` that where its line begins.
    `head` is the form that it has, `tools` are the tools that print it: none if no reader takes it.
    """

    at: int
    line: int
    head: Head
    tools: tuple[str, ...]

    @property
    def deeper(self) -> int:
        """Return how many blanks stand before it beyond those that the tool prints itself.

        0 for a title that the tool centres, of which that is not known.
        """
        indent = self.head.indent
        return 0 if indent is None else self.at - self.line - indent


class Failure(NamedTuple):
    """A launch that failed: the number, from 1, of the line that says so, and its text.

    `labels` are those in the line with which the launch begins, if no title stands between the two.
    `another` is whether its program is one that measures nothing, so that no output is missing.
    `before` is whether it is a complaint of a tool that may not have begun its output: if the
    output above is whole, that is of another launch. `unstarted` is whether its program was not
    started, and so printed nothing.
    """

    line: int
    text: str
    labels: tuple[Label, ...] = ()
    another: bool = False
    before: bool = False
    unstarted: bool = False


@dataclass(slots=True)
class Output:
    """One output: its lines, which tool it is of, what stands beside it, and what was read of it.

    `text`: its lines; `tail`: lines below it that look like labels of the next output.
    `readers`: those of the tools that it may be of; none if no reader takes such a title.
    `title`: None for a text without a known title; `at`: the position of the title in `text`.
    `numbers`: the numbers of the lines of the whole file, from 1, without lines of libraries that
    were taken out; `first`: the place of the output's first line among them.
    `number`: its number, from 1, among several outputs with readers; 0 if it is the only one.
    `longest`: for the last output of a text, the characters of the longest other one of the same
    readers: what stands further below belongs to no output. 0 for every other.

    `labels`: those directly above it; `labels_in_force`: the words of these and of earlier ones, by
    form; `counted`: the number of its launch in them; `first_below`: the place of the first output
    below the same labels.
    `failure`: why its launch failed; `wrote`: which rank of a launch wrote it, such as "rank 3".
    `found`, `problems`: what was read of it, and what was not.
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
    labels_in_force: Mapping[str, str] = field(default_factory=dict)
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
    """Set of the outputs of a text, in order, their numbers, and the labels in force for each.

    Of the labels of an only output the command alone is kept: all lines above it are part of its
    text, and readers/settings.py takes what they say for facts.
    """
    named, counted, first = dict[str, str](), "", 0
    known = [one for one in outputs if one.readers]
    for number, one in enumerate(known if len(known) > 1 else (), 1):
        one.number = number
    for at, one in enumerate(outputs):
        if one.labels:
            named, first = in_force(one.labels, named), at
            counted = " ".join(label.counts for label in one.labels).strip() or counted
        one.labels_in_force, one.counted, one.first_below = named, counted, first
    *others, last = outputs
    last.longest = max((len(one.text) for one in others if one.readers == last.readers), default=0)
    if not others:
        last.labels_in_force = {form: words for form, words in named.items() if form == COMMAND}
