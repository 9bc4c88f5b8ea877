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

from paribus.border import open_anew
from paribus.core import Judgement, Part, UserError, cases_of, lenses, units
from paribus.designs import design_of
from paribus.report import (
    appendix,
    first,
    heat,
    lookup,
    narrowing,
    plots,
    sentences,
    spent,
    spread,
    tables,
    track,
)
from paribus.report.axes import Spec, drawn, panels
from paribus.report.bundle import javascript
from paribus.report.markup import Html, attribute, element, escape, join, pairs
from paribus.words.values import reason_of


def write_html(judgement: Judgement, path: Path, *, cache: Path | None = None) -> None:
    """Write the report of `judgement` to `path`, replacing it in one step.

    `cache` is where the drawing script is kept (default: the user's cache directory). Raises
    UserError when the file cannot be written.
    """
    text = page(judgement, javascript(cache))
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open_anew(partial, encoding="utf-8") as file:
            file.write(text)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise UserError(
            f"the report cannot be written: {error.strerror}",
            place=str(error.filename or path),
            fix="free space there, or make it writable",
        ) from error


def page(judgement: Judgement, bundle: str) -> str:
    """Return the whole HTML page; `bundle` is the script that defines `vegaEmbed`."""
    figures = Figures()
    shown = body(judgement, figures)
    draw = asset("page.js")
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
        f"<title>{title}</title>\n<style>\n{asset('page.css')}</style>\n</head>\n"
        f"<body>\n<main>\n{shown}\n</main>\n{figures.data()}\n"
        f"<script>{bundle}</script>\n<script>{draw}</script>\n</body>\n</html>\n"
    )


def body(judgement: Judgement, figures: Figures, *, running: bool = False) -> Html:
    """Return what the page says, from the first screen to the appendix.

    `running`: the study goes on at this moment.
    """
    cases = heat.maps(judgement)
    sections = (
        ("Cases by size", "cases", element("section", _titled("Cases"), cases, id="cases")),
        ("Every launch", "launches", _launches(judgement)),
        ("Other views", "views", _views(judgement, figures)),
        ("Ranking", "ranking", tables.rankings(judgement)),
    )
    shown = [one for one in sections if one[2] and (cases or one[1] != "cases")]
    behind = appendix.parts(judgement)
    urgent = [one for one in behind if one[1] in appendix.urgent(judgement)]
    facts = pairs(_facts(judgement, running=running))
    study = ("This study", "study", first.about(judgement, facts))
    places = [(title, place) for title, place, _ in (*shown, study, *behind)]
    return join(
        first.contents(judgement, places),
        first.screen(judgement, running=running),
        *(content for _, _, content in urgent),
        *(content for _, _, content in shown),
        tables.headlines(judgement) if judgement.headlines else Html(""),
        tables.layers(judgement),
        study[2],
        *(_benchmark(judgement, b, figures) for b in lookup.benchmarks(judgement)),
        *(one[2] for one in behind if one not in urgent),
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

    def data(self) -> Html:
        """Return the element that holds what page.js draws."""
        specs = json.dumps(self.specs, separators=(",", ":"), allow_nan=False)
        return Html(f'<script type="application/json" id="figures">{_in_script(specs)}</script>')


def _titled(title: str) -> Html:
    return element("h2", escape(title))


def _facts(judgement: Judgement, *, running: bool) -> list[tuple[str, str]]:
    study = judgement.study
    facts = [
        ("Factor", study.factor),
        ("Reference", judgement.reference),
        ("Compared with it", ", ".join(a.name for a in study.arms[1:]) or "nothing"),
        ("Measured", sentences.launches_text(judgement)),
    ]
    failed = lookup.nothing_came(judgement)
    if not failed and (transport := sentences.transport_text(judgement)):
        facts.append(("Transport between ranks", transport))
    if judgement.started is not None:
        day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(judgement.started))
        facts.append(("Started", day))
    design = design_of(study)
    state = design.state(complete=judgement.complete)
    if state := "running" if running and design.has_end else state:
        facts.append(("State", state))
    return facts


def _views(judgement: Judgement, figures: Figures) -> Html:
    """Return what the lenses say, and what time, cost and energy come to."""
    shown = [_lenses(judgement, figures, "verdicts")]
    if (of_spent := spent.figure(judgement)) is not None:
        shown.append(element("div", figures.add(of_spent, of_spent["title"]), kind="figures"))
    shown += [_lenses(judgement, figures, part) for part in ("ratios", "rankings")]
    return element("div", *shown, id="views") if any(shown) else Html("")


def _lenses(judgement: Judgement, figures: Figures, after: Part) -> Html:
    """Return the sections of the lenses that follow a part of the report."""
    return join(
        *(
            one.html(judgement, rows, figures)
            for one, rows in lenses(judgement)
            if one.html_after == after
        )
    )


def _launches(judgement: Judgement) -> Html:
    """Return the time line of the study, or where its launches are when they are too many."""
    shown = track.picture(judgement)
    if not shown and len(judgement.points) <= track.MOST_POINTS:
        return Html("")
    if shown:
        text = element("p", escape(track.caption(judgement)))
        how = element("details", element("summary", "How to read it"), text)
        drawn = element("figure", shown, element("figcaption", track.keys(judgement), how))
    else:
        said = f"{len(judgement.points):,} launches are too many for a time axis;"
        drawn = element("p", escape(f"{said} launches.csv lists them all."), kind="small")
    return element("section", _titled("Every launch"), drawn, id="launches")


def _benchmark(judgement: Judgement, label: str, figures: Figures) -> Html:
    """Return the section of one benchmark: sentences, figures, tables."""
    heads = judgement.of_benchmark(label, judgement.headlines)
    shown = panels(judgement, label)
    if not heads and not shown and not any(p.benchmark == label for p in judgement.points):
        return Html("")
    place = tables.anchor(judgement, label)
    parts = [element("h2", escape(label), id=place)]
    for head in heads:
        blocks = sentences.rests_on(judgement, head)
        said = f"{reason_of(head.verdict)}; on {blocks}" if blocks else reason_of(head.verdict)
        reason = element("small", escape(said))
        parts.append(element("p", escape(sentences.headline_sentence(judgement, head)), reason))
    unit = lookup.unit(judgement)
    instead = cases_of(judgement, label)
    for group in instead.groups if instead else ():
        pictures = [figures.add(one.spec, one.title) for one in group]
        parts.append(element("div", *pictures, kind="figures"))
        parts += [element("p", escape(f"{one.title}: {one.said}")) for one in group]
    for panel in () if instead else drawn(judgement, label):
        title = f"{panel.metric.name}{f', {panel.group}' if panel.group else ''}"
        pictures = []
        if plots.has_values(panel.cases):
            caption = f"{title}: median {unit}; shaded: middle half of the {units.plural(unit)}"
            pictures.append(figures.add(plots.curves(judgement, panel), caption))
        if plots.has_ratios(panel.cases):
            caption = f"{title}: ratio with interval; shaded: margin; grey and hollow: no verdict"
            pictures.append(figures.add(plots.ratios(judgement, panel), caption))
        parts.append(element("div", *pictures, kind="figures"))
    way = narrowing.figure(judgement, label)
    if way is not None:
        parts.append(figures.add(way, narrowing.caption(judgement), wide=True))
    spreads = spread.figure(judgement, label), spread.quantiles(judgement, label)
    if any(spreads):
        parts.append(element("div", *spreads, kind="figures"))
    if instead:
        parts.append(element("p", escape(instead.note), kind="small"))
    else:
        parts += [tables.cases(judgement, label, panel) for panel in shown]
    parts.append(tables.endpoints(judgement, label))
    return element("section", *parts, aria_labelledby=place)


def asset(name: str) -> str:
    """Return a file of the page: its style, or the script that draws."""
    return files("paribus.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """Return the source expression by which a content security policy allows one script."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _in_script(data: str) -> str:
    """Return JSON that cannot end, or comment out, the script element it stands in."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
