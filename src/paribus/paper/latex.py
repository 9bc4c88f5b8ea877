"""A report for a paper as LaTeX: tables with booktabs, their footnotes, and the methods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from paribus.core import Judgement
from paribus.paper import paper
from paribus.paper.methods import methods
from paribus.report.wording import clean

_SPECIAL = {
    **{one: f"\\{one}" for one in "{}$&#_%"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
}
_LIGATURE = re.compile("(?<=-)(?=-)|(?<=,)(?=,)|(?<=')(?=')")
"""Between two characters that LaTeX would set as one other sign, such as "--" as a dash."""

HEADER = r"""% \input this file; it needs \usepackage{booktabs} and \usepackage[T1]{fontenc}.
"""
BEYOND = "% Some names have letters that only LuaLaTeX and XeLaTeX can set.\n"
LAST_LATIN = "\u017f"
"""The last letter that pdfLaTeX knows by itself."""


def document(
    judgement: Judgement, title: str = "", pictures: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return tables, footnotes and the methods of `judgement`; `title` replaces the question.

    `pictures` are captions by file of a figure.
    """
    parts = [table(paper.headlines(judgement, title), paper.remarks(judgement))]
    parts += [figure(file, caption) for file, caption in pictures.items()]
    parts += [f"\\paragraph{{Methods.}} {escape(methods(judgement))}\n"]
    parts += [table(one, []) for one in paper.details(judgement)]
    text = "\n".join(parts)
    header = HEADER.replace(" and", ", \\usepackage{graphicx} and") if pictures else HEADER
    return f"{header}{BEYOND if max(text) > LAST_LATIN else ''}{text}"


def escape(text: str) -> str:
    r"""Return text from anywhere as LaTeX that shows it: no command, no argument, no comment.

    At the start of a line of a table "[" and "*" would belong to what ends the line before.

    >>> print(escape("50 % of $x_1$"), escape("[bold] --a"))
    50 \% of \$x\_1\$ {[}bold] -{}-a
    """
    parts = _LIGATURE.split(clean(text))
    shown = "{}".join("".join(_SPECIAL.get(one, one) for one in part) for part in parts)
    return f"{{{shown[0]}}}{shown[1:]}" if shown[:1] in ("[", "*") else shown


def figure(file: str, caption: str, options: str = r"[width=\linewidth]") -> str:
    r"""Return a figure as wide as a line, or by other options of \includegraphics."""
    lines = [r"\begin{figure}", r"\centering", rf"\includegraphics{options}{{{file}}}"]
    return "\n".join([*lines, rf"\caption{{{escape(caption)}}}", r"\end{figure}", ""])


def table(made: paper.PaperTable, remarks: list[str], *, broken: bool = False) -> str:
    """Return a table with its footnotes and remarks; a `broken` one may go over several pages."""
    kinds = "".join("r" if i in made.right else "l" for i in range(len(made.head)))
    caption, head = f"\\caption{{{escape(made.caption)}}}", _row(_escaped(made.head))
    set_up = r"\centering\small\setlength{\tabcolsep}{4pt}"
    if broken:
        lines = ["{" + set_up, rf"\begin{{longtable}}{{{kinds}}}", rf"{caption}\\"]
    else:
        lines = [r"\begin{table}", set_up, caption, rf"\begin{{tabular}}{{{kinds}}}"]
    lines += [r"\toprule", head, r"\midrule" + r"\endhead" * broken]
    for cells, mark in zip(made.rows, made.marks, strict=True):
        *others, verdict = _escaped(cells)
        marked = rf"{verdict}\textsuperscript{{{mark}}}" if mark else verdict
        lines.append(_row([*others, marked]))
    lines += [r"\bottomrule", rf"\end{{{'longtable' if broken else 'tabular'}}}" + "}" * broken]
    notes = [rf"\textsuperscript{{{mark}}} {escape(text)}" for mark, text in made.notes.items()]
    notes += [escape(text) for text in remarks]
    if notes:
        start = (
            r"{\footnotesize\setlength{\parindent}{0pt}"
            if broken
            else r"\begin{minipage}{\linewidth}\footnotesize"
        )
        lines += ["", r"\smallskip", start]
        lines += [rf"{one}\par" for one in notes]
        lines += ["}" if broken else r"\end{minipage}"]
    return "\n".join([*lines, *([] if broken else [r"\end{table}"]), ""])


def _escaped(cells: list[str]) -> list[str]:
    return [escape(cell) for cell in cells]


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
