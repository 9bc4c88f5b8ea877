"""The report as one HTML file that opens offline, on paper and on a telephone.

The tables hold every number in plain HTML; the figures are drawn from JSON in the page by a
bundled script, which the content security policy names by hash: nothing else can run, and nothing
can be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from paribus.errors import UserError
from paribus.model import Finding, Judgement, Tally
from paribus.report import plots, wording
from paribus.report.bundle import javascript
from paribus.report.markup import Html, attribute, element, escape, join, table
from paribus.units import format_seconds


def write_html(judgement: Judgement, path: Path, *, cache: Path | None = None) -> None:
    """Write the report of `judgement` to `path`, replacing it in one step.

    `cache` is where the drawing script is kept (default: the user's cache directory). Raises
    UserError when the file cannot be written.
    """
    text = page(judgement, javascript(cache))
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UserError(
            f"the report cannot be written: {error.strerror}",
            place=str(path),
            mend="free space there, or make it writable",
        ) from error


def page(judgement: Judgement, bundle: str) -> str:
    """Return the whole HTML page; `bundle` is the script that defines `vegaEmbed`."""
    figures = Figures()
    body = join(
        _header(judgement),
        _warnings(judgement),
        _steps(judgement),
        _summary(judgement, figures),
        *(_benchmark(judgement, b, i, figures) for i, b in _numbered(judgement)),
        _audit(judgement),
        _failures(judgement),
        _plan(judgement),
        _platforms(judgement),
        _reproduce(judgement),
        _how_to_read(judgement),
    )
    draw = _asset("page.js")
    specs = json.dumps(figures.specs, separators=(",", ":"), allow_nan=False)
    policy = (
        f"default-src 'none'; script-src {_hash(bundle)} {_hash(draw)}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    title = escape(f"{judgement.study.question} - Paribus")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{attribute(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n"
        f'<body>\n<main>\n{body}\n</main>\n<script type="application/json" id="figures">'
        f"{_in_script(specs)}</script>\n<script>{bundle}</script>\n<script>{draw}</script>\n"
        "</body>\n</html>\n"
    )


class Figures:
    """Collects the specs of a page; `add` returns the place where one will be drawn."""

    def __init__(self) -> None:
        self.specs: list[plots.Spec] = []

    def add(self, spec: plots.Spec, caption: str, wide: bool = False) -> Html:
        """Return a figure element for `spec`; its title becomes the caption."""
        number = len(self.specs)
        shown = {k: v for k, v in spec.items() if k != "title"}
        self.specs.append(shown)
        said = str(spec["description"])
        label = said if len(said) <= 300 else f"{said[:300]} ... All figures are in the table."
        return element(
            "figure",
            element("figcaption", escape(caption)),
            element(
                "div",
                element("p", "Figures need JavaScript; the table holds every number.", kind="nojs"),
                kind="plot",
                id=f"figure-{number}",
                role="img",
                aria_label=label,
            ),
            kind="wide" if wide else None,
        )


def _header(judgement: Judgement) -> Html:
    study = judgement.study
    launches, bad = wording.attempted(judgement.tallies)
    arms = ", ".join(a.name for a in study.arms[1:])
    facts = [
        ("Factor", study.factor),
        ("Reference", judgement.reference),
        ("Compared with it", arms),
        ("Launches", f"{launches}, {bad} failed"),
    ]
    if judgement.started is not None:
        day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(judgement.started))
        facts.append(("Started", day))
    if judgement.wall_s:
        facts.append(("Took", format_seconds(judgement.wall_s)))
    if not judgement.complete:
        facts.append(("State", "unfinished"))
    pairs = [join(element("dt", escape(k)), element("dd", escape(v))) for k, v in facts]
    return element(
        "header",
        element("p", escape(study.question), kind="question"),
        element("h1", escape(judgement.sentence)),
        element("dl", *(element("div", p) for p in pairs), kind="facts"),
    )


def _warnings(judgement: Judgement) -> Html:
    if not judgement.warnings:
        return Html("")
    items = [element("li", escape(w)) for w in judgement.warnings]
    return _box("Warnings", "warnings", element("ul", *items))


def _steps(judgement: Judgement) -> Html:
    steps = wording.next_steps(judgement)
    if not steps:
        return Html("")
    return _box(
        "What to do next", "steps", element("ul", *(element("li", escape(s)) for s in steps))
    )


def _summary(judgement: Judgement, figures: Figures) -> Html:
    if not judgement.headlines:
        return Html("")
    numbers = {b: i for i, b in _numbered(judgement)}
    several = len(judgement.study.arms) > 2
    head = ["Benchmark", *(["Arm"] if several else []), *_value_heads(judgement), "Launches"]
    rows = []
    for h in judgement.headlines:
        tallies = [
            wording.tally_of(judgement, h.benchmark, a) for a in (judgement.reference, h.arm)
        ]
        launches, bad = wording.attempted(tallies)
        name = element("a", escape(h.benchmark), href=f"#benchmark-{numbers[h.benchmark]}")
        under = f"{h.metric.name}, {wording.direction(h.metric)}"
        cells = [join(name, element("small", escape(under)))]
        cells += [escape(h.arm)] if several else []
        failed = element("small", escape(f"{bad} failed")) if bad else Html("")
        cells += [*_value_cells(judgement, h), join(escape(str(launches)), failed)]
        rows.append(cells)
    shown = [s for s in (plots.overview(judgement, b) for b in ("lower", "higher")) if s]
    return element(
        "section",
        element("h2", "Verdicts"),
        table(head, rows, "Headline of every benchmark", left=(0, 1) if several else (0,)),
        element("div", *(figures.add(s, s["title"]) for s in shown), kind="figures"),
        aria_label="Verdicts",
    )


def _benchmark(judgement: Judgement, label: str, number: int, figures: Figures) -> Html:
    """Return the section of one benchmark: sentence, figures, table of cases."""
    heads = judgement.of_benchmark(label, judgement.headlines)
    panels = plots.panels(judgement, label)
    if not heads and not panels and not any(p.benchmark == label for p in judgement.points):
        return Html("")
    parts = [element("h2", escape(label), id=f"benchmark-{number}")]
    for h in heads:
        reason = element("small", escape(h.verdict.reason))
        parts.append(element("p", escape(wording.headline_sentence(judgement, h)), reason))
    for panel in panels:
        title = f"{panel.metric.name}{f', {panel.group}' if panel.group else ''}"
        drawn = []
        if any(f.reference_value or f.arm_value for f in panel.cases):
            caption = f"{title}: median launch; shaded: middle half of the launches"
            drawn.append(figures.add(plots.curves(judgement, panel), caption))
        if any(f.comparison for f in panel.cases):
            caption = f"{title}: ratio with interval; shaded: margin; grey and hollow: no verdict"
            drawn.append(figures.add(plots.ratios(judgement, panel), caption))
        parts.append(element("div", *drawn, kind="figures"))
    track = plots.timeline(judgement, label)
    if track is not None:
        caption = "Every launch over time; cross: nothing usable; pale: warm-up, not counted"
        parts.append(figures.add(track, caption, wide=True))
    parts += [_cases(judgement, label, panel) for panel in panels]
    return element("section", *parts, aria_labelledby=f"benchmark-{number}")


def _cases(judgement: Judgement, label: str, panel: plots.Panel) -> Html:
    several = len(judgement.study.arms) > 2
    head = ["Case", *(["Arm"] if several else []), *_value_heads(judgement, spread=True), "Blocks"]
    rows = []
    for f in panel.cases:
        blocks = "" if f.comparison is None else str(f.comparison.blocks)
        cells = [escape(wording.case_text(f)), *([escape(f.arm)] if several else [])]
        rows.append([*cells, *_value_cells(judgement, f, spread=True), escape(blocks)])
    what = f"{label}: {panel.metric.name} in {panel.metric.unit}"
    caption = f"{what}, {wording.direction(panel.metric)}"
    if panel.group:
        caption += f", {panel.group}"
    return table(head, rows, caption, left=(0, 1) if several else (0,))


def _value_heads(judgement: Judgement, *, spread: bool = False) -> list[str]:
    others = judgement.study.arms[1:]
    arm = others[0].name if len(others) == 1 else "Value"
    quartiles = ", quartiles" if spread else ""
    return [
        f"{judgement.reference}{quartiles}",
        f"{arm}{quartiles}",
        "Ratio [interval]",
        "Verdict",
    ]


def _value_cells(judgement: Judgement, f: Finding, *, spread: bool = False) -> list[Html]:
    values = []
    for value in (f.reference_value, f.arm_value):
        text = escape(wording.value_text(value, f.metric))
        if spread and value is not None:
            text = join(text, element("small", escape(wording.spread_text(value))))
        values.append(text)
    ratio = Html("none")
    if f.comparison is not None:
        ratio = join(
            element("b", escape(wording.ratio_text(f.comparison.ratio))),
            escape(f" {wording.interval_text(f.comparison)}"),
            element("small", escape(wording.change_text(f.comparison.ratio))),
        )
    under = element("small", escape(f"margin {wording.percent(f.margin)}"))
    return [*values, ratio, join(_chip(judgement, f), under)]


def _chip(judgement: Judgement, f: Finding) -> Html:
    """Return the verdict as a word with a sign; coloured only where its family supports it."""
    word = f.verdict.word
    kind = word.name.lower() if wording.supported(judgement, f) else "open"
    sign = element("span", escape(wording.SYMBOLS[word]), aria_hidden="true")
    return element(
        "span", sign, escape(f" {word.value}"), kind=f"chip {kind}", title=f.verdict.reason
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
    equal = f"{wording.count(judgement.equal_facts, 'other fact')} equal in all arms."
    head = ["Fact", "Arm", f"In {judgement.reference}", "In the arm", "Explained by"]
    shown = table(head, rows, "Facts that differ between the arms", left=range(5))
    return element(
        "section",
        element("h2", "What was not held equal"),
        shown if rows else Html(""),
        element("p", escape(equal if judgement.facts else "No facts were recorded.")),
    )


def _failures(judgement: Judgement) -> Html:
    if not judgement.tallies:
        return Html("")
    rows = [[escape(t.benchmark), escape(t.arm), *_tally_cells(t)] for t in judgement.tallies]
    head = ["Benchmark", "Arm", "Counted", "Failed", "Timed out", "Invalid", "First error"]
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
            escape(", ".join(f"{k} = {v}" for k, v in b.parameters.items())),
            escape(format_seconds(b.timeout_s)),
        ]
        for b in judgement.study.benchmarks
    ]
    head = ["Label", "Benchmark", "Ranks", "Parameters", "Limit"]
    return element(
        "section",
        element("h2", "Plan"),
        _pairs(facts),
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
    text = [
        (
            "A launch is one start of the program; its value is the median of its samples. A block "
            "holds one launch of every arm, close in time and in random order; the ratio compares "
            "launches of the same block only, so that drift of the machine cancels."
        ),
        (
            f"A ratio is the arm's value divided by the reference's. Its interval holds the true ratio "
            f"with {sure} confidence, however often the data were looked at."
        ),
        (
            "Faster and slower: the whole interval lies beyond the margin. Equivalent: the whole "
            "interval lies inside the margin. Undecided: it reaches across the edge of the margin. "
            "Withheld: the arms differ in something that the factor does not explain."
        ),
        (
            "The headline of a benchmark is the geometric mean over its cases. A case is coloured only "
            "when the headline is decided: among many cases, chance alone makes some stand out."
        ),
    ]
    return element(
        "section", element("h2", "How to read this"), *(element("p", escape(t)) for t in text)
    )


def _pairs(facts: list[tuple[str, str]]) -> Html:
    pairs = [join(element("dt", escape(k)), element("dd", escape(v))) for k, v in facts]
    return element("dl", *(element("div", p) for p in pairs), kind="facts")


def _box(title: str, kind: str, content: Html) -> Html:
    return element("section", element("h2", escape(title)), content, kind=f"box {kind}")


def _numbered(judgement: Judgement) -> list[tuple[int, str]]:
    return list(enumerate(wording.benchmarks(judgement)))


def _asset(name: str) -> str:
    return files("paribus.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return the source expression by which a content security policy allows one script."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _in_script(data: str) -> str:
    """Return JSON that cannot end, or comment out, the script element it stands in."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
