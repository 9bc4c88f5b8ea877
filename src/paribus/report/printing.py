"""Paragraphs and columns for a terminal or a pipe: wrapped between words, never inside a figure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from paribus.border import printable, under
from paribus.report.wording import clean

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text


ROOM = 9
"""The most lines of headlines, and of notes on their cases, together in a report of one screen."""


def console_on(stream: TextIO, width: int | None = None) -> Console:
    """Return a console on `stream` that prints colours, but no escape sequences in texts."""
    from rich.console import Console
    from rich.segment import Segment

    class Screened(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for one in super().render(renderable, options):
                text = one.text if one.control else printable(one.text, keep="\n\t")
                yield one if text is one.text else Segment(text, one.style)

        def on_broken_pipe(self) -> None:
            """Raise the BrokenPipeError: rich would exit with code 1."""
            raise  # noqa: PLE0704 - rich calls this where it caught one

    console = Screened(file=under(stream), highlight=False, width=width)
    if not console.width:
        console.width = 80  # COLUMNS=0, as some shells set it, would print nothing
    if not console.is_terminal:
        console.size = console.size  # fixed, or rich would ask for the size at each line
    return console


def ascii_only(console: Console) -> bool:
    """Return whether only ASCII can be drawn there."""
    return not console.encoding.startswith("utf")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; a single cell is the title of the rows below it."""

    cells: Sequence[str]
    style: str = ""  # of the coloured columns
    reading: str = ""  # a second line, which explains the row


def print_rows(
    console: Console,
    head: Sequence[str],
    rows: Sequence[Row],
    *,
    right: Collection[int],
    coloured: Collection[int],
    indent: int = 0,
) -> None:
    """Print a table; the columns `right` are aligned right, those `coloured` have the row's style.

    On a narrow terminal the first cell of each row is printed on a line of its own.
    """
    from rich.cells import cell_len
    from rich.text import Text

    lines = [Row([clean(c) for c in r.cells], r.style, r.reading) for r in (Row(head), *rows)]
    full = [r.cells for r in lines if len(r.cells) == len(head)]
    widths = [max(cell_len(cells[i]) for cells in full) for i in range(len(head))]
    room = console.width - indent
    gap = 2 if sum(widths) + 2 * (len(head) - 1) <= room else 1
    stacked = sum(widths) + gap * (len(head) - 1) > room
    for index, row in enumerate(lines):
        if len(row.cells) < len(head):
            item(console, row.cells[0], style="bold", indent=indent)
            continue
        text = Text(" " * indent)
        for i, cell in enumerate(row.cells):
            if i == 0 and stacked:
                text.append(f"{cell}\n{' ' * (indent + 2)}", "" if index else "bold")
                continue
            pad = " " * (widths[i] - cell_len(cell))
            text.append(pad if i in right else "")
            text.append(cell, "bold" if index == 0 else row.style if i in coloured else "")
            text.append("" if i in right else pad)
            text.append(" " * gap)
        text.rstrip()
        console.print(text, soft_wrap=True)
        if row.reading:
            item(console, row.reading, style="dim", indent=indent + 2)


def heading(console: Console, text: str) -> None:
    """Print the title of a section, after an empty line."""
    console.print()
    line(console, text, style="bold")


def item(console: Console, text: str, style: str = "", *, name: str = "", indent: int = 2) -> None:
    """Print an indented paragraph, as `line` does."""
    line(console, text, style=style, indent=indent, hang=2, name=name)


def line(
    console: Console,
    text: str,
    *,
    style: str = "",
    indent: int = 0,
    hang: int = 0,
    name: str = "",
    most: int = 0,
) -> None:
    """Print one paragraph, wrapped between words; a figure stays with its unit, a path whole.

    `name` comes first, in bold. All lines are indented by `indent`, those after the first by `hang`
    more. With `most` the paragraph is cut to that many lines.
    """
    from rich.text import Text

    first = f"{clean(name)}: " if name else ""
    glued = re.sub(r"(?<=\d) (?=[A-Za-z%])", "\u00a0", first + clean(text))
    lines = textwrap.wrap(
        glued,
        max(20, console.width),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
        max_lines=most or None,
        placeholder=" ...",
    )
    shown = Text("\n".join(lines).replace("\u00a0", " "), style=style)
    if name:
        shown.stylize("bold", indent, indent + len(first))
    raw(console, shown)


def raw(console: Console, text: str | Text) -> None:
    """Print text as it is, never wrapped, so that a path can be copied."""
    from rich.text import Text

    console.print(text if isinstance(text, Text) else Text(text), soft_wrap=True)
