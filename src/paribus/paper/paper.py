"""The tables of a paper as cells of text: values, ratio with interval, n, verdict, footnotes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from paribus.core import Finding, Judgement, Notice, NoticeName, Spread, Word, lenses
from paribus.paper import words as words
from paribus.report import lookup, sentences, wording
from paribus.words.values import notice_text, reason_of

MOST_CASES = 60
"""Cases of a benchmark beyond which they are no table of a paper."""

SAID = (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
"""Verdicts that need no reason beside them."""


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
            self.notes[words.mark(len(self.notes))] = note
        self.rows.append(cells)
        self.marks.append(next((m for m, text in self.notes.items() if text == note), ""))


def headlines(judgement: Judgement, title: str = "") -> PaperTable:
    """Return the table of what decides; `title` is its caption, or else the question."""
    several = len(judgement.study.arms) > 2
    names = words.VALUES if several else (judgement.reference, _only_arm(judgement))
    head = [words.BENCHMARK, *([words.ARM] if several else []), words.UNIT, words.BETTER]
    first = len(head)
    head += [*names, words.RATIO, words.NUMBER, words.VERDICT]
    made = PaperTable(title or judgement.study.question, head, frozenset(range(first, first + 4)))
    for f in lookup.rows(judgement):
        arm = [f.arm] if several else []
        cells = [lookup.row_name(judgement, f), *arm, f.metric.unit, f.metric.better, *_figures(f)]
        made.add(cells, note(f))
    return made


def of_lenses(judgement: Judgement) -> list[PaperTable]:
    """Return the tables of lenses, such as that of a study that scales."""
    return [made for lens, rows in lenses(judgement) for made in lens.paper(judgement, rows)]


def cases(judgement: Judgement) -> list[PaperTable]:
    """Return a table of cases for each benchmark that has several, of what decides."""
    found = []
    for label in lookup.benchmarks(judgement):
        heads = judgement.of_benchmark(label, judgement.headlines)
        rows = [f for head in heads for f in lookup.case_findings(judgement, head)]
        if len({f.case for f in rows}) < 2 or len(rows) > MOST_CASES:
            continue
        several = len(judgement.study.arms) > 2
        names = words.VALUES if several else (judgement.reference, _only_arm(judgement))
        head = [words.CASE, *([words.ARM] if several else []), *names]
        head += [words.RATIO, words.NUMBER, words.VERDICT]
        first = 2 if several else 1
        known = [f for f in rows if wording.has_interval(f.comparison)]
        caption = words.cases(label, rows[0].metric, sentences.levels_text(known))
        made = PaperTable(caption, head, frozenset(range(first, first + 4)))
        for f in rows:
            arm = [f.arm] if several else []
            made.add([wording.case_text(f), *arm, *_figures(f)], note(f))
        found.append(made)
    return found


def remarks(judgement: Judgement) -> list[str]:
    """Return what stands below the first table: what columns mean, warnings, what is left out."""
    said = [words.number(*{_is_unpaired(f) for f in judgement.headlines})]
    if any(head.comparison for head in judgement.headlines):
        said.append(sentences.ratio_note(judgement))
    said += [
        words.warning(one.name, notice_text(_published(one)))
        for one in judgement.notices
        if one.level == "warning"
    ]
    said += [
        notice_text(notice)
        for notice in judgement.notices
        if notice.name is NoticeName.BLOCKS_LEFT_OUT and notice.level != "warning"
    ]
    labels = [b for b in lookup.benchmarks(judgement) if _size(judgement, b) > MOST_CASES]
    return said + ([words.left_out(labels)] if labels else [])


def _published(notice: Notice) -> Notice:
    """Return a notice without what is for the machine's users alone: processes, and a log."""
    if notice.name is not NoticeName.DISTURBED_LAUNCHES:
        return notice
    kept = {key: value for key, value in notice.figures.items() if key not in ("first", "busy")}
    return replace(notice, figures=kept)


def number(f: Finding) -> str:
    """Return n of a finding: blocks, or of launches that nothing pairs those of each arm."""
    if f.comparison is not None and f.comparison.blocks:
        return str(f.comparison.blocks)
    if f.reference_value is None or f.arm_value is None:
        return "0"
    return f"{f.reference_value.launches} + {f.arm_value.launches}"


def _is_unpaired(f: Finding) -> bool:
    return f.comparison is not None and not f.comparison.blocks


def note(f: Finding) -> str:
    """Return the footnote of a finding: why it has no verdict, and what a verdict is subject to."""
    if f.verdict.word in SAID and f.verdict.size_known and not f.verdict.figures.get("unless"):
        return words.SO_FAR if wording.provisional(f.verdict) else ""
    return f"{reason_of(f.verdict)}."


def _figures(f: Finding) -> list[str]:
    return [
        _value(f.reference_value),
        _value(f.arm_value),
        wording.estimate_text(f),
        number(f),
        f.verdict.word.value,
    ]


def _value(spread: Spread | None) -> str:
    return wording.quantity(spread.median, "") if spread else words.NONE


def _only_arm(judgement: Judgement) -> str:
    return judgement.study.arms[-1].name


def _size(judgement: Judgement, label: str) -> int:
    heads = judgement.of_benchmark(label, judgement.headlines)
    return sum(len(lookup.case_findings(judgement, head)) for head in heads)
