"""The report as one HTML file that opens offline, on paper and on a telephone.

The tables hold every number in plain HTML; the figures are drawn from JSON in the page by a
bundled script, which the content security policy names by hash: nothing else can run, and nothing
can be fetched.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import time
from importlib.resources import files
from pathlib import Path

from paribus.errors import UserError
from paribus.judgement import Finding, Judgement
from paribus.report import plots, wording
from paribus.report.appendix import appendix
from paribus.report.axes import Panel, Spec, panels
from paribus.report.bundle import javascript
from paribus.report.markup import Html, attribute, element, escape, join, pairs, table
from paribus.units import format_change, format_seconds


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
        with contextlib.suppress(OSError):
            partial.unlink()
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
        appendix(judgement),
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
        self.specs: list[Spec] = []

    def add(self, spec: Spec, caption: str, wide: bool = False) -> Html:
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
    return element(
        "header",
        element("p", escape(study.question), kind="question"),
        element("h1", escape(judgement.sentence)),
        pairs(facts),
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
        table(head, rows, "Headline of every benchmark", left=_text_columns(several)),
        element("div", *(figures.add(s, s["title"]) for s in shown), kind="figures"),
        aria_label="Verdicts",
    )


def _benchmark(judgement: Judgement, label: str, number: int, figures: Figures) -> Html:
    """Return the section of one benchmark: sentence, figures, table of cases."""
    heads = judgement.of_benchmark(label, judgement.headlines)
    shown = panels(judgement, label)
    if not heads and not shown and not any(p.benchmark == label for p in judgement.points):
        return Html("")
    parts = [element("h2", escape(label), id=f"benchmark-{number}")]
    for h in heads:
        reason = element("small", escape(h.verdict.reason))
        parts.append(element("p", escape(wording.headline_sentence(judgement, h)), reason))
    for panel in shown:
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
    parts += [_cases(judgement, label, panel) for panel in shown]
    return element("section", *parts, aria_labelledby=f"benchmark-{number}")


def _cases(judgement: Judgement, label: str, panel: Panel) -> Html:
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
    return table(head, rows, caption, left=_text_columns(several))


def _text_columns(several: bool) -> tuple[int, ...]:
    """Return the columns of a table of findings that hold text: names and the verdict."""
    return (0, 1, 2) if several else (0, 1)


def _value_heads(judgement: Judgement, *, spread: bool = False) -> list[str]:
    others = judgement.study.arms[1:]
    arm = others[0].name if len(others) == 1 else "Value"
    quartiles = ", quartiles" if spread else ""
    return ["Verdict", f"{judgement.reference}{quartiles}", f"{arm}{quartiles}", "Ratio [interval]"]


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
            element("small", escape(format_change(f.comparison.ratio))),
        )
    under = element("small", escape(f"margin {wording.percent(f.margin)}"))
    return [join(_chip(judgement, f), under), *values, ratio]


def _chip(judgement: Judgement, f: Finding) -> Html:
    """Return the verdict as a word with a sign; coloured only where its family supports it."""
    word = f.verdict.word
    kind = word.name.lower() if wording.supported(judgement, f) else "open"
    sign = element("span", escape(wording.SYMBOLS[word]), aria_hidden="true")
    return element(
        "span", sign, escape(f" {word.value}"), kind=f"chip {kind}", title=f.verdict.reason
    )


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
