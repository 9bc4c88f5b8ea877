"""The second half of the HTML report: what stands behind the verdicts."""

from __future__ import annotations

import json
from typing import Any

from paribus.judgement import Judgement, Tally
from paribus.report import wording
from paribus.report.markup import Html, element, escape, join, pairs, table
from paribus.units import format_seconds

HOW_TO_READ = """\
A launch is one start of the program; its value is the median of its samples. A block holds one \
launch of every arm, close in time and in random order; the ratio compares launches of the same \
block only, so that drift of the machine cancels.

A ratio is the arm's value divided by the reference's, taken block by block, so it is not exactly \
the quotient of the two medians that are shown beside it; it is the better estimate, because it \
does not see the drift between blocks. Its interval holds the true ratio with {sure} confidence, \
however often the data were looked at.

Faster and slower: the whole interval lies beyond the margin. Equivalent: the whole interval lies \
inside the margin. Undecided: it reaches across the edge of the margin. Withheld: the arms differ \
in something that the factor does not explain.

The headline of a benchmark is the geometric mean over its cases. A case is coloured only when \
the headline is decided: among many cases, chance alone makes some stand out."""


def appendix(judgement: Judgement) -> Html:
    """Return what was not held equal, launches, plan, platforms, commands, and how to read it."""
    return join(
        _audit(judgement),
        _failures(judgement),
        _plan(judgement),
        _platforms(judgement),
        _reproduce(judgement),
        _how_to_read(judgement),
    )


def _audit(judgement: Judgement) -> Html:
    order = {"unexplained": "not explained", "factor": "the factor", "noted": "noted"}
    rows = [
        [
            element("code", escape(d.key)),
            escape(d.arm),
            escape(d.reference_value),
            escape(d.arm_value),
            element("b", order[d.kind]) if d.kind == "unexplained" else escape(order[d.kind]),
        ]
        for d in sorted(judgement.differences, key=lambda d: list(order).index(d.kind))
    ]
    head = ["Fact", "Arm", f"In {judgement.reference}", "In the arm", "Explained by"]
    shown = table(head, rows, "Facts that differ between the arms", left=range(5))
    return element(
        "section",
        element("h2", "What was not held equal"),
        shown if rows else Html(""),
        element("p", escape(wording.equal_text(judgement))),
    )


def _failures(judgement: Judgement) -> Html:
    if not judgement.tallies:
        return Html("")
    rows = [[escape(t.benchmark), escape(t.arm), *_tally_cells(t)] for t in judgement.tallies]
    head = ["Benchmark", "Arm", "Launches", "Failed", "Timed out", "Invalid", "First error"]
    return element(
        "section",
        element("h2", "Launches"),
        table(head, rows, "Launches by what came of them, warm-up left out", left=(0, 1, 6)),
    )


def _tally_cells(t: Tally) -> list[Html]:
    counts = [escape(str(n)) for n in (t.counted, t.failed, t.timed_out, t.invalid)]
    return [*counts, escape(t.first_error)]


def _plan(judgement: Judgement) -> Html:
    s = judgement.study.settings
    looks = _looks(s.blocks, s.confidence)
    margin = "per metric" if s.margin is None else wording.percent(s.margin)
    facts = [
        ("Order", "each arm once per block, in random order"),
        ("Seed", str(s.seed)),
        ("Blocks at most", str(s.blocks)),
        ("Looks", looks),
        ("Confidence", f"{wording.percent(s.confidence)} over all looks"),
        ("Margin", margin),
        ("Core binding", s.bind),
        ("Time budget", "none" if s.budget_s is None else format_seconds(s.budget_s)),
        ("Plan hash (SHA-256)", judgement.plan_sha256),
    ]
    rows = [
        [
            escape(b.label),
            escape(b.benchmark),
            escape(str(b.ranks)),
            escape(wording.parameters_text(b.parameters)),
            escape(format_seconds(b.timeout_s) if b.timeout_s else "20 x the warm-up"),
        ]
        for b in judgement.study.benchmarks
    ]
    head = ["Label", "Benchmark", "Ranks", "Parameters", "Limit"]
    return element(
        "section",
        element("h2", "Plan"),
        pairs(facts),
        table(head, rows, "Benchmarks of the study", left=(0, 1, 3)),
    )


def _looks(blocks: int, confidence: float) -> str:
    from paribus.stats.looks import schedule

    try:
        at = schedule(blocks, confidence).at
    except ValueError as error:
        return str(error)
    return f"after {', '.join(map(str, at))} blocks"


def _platforms(judgement: Judgement) -> Html:
    if not judgement.facts:
        return Html("")
    folded = []
    for arm, facts in judgement.facts.items():
        rows = [[element("code", escape(k)), escape(_fact(v))] for k, v in sorted(facts.items())]
        summary = element("summary", escape(f"{arm}: {wording.count(len(rows), 'fact')}"))
        shown = table(["Fact", "Value"], rows, f"Platform of {arm}", left=(0, 1))
        folded.append(element("details", summary, shown))
    return element("section", element("h2", "Platforms"), *folded)


def _fact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _reproduce(judgement: Judgement) -> Html:
    versions = ", ".join(f"{k} {v}" for k, v in judgement.versions.items())
    commands = [
        (
            "Measure the same plan again, into a new directory:",
            wording.reproduce_command(judgement),
        ),
        ("Make this report again from what is stored:", wording.report_command(judgement)),
    ]
    parts = [
        join(element("p", escape(text)), element("pre", escape(command), tabindex="0"))
        for text, command in commands
    ]
    seed = judgement.study.settings.seed
    note = (
        f"With seed = {seed} under [plan] the order of the launches is the same. plan.json in the "
        "study directory holds the study as it was, launches.db every sample, logs/ what every "
        "launch printed."
    )
    made = element("p", escape(f"Made with {versions}."), kind="small") if versions else Html("")
    return element(
        "section", element("h2", "How to reproduce"), *parts, element("p", escape(note)), made
    )


def _how_to_read(judgement: Judgement) -> Html:
    sure = wording.percent(judgement.study.settings.confidence)
    told = (element("p", escape(text)) for text in HOW_TO_READ.format(sure=sure).split("\n\n"))
    return element("section", element("h2", "How to read this"), *told)
