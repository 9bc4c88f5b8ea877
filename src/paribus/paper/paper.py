"""The tables of a paper as cells of text: values, ratio with interval, n, verdict, footnotes.

In goes a `Judgement`; `headlines`, `details` and `remarks` are what latex.py and markdown.py write
in their own forms.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from paribus.core import Finding, Judgement, Notice, NoticeName, Word, lenses
from paribus.report import lookup, sentences, wording
from paribus.words.lists import listed
from paribus.words.values import notice_text, reason_of

MOST_CASES = 60
"""Cases of a benchmark beyond which they are no table of a paper."""

DECIDED = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
"""Verdicts that need no reason beside them."""

SO_FAR = "so far: further blocks may change it."
"""The footnote of a verdict that the study's end may change."""


def mark(index: int) -> str:
    """Return the mark of a footnote, counted from 0.

    >>> mark(0), mark(25), mark(26)
    ('a', 'z', 'aa')
    """
    letter = chr(ord("a") + index % 26)
    return letter if index < 26 else mark(index // 26 - 1) + letter


@dataclass(slots=True)
class PaperTable:
    """A table: cells as plain text, and for each row the mark of its footnote, "" for none.

    The columns in `right` are numbers. `notes` are mark and text of each footnote.
    """

    caption: str
    head: list[str]
    right: frozenset[int]
    rows: list[list[str]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def add(self, cells: list[str], note: str) -> None:
        """Add a row; the same note has the same mark."""
        if note and note not in self.notes.values():
            self.notes[mark(len(self.notes))] = note
        self.rows.append(cells)
        self.marks.append(next((m for m, text in self.notes.items() if text == note), ""))


def headlines(judgement: Judgement, title: str = "") -> PaperTable:
    """Return the table of the figures that decide; `title` is its caption, or else the question."""
    made = _empty(judgement, title or judgement.study.question, "benchmark", "unit", "better")
    for f in lookup.rows(judgement):
        units = (f.metric.unit, f.metric.better)
        made.add(_row(judgement, f, lookup.row_name(judgement, f), *units), note(f))
    return made


def details(judgement: Judgement) -> list[PaperTable]:
    """Return the tables of lenses, such as that of a scaling study, and those of cases."""
    found = [made for lens, rows in lenses(judgement) for made in lens.paper(judgement, rows)]
    return [*found, *cases(judgement)]


def cases(judgement: Judgement) -> list[PaperTable]:
    """Return a table of cases for each benchmark that has several, by the metric that decides."""
    found = []
    for label in lookup.benchmarks(judgement):
        rows = _cases(judgement, label)
        if len({f.case for f in rows}) < 2 or len(rows) > MOST_CASES:
            continue
        metric = rows[0].metric
        unit = f"{metric.unit}, " if metric.unit else ""
        caption = f"{label} by case: {metric.name} ({unit}{metric.better} is better)"
        known = [f for f in rows if wording.has_interval(f.comparison)]
        if levels := sentences.levels_text(known):
            caption += f"; intervals {levels}"
        made = _empty(judgement, caption, "case")
        for f in rows:
            made.add(_row(judgement, f, wording.case_text(f)), note(f))
        found.append(made)
    return found


def _cases(judgement: Judgement, label: str) -> list[Finding]:
    """Return the findings of a benchmark's cases for its headlines."""
    heads = judgement.of_benchmark(label, judgement.headlines)
    return [f for head in heads for f in lookup.case_findings(judgement, head)]


def _empty(judgement: Judgement, caption: str, first: str, *more: str) -> PaperTable:
    """Return a table without rows; its columns begin with `first`, the arm if several, and `more`.

    The other columns are the values of both arms, their ratio, n and verdict.
    """
    arms = [arm.name for arm in judgement.study.arms]
    several = len(arms) > 2
    names = ("reference value", "arm value") if several else (judgement.reference, arms[-1])
    head = [first, *(["arm"] if several else []), *more]
    right = frozenset(range(len(head), len(head) + 4))
    return PaperTable(caption, [*head, *names, "times as slow [interval]", "n", "verdict"], right)


def _row(judgement: Judgement, f: Finding, first: str, *more: str) -> list[str]:
    """Return the cells of a finding, in the columns of `_empty`."""
    both = (f.reference_value, f.arm_value)
    values = [wording.quantity(one.median, "") if one else "none" for one in both]
    arm = [f.arm] if len(judgement.study.arms) > 2 else []
    judged = (wording.estimate_text(f), number(f), f.verdict.word.value)
    return [first, *arm, *more, *values, *judged]


def remarks(judgement: Judgement) -> list[str]:
    """Return the lines below the first table: what columns mean, warnings, what is left out."""
    lines = [_meaning({_is_unpaired(f) for f in judgement.headlines})]
    if any(head.comparison for head in judgement.headlines):
        lines.append(sentences.ratio_note(judgement))
    lines += [
        f"Warning, {one.name}: {notice_text(_published(one))}"
        for one in judgement.notices
        if one.level == "warning"
    ]
    lines += [
        notice_text(notice)
        for notice in judgement.notices
        if notice.name is NoticeName.BLOCKS_LEFT_OUT and notice.level != "warning"
    ]
    every = lookup.benchmarks(judgement)
    if labels := [b for b in every if len(_cases(judgement, b)) > MOST_CASES]:
        lines.append(f"The cases of {listed(labels, 8, last=' and ')} are in cases.csv.")
    return lines


def _meaning(unpaired: set[bool]) -> str:
    """Return what n is in a table with paired rows (False), unpaired ones (True), or both."""
    launches = "launches of the reference and of the arm, which nothing pairs"
    if not any(unpaired):
        return "n: blocks."
    return f"n: {launches}." if all(unpaired) else f"n: blocks; as a sum: {launches}."


def _published(notice: Notice) -> Notice:
    """Return a notice without what is for the machine's users alone: processes, and a log."""
    if notice.name is not NoticeName.DISTURBED_LAUNCHES:
        return notice
    kept = {key: value for key, value in notice.figures.items() if key not in ("first", "busy")}
    return replace(notice, figures=kept)


def number(f: Finding) -> str:
    """Return n of a finding: blocks, or where nothing pairs launches those of both: "20 + 21"."""
    if f.comparison is not None and f.comparison.blocks:
        return str(f.comparison.blocks)
    if f.reference_value is None or f.arm_value is None:
        return "0"
    return f"{f.reference_value.launches} + {f.arm_value.launches}"


def _is_unpaired(f: Finding) -> bool:
    return f.comparison is not None and not f.comparison.blocks


def note(f: Finding) -> str:
    """Return the footnote of a finding: why it has no verdict, or what a verdict is subject to."""
    if f.verdict.word in DECIDED and f.verdict.size_known and not f.verdict.figures.get("unless"):
        return SO_FAR if wording.provisional(f.verdict) else ""
    return f"{reason_of(f.verdict)}."
