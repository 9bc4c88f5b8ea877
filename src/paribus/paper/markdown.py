"""A report for a paper or a wiki as Markdown (GitHub's, with tables)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from paribus.core import Judgement
from paribus.paper import paper
from paribus.paper.methods import methods
from paribus.report.wording import clean

_SPECIAL = re.compile(r"[\\`*_\[~$#]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;"}
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def document(
    judgement: Judgement, title: str = "", pictures: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return tables, footnotes and the methods of `judgement`; `title` replaces the question.

    `pictures` are captions by file of a figure.
    """
    parts = [_table(paper.headlines(judgement, title))]
    parts += [f"![{escape(caption)}]({file})\n" for file, caption in pictures.items()]
    parts += ["".join(f"- {escape(text)}\n" for text in paper.remarks(judgement))]
    parts += [f"**Methods.** {escape(methods(judgement))}\n"]
    parts += [_table(table) for table in paper.details(judgement)]
    return "\n".join(parts)


def escape(text: str) -> str:
    """Return text from anywhere as Markdown that shows it, also in a cell: no markup, no link.

    >>> escape("a|b *c* <d> www.e.org")
    'a&#124;b \\\\*c\\\\* &lt;d&gt; www&#46;e.org'
    """
    shown = _SPECIAL.sub(lambda match: f"\\{match[0]}", clean(text))
    shown = "".join(_ENTITIES.get(one, one) for one in shown)
    return _LINK.sub(lambda match: f"&#{ord(match[0])};", shown)


def _table(table: paper.PaperTable) -> str:
    lines = [f"**{escape(table.caption)}**", ""]
    lines.append(_row([escape(cell) for cell in table.head]))
    lines.append(_row(["---:" if i in table.right else "---" for i in range(len(table.head))]))
    for cells, mark in zip(table.rows, table.marks, strict=True):
        *others, verdict = map(escape, cells)
        lines.append(_row([*others, f"{verdict} <sup>{mark}</sup>" if mark else verdict]))
    lines += [""] * bool(table.notes)
    lines += [f"<sup>{mark}</sup> {escape(text)}  " for mark, text in table.notes.items()]
    return "\n".join(lines) + "\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
