"""Studies side by side as one HTML file: its pictures are SVG, so it needs no script."""

from __future__ import annotations

import time
from collections.abc import Mapping

from paribus.core import Comparison, Finding, units
from paribus.logs import change_pictures as pictures
from paribus.logs import change_printed as shown
from paribus.logs.change import Change, Measured, Step
from paribus.logs.studies import Compared
from paribus.logs.words_of_changes import BACKWARDS, CONTROL
from paribus.report import sentences, wording
from paribus.report.markup import Html, document, element, escape, join, pairs, table
from paribus.report.unequal import LIKELY


def page(compared: Compared) -> str:
    """Return the whole HTML page."""
    return document(compared.first.plan.study.question, body(compared))


def body(compared: Compared, links: Mapping[str, str] | None = None) -> Html:
    """Return what the page says; `links` lead to the studies by the name that each has here."""
    steps = (_step(compared.first, n, step) for n, step in enumerate(compared.steps))
    return join(_header(compared, links or {}), *steps)


def _header(compared: Compared, links: Mapping[str, str]) -> Html:
    first = compared.first
    study = first.plan.study
    return element(
        "header",
        element("p", escape(study.question), kind="question"),
        *(element("h1", escape(step.sentence)) for step in compared.steps),
        pairs([("Factor", study.factor), ("Reference", first.judgement.reference)]),
        *(_study(one, links.get(one.name, "")) for one in shown.studies(compared)),
    )


def _study(one: Measured, link: str) -> Html:
    """Return when and how much a study measured, and, folded, what it says."""
    name = element("a", escape(one.name), href=link) if link else element("b", escape(one.name))
    began = one.judgement.started
    day = "" if began is None else time.strftime("%Y-%m-%d %H:%M UTC, ", time.gmtime(began))
    said = escape(f" {day}{sentences.launches_text(one.judgement)}")
    text = _folded("What it says", element("p", escape(shown.study_text(one))))
    return element("div", name, said, text, kind="line")


def _step(first: Measured, number: int, step: Step) -> Html:
    title = f"From {first.name} to {step.study.name}"
    warning = f"{step.study.name} {BACKWARDS}" if shown.backwards(first, step) else ""
    rows = [(_label(one), one) for one in step.headlines]
    places = [f"change-{number}-{n}" for n in range(len(rows))]
    left = element("ul", *(element("li", escape(one.text)) for one in step.not_compared))
    said = f"Not compared: {len(step.not_compared)}"
    note = (
        f"{CONTROL} {shown.note(Compared(first, (step,)))} In the picture a rate is turned round."
    )
    values = _table(first, step, "Benchmark", rows, "Effect in each study, and its change")
    parts = [
        element("h2", escape(title)),
        element("p", escape(warning)) if warning else "",
        pictures.forest(first, step, places),
        element("details", element("summary", "Values of both arms in both studies"), values),
        element("p", escape(note), kind="small"),
        *(_sizes(first, step, *one) for one in zip(step.headlines, places, strict=True)),
        _folded(said, left) if step.not_compared else "",
        _platform(first, step),
    ]
    return element("section", *parts, aria_label=title)


def _folded(summary: str, inside: Html) -> Html:
    return element("details", element("summary", escape(summary)), inside)


def _sizes(first: Measured, step: Step, head: Change, place: str) -> Html:
    """Return what a headline rests on: both studies over size, and its cases."""
    name = f"{head.benchmark}, {head.arm}"
    why = f"{why}." if (why := shown.why_none(head)) else ""
    return element(
        "section",
        element("h3", escape(name), id=place),
        element("p", escape(why), kind="small") if why else "",
        pictures.over_size(first, step, head),
        _cases(first, step, head),
    )


def _label(change: Change) -> Html:
    under = f"{change.arm}; {change.metric.name}, {shown.margin(change)}"
    return join(escape(change.benchmark), element("small", escape(under)))


def _ratio(said: str, comparison: Comparison | None, under: str = "") -> Html:
    """Return the cell of a ratio: its interval may stand on a line of its own."""
    after = Html("")
    if comparison:
        interval = element("span", escape(wording.interval_text(comparison)), kind="interval")
        after = join(Html(" "), interval)
    small = element("small", escape(under)) if under else ""
    return join(escape(said), after, small)


def _table(
    first: Measured, step: Step, what: str, rows: list[tuple[Html, Change]], caption: str
) -> Html:
    head = [what, "Verdict", "Change [interval]", *shown.names(first, step)]
    cells = [
        [
            label,
            pictures.chip(one),
            _ratio(shown.change_ratio_text(one), one.comparison),
            _effect(first, one.before),
            _effect(step.study, one.after),
        ]
        for label, one in rows
    ]
    values = f"values: {first.judgement.reference} → arm"
    return table(head, cells, f"{caption} ({values})", left=(0, 1))


def _effect(study: Measured, finding: Finding) -> Html:
    under = finding.verdict.word.value
    if finding.reference_value and finding.arm_value:
        under += (
            f"; {wording.value_text(finding.reference_value, finding.metric)} →"
            f" {wording.value_text(finding.arm_value, finding.metric)}"
        )
    known = finding.comparison if finding.verdict.size_known else None
    return _ratio(shown.ratio_text(finding), known, under)


def _cases(first: Measured, step: Step, head: Change) -> Html:
    rows = [(escape(label), one) for label, one in shown.labelled(shown.cases_of(step, head))]
    if not rows:
        return Html("")
    caption = f"Cases of {head.benchmark}, {head.arm}"
    said = f"{units.count(len(rows), 'case')} in both studies"
    return _folded(said, _table(first, step, "Case", rows, caption))


def _platform(first: Measured, step: Step) -> Html:
    title = f"What changed between {first.name} and {step.study.name}"
    rows = [
        [
            element("code", escape(one.key)),
            escape(", ".join(arms)),
            escape(one.reference_value),
            escape(one.arm_value),
            escape(f"{LIKELY[one.rank]}: {one.reason}" if one.reason else LIKELY[one.rank]),
        ]
        for one, arms in shown.changed(step.platform)
    ]
    head = ["Fact", "Arm", *shown.names(first, step), "Why it matters"]
    body = table(head, rows, "Facts and settings", left=range(len(head))) if rows else Html("")
    return join(element("h3", escape(title)), body, element("p", escape(shown.platform_note(step))))
