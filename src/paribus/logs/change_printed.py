"""Studies side by side on a terminal, and as JSON of schema paribus.change/1."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paribus.core import Comparison, Difference, Finding, format_ratio, slowness, typed, units
from paribus.logs.change import Change, Changed, Measured, Step
from paribus.logs.studies import Compared
from paribus.report import export, sentences, wording
from paribus.report.printing import Row, heading, item, line, print_rows
from paribus.report.unequal import LIKELY, how_to_separate, joined
from paribus.words.lists import listed

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "paribus.change/1"
CONTROL = (
    "Each effect is controlled within its study. The change is not: all that changed between the"
    " studies may be its cause."
)
BACKWARDS = "was measured before the first study: the change is against the course of time."
STYLES = {
    Changed.IMPROVED: "bold cyan",
    Changed.WORSENED: "bold yellow",
    Changed.UNCHANGED: "bold",
}
LONGEST_NAME = 20
"""Columns that the name of a study may take above its ratios."""

MOST_SHOWN = 12
"""Changes of the platform that are shown with their values; the others are named."""


def print_changes(compared: Compared, console: Console) -> None:
    """Print the sentence of every step, then its tables and what changed of the platform."""
    first = compared.first
    for step in compared.steps:
        line(console, step.sentence, style="bold")
    study = first.plan.study
    against = f"{', '.join(arm.name for arm in study.arms[1:])} against {first.judgement.reference}"
    line(console, f"Factor: {study.factor} ({against}).", style="dim")
    line(console, CONTROL, style="dim")
    for one in studies(compared):
        item(console, study_text(one), name=one.name, indent=0)
    for step in compared.steps:
        if backwards(step):
            line(console, f"{step.study.name} {BACKWARDS}", style="yellow", name="Warning")
    for step in compared.steps:
        _print_step(step, console)


def backwards(step: Step) -> bool:
    """Return whether a study that is compared with the first was measured before it."""
    then, now = step.first.judgement.started, step.study.judgement.started
    return then is not None and now is not None and now < then


def study_text(one: Measured) -> str:
    """Return a study's launches and date, its own sentence, and the names of its warnings."""
    judgement = one.judgement
    day = ""
    if judgement.started is not None:
        day = time.strftime(", %Y-%m-%d %H:%M UTC", time.gmtime(judgement.started))
    state = "" if judgement.complete else ", unfinished"
    warned = [str(notice.name) for notice in judgement.notices if notice.level == "warning"]
    text = f"{sentences.launches_text(judgement)}{day}{state}. {judgement.sentence}"
    if warned:
        see = typed(("paribus", "report", judgement.directory))
        text += f" Warnings ({listed(warned, 5)}): see `{see}`."
    return text


def names(step: Step) -> tuple[str, str]:
    """Return the headings of the ratios of two studies: their names, if these are short."""
    two = wording.clean(step.first.name), wording.clean(step.study.name)
    return two if max(map(len, two)) <= LONGEST_NAME else ("first study", "second study")


def ratio_text(finding: Finding) -> str:
    """Return how many times as slow an arm is, without the interval, "size withheld" or "none"."""
    times = slowness(finding)
    return format_ratio(times.ratio) if times else wording.estimate_text(finding)


def effect_text(study: Measured, finding: Finding) -> str:
    """Return an effect in one study: verdict, ratio with interval, and values of both arms."""
    text = f"{finding.verdict.word.value}, {wording.estimate_text(finding)}"
    if finding.reference_value and finding.arm_value:
        text += f"; {sentences.versus(finding, study.judgement.reference)}"
    return text


def times_of(change: Change) -> Comparison | None:
    """Return how many times as slow the effect has become, None if that is not known."""
    comparison = change.comparison
    if comparison is None or not 0 < comparison.ratio < math.inf:
        return None
    return comparison.times(change.metric.better)


def change_text(change: Change) -> str:
    """Return how many times as slow the effect has become, with the interval, or "none"."""
    return wording.estimate(known) if (known := times_of(change)) else "none"


def note(step: Step) -> str:
    """Return the note below a table: of what a change is the ratio, and what its interval is."""
    two = (step.first, step.study)
    sure = units.percent(max(one.plan.study.settings.confidence for one in two))
    cases = any(cases_of(step, head) for head in step.headlines)
    return (
        "Change: times as slow in the later study / times as slow in the first; each: arm /"
        " reference, of a rate reference / arm."
        f" Intervals: at least {sure} confidence over all looks of both studies."
    ) + " Per-case verdicts are corrected for multiple comparisons." * cases


def studies(compared: Compared) -> tuple[Measured, ...]:
    """Return all studies, the first first."""
    return compared.first, *(step.study for step in compared.steps)


def _print_step(step: Step, console: Console) -> None:
    several = len({change.arm for change in step.headlines}) > 1
    for change in step.headlines:
        label = f"{change.benchmark}, {change.arm}" if several else change.benchmark
        console.print()
        _print_table(step, "benchmark", [(label, change)], console)
        for study, finding in ((step.first, change.before), (step.study, change.after)):
            item(console, effect_text(study, finding), name=study.name, style="dim")
        item(console, reading(change), style="dim")
        if rows := labelled(cases_of(step, change)):
            _print_table(step, "case", rows, console)
    console.print()
    line(console, note(step), style="dim")
    if step.not_compared:
        heading(console, "Not compared")
        for left in step.not_compared:
            item(console, left.text)
    _print_platform(step, console)


def _print_table(
    step: Step, what: str, rows: Sequence[tuple[str, Change]], console: Console
) -> None:
    lines = [
        Row(
            [
                label,
                ratio_text(one.before),
                ratio_text(one.after),
                change_text(one),
                one.word.value,
            ],
            STYLES.get(one.word, "dim"),
        )
        for label, one in rows
    ]
    head = [what, *names(step), "change [interval]", "verdict"]
    print_rows(console, head, lines, right=(1, 2), coloured=(4,), indent=2 * (what == "case"))


def reading(change: Change) -> str:
    """Return direction and margin, and why there is no verdict where there is none."""
    return "; ".join(filter(None, (margin(change), why_none(change))))


def margin(change: Change) -> str:
    """Return direction and margin."""
    return f"{wording.direction(change.metric)}, margin {units.percent(change.margin)}"


def why_none(change: Change) -> str:
    """Return why there is no verdict, "" where there is one."""
    claims = (Changed.IMPROVED, Changed.WORSENED, Changed.UNCHANGED)
    return "" if change.word in claims else change.reason


def cases_of(step: Step, head: Change) -> list[Change]:
    """Return the changes of the cases of a headline, none if it has only one."""
    alike = (head.benchmark, head.arm)
    found = [one for one in step.cases if (one.benchmark, one.arm) == alike]
    return found if len(found) > 1 else []


def labelled(cases: Sequence[Change]) -> list[tuple[str, Change]]:
    """Return the changes of cases with their labels, which name the metric if there are several."""
    several = len({one.metric.name for one in cases}) > 1
    return [(f"{one.case}, {one.metric.name}" if several else str(one.case), one) for one in cases]


def _print_platform(step: Step, console: Console) -> None:
    heading(console, f"What changed between {step.first.name} and {step.study.name}")
    found = changed(step.platform)
    for difference, arms in found[:MOST_SHOWN]:
        item(console, f"{difference_text(difference, arms)} ({LIKELY[difference.rank]})")
    if len(found) > MOST_SHOWN:
        rest = ", ".join(dict.fromkeys(one.key for one, _ in found[MOST_SHOWN:]))
        line(console, f"{len(found) - MOST_SHOWN} more: {rest}", indent=2, hang=2, most=3)
    own = [one for one, _ in found]
    of_two = replace(step.first.plan.study, path="")  # its own arms are not what changed
    for text in how_to_separate(of_two, own, [one.kind for one in own]):
        item(console, text)
    item(console, platform_note(step), style="dim")


def difference_text(difference: Difference, arms: Sequence[str]) -> str:
    """Return a fact with its arms and both values."""
    who = f" ({', '.join(arms)})" if arms else ""
    return f"{difference.key}{who}: {difference.reference_value} -> {difference.arm_value}"


def changed(platform: Sequence[Difference]) -> list[tuple[Difference, list[str]]]:
    """Return the changes of the platform, each once with the arms that it is of.

    Those that most likely affect the figures come first; facts that are not known in both studies
    are left out.
    """
    known = sorted((d for d in platform if d.kind != "unknown"), key=lambda d: -d.rank)
    return [(one, [arm for arm in arms if arm]) for one, arms in joined(known)]


def platform_note(step: Step) -> str:
    """Return how many facts are the same, and how many could not be compared."""
    unknown = len({one.key for one in step.platform if one.kind == "unknown"})
    nothing = "" if changed(step.platform) else "No fact changed: "
    equal = f"{nothing}{units.count(step.equal_facts, 'fact')} equal in both studies"
    return equal + (f", {unknown} unknown (not comparable)." if unknown else ".")


def to_json(compared: Compared) -> dict[str, Any]:
    """Return the studies side by side as JSON values (docs/change-schema.json)."""
    first = compared.first
    return {
        "schema": SCHEMA,
        "sentence": " ".join(step.sentence for step in compared.steps),
        "factor": first.plan.study.factor,
        "reference": first.judgement.reference,
        "studies": [_study(one) for one in studies(compared)],
        "steps": [
            {
                "study": step.study.name,
                "sentence": step.sentence,
                "headlines": [_change(one, step) for one in step.headlines],
                "cases": [_change(one, step) for one in step.cases],
                "platform": [_platform(one) for one in step.platform],
                "equal_facts": step.equal_facts,
                "not_compared": [
                    {**export.plain(one), "text": one.text} for one in step.not_compared
                ],
            }
            for step in compared.steps
        ],
    }


def _study(one: Measured) -> dict[str, Any]:
    judgement = one.judgement
    return {
        "name": one.name,
        "directory": judgement.directory,
        "question": judgement.study.question,
        "plan_sha256": judgement.plan_sha256,
        "started": judgement.started,
        "complete": judgement.complete,
        "sentence": judgement.sentence,
        "warnings": [str(one.name) for one in judgement.notices if one.level == "warning"],
    }


def _change(change: Change, step: Step) -> dict[str, Any]:
    comparison = change.comparison
    before = export.finding_json(step.first.judgement, change.before)
    return {
        **{key: before[key] for key in ("benchmark", "arm", "metric", "case")},
        "margin": change.margin,
        "before": before,
        "after": export.finding_json(step.study.judgement, change.after),
        "comparison": None if comparison is None else export.comparison_json(comparison),
        "verdict": {
            "word": change.word.value,
            "code": change.verdict.code.value,
            "reason": change.reason,
            "because": change.because,
            "final": change.verdict.final,
        },
    }


def _platform(one: Difference) -> dict[str, Any]:
    return {
        "key": one.key,
        "arm": one.arm,
        "before": one.reference_value,
        "after": one.arm_value,
        "known": one.kind != "unknown",
        "reason": one.reason,
        "rank": one.rank,
    }
