"""A study as a paper that LaTeX compiles: results, methods, set-up, twelve rules, references.

In goes a `Judgement`, out come the texts of main.tex and the files that it reads (`files`).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files as packaged

from paribus.core import Judgement
from paribus.paper import paper, rules
from paribus.paper.latex import BEYOND, LAST_LATIN, escape, figure, table
from paribus.paper.methods import methods
from paribus.report import lookup

CITED = {
    "Hodges-Lehmann": "hodges1963",
    "Mann-Whitney": "mann1947",
    "rank-sum": "mann1947",
    "Benjamini and Hochberg": "benjamini1995",
    "closed test": "marcus1976",
    "Holm": "holm1979",
    "betting": "waudby2024",
    "Shapley value": "shapley1953",
    "with Paribus": "paribus",
    "(SHA-256)": "study",
}
"""What the methods name, and its key in references.bib."""

MAIN_FACTS = (
    *("machine.vendor", "machine.product", "cpu.model", "cpu.sockets", "cpu.cores", "gpu.model"),
    *("memory.total_kib", "os.distribution", "os.release", "mpi.command"),
    *("mpi.build.compiler", "mpi.build.compiler_version"),
)
"""Facts that every paper states; those that differ stand beside them."""

MAIN = r"""% pdflatex main && bibtex main && pdflatex main && pdflatex main
\ifdefined\pdfminorversion\pdfminorversion=7\fi
\documentclass{article}
\usepackage[margin=25mm]{geometry}
\ifdefined\pdftexversion\usepackage[T1]{fontenc}\else\usepackage{fontspec}\fi
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage{booktabs,graphicx,longtable}
\extrafloats{100}
\makeatletter\def\fps@figure{htbp}\def\fps@table{htbp}\makeatother
\setlength{\emergencystretch}{3em}
\title{TITLE}
\author{}
\date{}
\begin{document}
\maketitle
\section{Results}
\input{results}
\clearpage
\section{Methods}
\input{methods}
\section{The twelve rules}
\input{rules}
\bibliographystyle{plain}
\bibliography{references}
\clearpage
\appendix
\section{Tables}
\input{tables}
\end{document}
"""


RULES = (
    r"The rules of Hoefler and Belli~\cite{hoefler2015} for reporting performance, in short, and"
    " how this study follows them."
)


def files(
    judgement: Judgement, title: str, pictures: Mapping[str, str], width: float
) -> dict[str, str]:
    """Return the texts of a paper by file name; `title` replaces the question.

    `pictures` are captions by file of a figure, each `width` mm wide.
    """
    shape = rf"[width={width:.1f}mm,height=.8\textheight,keepaspectratio]"
    texts = {
        "main.tex": MAIN.replace("TITLE", escape(title or judgement.study.question)),
        "results.tex": "\n".join(
            [
                table(paper.headlines(judgement), paper.remarks(judgement)),
                *(figure(file, caption, shape) for file, caption in pictures.items()),
            ]
        ),
        "methods.tex": _methods(judgement),
        "rules.tex": _rules(judgement),
        "tables.tex": "\n".join(table(one, [], broken=True) for one in paper.details(judgement))
        or "None.\n",
        "references.bib": _references(judgement),
    }
    if any(max(text) > LAST_LATIN for text in texts.values()):
        texts["main.tex"] = BEYOND + texts["main.tex"]
    return texts


def _methods(judgement: Judgement) -> str:
    """Return the section of methods with its citations, and the list of the set-up."""
    text = escape(methods(judgement))
    for name, key in CITED.items():
        text = text.replace(name, rf"{name}~\cite{{{key}}}", 1)
    parts = [text, ""]
    listed = _facts(judgement)
    listed += [
        f"{d.key} ({d.kind}): {d.reference_value} ({judgement.reference}), {d.arm_value} ({d.arm})"
        for d in judgement.differences
        if d.kind not in ("unknown", "noted")
    ]
    if listed:
        parts += [r"\paragraph{Set-up.}", r"\begin{itemize}"]
        parts += [rf"\item {escape(text)}" for text in listed]
        parts += [r"\end{itemize}", ""]
    return "\n".join(parts)


def _facts(judgement: Judgement) -> list[str]:
    """Return a line for each of MAIN_FACTS, with one value where all arms have the same."""
    lines = []
    for key in MAIN_FACTS:
        values: dict[str, list[str]] = {}
        for arm, facts in judgement.facts.items():
            if isinstance(value := facts.get(key), str | int | float):
                values.setdefault(str(value), []).append(arm)
        if values:
            several = [f"{value} ({', '.join(arms)})" for value, arms in values.items()]
            alone = len(values) == 1 and len(*values.values()) == len(judgement.facts)
            lines.append(f"{key}: {next(iter(values)) if alone else ', '.join(several)}")
    return lines


def _rules(judgement: Judgement) -> str:
    """Return the section of the twelve rules."""
    lines = [RULES, r"\begin{enumerate}"]
    for one in rules.answers(judgement):
        lines.append(rf"\item {escape(one.rule)}. \textbf{{{one.kept}.}} {escape(one.text)}")
    return "\n".join([*lines, r"\end{enumerate}", ""])


def _references(judgement: Judgement) -> str:
    """Return the entries of the methods, Paribus, and the study itself."""
    known = packaged("paribus.paper").joinpath("references.bib").read_text(encoding="utf-8")
    by = judgement.versions.get("paribus") or judgement.versions.get("reported by", "")
    entries = f"""@misc{{paribus,
  author = {{{{The Paribus maintainers}}}},
  title  = {{Paribus: Controlled Comparisons of {{HPC}} and {{AI}} Cluster Platforms}},
  note   = {{Version {by}}}
}}
"""
    if lookup.measured(judgement):
        entries += f"""@misc{{study,
  key   = {{Study}},
  title = {{The data of this study}},
  note  = {{Plan {judgement.plan_sha256} (SHA-256)}}
}}
"""
    return known + entries
