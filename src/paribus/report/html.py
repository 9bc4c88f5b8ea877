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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paribus.border import as_error
from paribus.core import (
    TREE,
    Judgement,
    ParseError,
    Part,
    UserError,
    cases_of,
    format_seconds,
    lenses,
    units,
)
from paribus.designs import design_of
from paribus.report import (
    first,
    heat,
    lookup,
    plots,
    sentences,
    spread,
    tables,
    track,
    unequal,
    wording,
)
from paribus.report.advice import reproduce_commands
from paribus.report.axes import Spec, drawn, panels
from paribus.report.bundle import javascript, put
from paribus.report.markup import (
    POLICY,
    Html,
    asset,
    document,
    element,
    escape,
    join,
    pairs,
    section,
    table,
)
from paribus.words.lists import listed
from paribus.words.values import notice_said, reason_of


def write_html(judgement: Judgement, path: Path) -> None:
    """Write the report of `judgement` to `path`, replacing it in one step.

    Raises UserError if the file cannot be written.
    """
    text, fix = page(judgement, javascript()), "free space there, or make it writable"
    with as_error(UserError, path, fix, "the report cannot be written", named=True):
        put(text, path)


def page(judgement: Judgement, bundle: str) -> str:
    """Return the whole HTML page; `bundle` is the script that defines `vegaEmbed`."""
    figures = Figures()
    shown = body(judgement, figures)
    draw = asset("page.js")
    scripts = f"{figures.data()}\n<script>{bundle}</script>\n<script>{draw}</script>\n"
    policy = f"{POLICY}; script-src {_hash(bundle)} {_hash(draw)}; img-src data:"
    return document(judgement.study.question, shown, policy=policy, scripts=scripts)


def body(judgement: Judgement, figures: Figures, *, running: bool = False) -> Html:
    """Return the contents of the page, from the first screen to the appendix.

    With `running` the study goes on at this moment.
    """
    cases = join(heat.maps(judgement), *_instead(judgement, figures))
    sections = (
        ("Cases by size", "cases", section("Cases", "cases", cases)),
        ("Launches", "launches", section("Launches", "launches", _launches(judgement))),
        ("Other views", "views", _views(judgement, figures)),
        ("Ranking", "ranking", tables.rankings(judgement)),
    )
    shown = [one for one in sections if one[2]]
    behind = parts(judgement)
    # Failures and unexplained differences explain the verdicts, and come right below them.
    first_opened = {"outcomes": lookup.nothing_came, "unequal": unequal.unexplained}
    urgent = [one for one in behind if one[1] in first_opened and first_opened[one[1]](judgement)]
    facts = pairs(_facts(judgement, running=running))
    study = ("This study", "study", first.about(judgement, facts))
    places = [(title, place) for title, place, _ in (*shown, study, *behind)]
    return join(
        first.contents(judgement, places),
        first.screen(judgement, running=running),
        *(content for _, _, content in urgent),
        *(content for _, _, content in shown),
        tables.layers(judgement),
        study[2],
        *(_benchmark(judgement, b, figures) for b in lookup.benchmarks(judgement)),
        *(one[2] for one in behind if one not in urgent),
    )


class Figures:
    """Collects the specs of a page; `add` returns the element in which one will be drawn."""

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
        """Return the element with the specs that page.js draws."""
        specs = json.dumps(self.specs, separators=(",", ":"), allow_nan=False)
        for sign in "<>&":  # these could end the element, or begin a comment
            specs = specs.replace(sign, f"\\u{ord(sign):04x}")
        return Html(f'<script type="application/json" id="figures">{specs}</script>')


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
    """Return the sections of lenses, and the figure of time, cost and energy."""
    shown = [_lenses(judgement, figures, "verdicts")]
    if (of_spent := plots.spent(judgement)) is not None:
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
    """Return the time line of the study, or a sentence if it has too many launches for one."""
    if len(judgement.points) <= track.MOST_POINTS:
        return track.figure(judgement)
    text = f"{len(judgement.points):,} launches are too many for a time axis;"
    return element("p", escape(f"{text} launches.csv lists them all."), kind="small")


def _instead(judgement: Judgement, figures: Figures) -> Iterator[Html]:
    """Yield what lenses draw in place of the cases of benchmarks."""
    found = (cases_of(judgement, label) for label in lookup.benchmarks(judgement))
    for group in (group for one in found if one for group in one.groups):
        pictures = [figures.add(one.spec, one.title) for one in group]
        yield element("div", *pictures, kind="figures")
        yield from (element("p", escape(f"{one.title}: {one.said}")) for one in group)


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
        why = f"{reason_of(head.verdict)}; on {blocks}" if blocks else reason_of(head.verdict)
        reason = element("small", escape(why))
        parts.append(element("p", escape(sentences.headline_sentence(judgement, head)), reason))
    instead = cases_of(judgement, label)
    for panel in () if instead else drawn(judgement, label):
        drawings = plots.of_panel(judgement, panel)
        pictures = (figures.add(spec, caption) for _, caption, spec in drawings)
        parts.append(element("div", *pictures, kind="figures"))
    way = plots.narrowing(judgement, label)
    if way is not None:
        parts.append(figures.add(way, design_of(judgement.study).narrowed, wide=True))
    spreads = [spread.figure(judgement, label)]
    if (of_samples := spread.samples(judgement, label)) is not None:
        caption = "Samples: what share of them is faster; dots: a typical launch"
        spreads.append(figures.add(of_samples, caption))
    if any(spreads):
        parts.append(element("div", *spreads, kind="figures"))
    # In print, a heading is kept together with its first figure.
    top = len(heads) + 2
    parts[:top] = [element("div", *parts[:top], kind="together")]
    if instead:
        parts.append(element("p", escape(instead.note), kind="small"))
    else:
        parts += [tables.cases(judgement, label, panel) for panel in shown]
    parts.append(tables.endpoints(judgement, label))
    return element("section", *parts, aria_labelledby=place)


def _hash(script: str) -> str:
    """Return the source expression by which a content security policy allows one script."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


HOW_TO_READ = """\
{unit}

Times as slow is the arm's value divided by the reference's, of a rate the inverse: above 1 the \
arm is worse. It can differ from the quotient of the two medians beside it. Where launches are \
compared within a block the ratio is the better estimate, because drift between blocks does not \
affect it. Its interval contains the true ratio with {sure} \
confidence{when}.

Faster and slower: the whole interval lies beyond the margin. Equivalent: the whole interval lies \
inside the margin. Undecided: the interval crosses an edge of the margin. Withheld: the figures \
exist, but they do not justify a verdict; the reason is given. Size withheld: the verdict holds, \
but too many launches reached their time limit to report by how much the arms differ.

The headline of a benchmark is the geometric mean over its cases. Verdicts of cases and of pairs \
of arms are corrected for multiple comparisons, because among many some stand out by chance."""

ELSEWHERE = (
    "The values were measured elsewhere. Paribus knows only what the table contains, and claims"
    " only what its design supports."
)

LONGEST_NOTES = 1500
"""Notes are folded if all together have more characters."""


def parts(judgement: Judgement) -> list[tuple[str, str, Html]]:
    """Return title, id and contents of the sections after the benchmarks, without empty ones."""
    made = (
        ("About the data", "data", _data(judgement)),
        ("Not held equal", "unequal", unequal.html_section(judgement)),
        ("Outcomes", "outcomes", failures(judgement)),
        ("Plan", "plan", _plan(judgement)),
        ("Platforms", "platforms", _platforms(judgement)),
        ("How to reproduce", "reproduce", _reproduce(judgement)),
        ("How to read this", "reading", _how_to_read(judgement)),
    )
    return [one for one in made if one[2]]


def _data(judgement: Judgement) -> Html:
    """Return the notes on the data, folded when they are many."""
    notes = [n for n in judgement.notices if n.level == "note"]
    if not notes:
        return Html("")
    shown = element("ul", *(element("li", first.notice_of(n)) for n in notes))
    if sum(len(notice_said(n)) for n in notes) > LONGEST_NOTES:
        names = listed(list(dict.fromkeys(n.name for n in notes)), 10)
        summary = element("summary", escape(f"{units.count(len(notes), 'note')}: {names}"))
        shown = element("details", summary, shown)
    return section("About the data", "data", shown)


def failures(judgement: Judgement) -> Html:
    """Return the section on outcomes of launches, by benchmark and arm."""
    if not judgement.tallies:
        return Html("")
    rows = [
        [escape(text) for text in (t.benchmark, t.arm, sentences.failure_text(t), t.first_error)]
        for t in judgement.tallies
    ]
    again = ", those of blocks that were rerun included" * any(t.rerun for t in judgement.tallies)
    caption = f"Outcomes of launches{again}; the warm-up does not count"
    head = ("Benchmark", "Arm", "Failures", "First error")
    listed = table(head, rows, caption, left=range(4), fold=True)
    return section("Outcomes of launches", "outcomes", listed)


def _plan(judgement: Judgement) -> Html:
    head = ["Label", "Benchmark", "Ranks", "Decides", "Parameters", "Limit"]
    rows = [
        [
            escape(b.label),
            escape(b.benchmark),
            escape(str(b.ranks or "none")),
            escape(b.endpoints[0] if b.endpoints else ""),
            escape(wording.parameters_text(b.parameters)),
            escape(format_seconds(b.timeout_s) if b.timeout_s else "from the warm-up"),
        ]
        for b in judgement.study.benchmarks
    ]
    if not lookup.measured(judgement):
        return Html("")
    listed = table(head, rows, "Benchmarks of the study", left=(0, 1, 3, 4))
    return section("Plan", "plan", pairs(_settings(judgement)), listed)


def _settings(judgement: Judgement) -> list[tuple[str, str]]:
    s, design = judgement.study.settings, design_of(judgement.study)
    facts = [
        *design.rows(judgement.looks, judgement.level).items(),
        ("Margin", "per metric" if s.margin is None else units.percent(s.margin)),
        ("Stops when", f"the {s.decides.rstrip('s')}s are decided"),
        ("Core binding", s.bind),
        ("Time budget", "none" if s.budget_s is None else format_seconds(s.budget_s)),
        ("Plan hash (SHA-256)", judgement.plan_sha256),
    ]
    return [(name, value) for name, value in facts if value]


def _platforms(judgement: Judgement) -> Html:
    folded = []
    for arm, facts in judgement.facts.items():
        listed = sorted((key, value) for key, value in facts.items() if key != TREE)
        rows = [[element("code", escape(k)), escape(_fact(v))] for k, v in listed]
        summary = f"{arm}: {units.count(len(rows), 'fact')}"
        caption = f"Platform of {arm}"
        folded.append(table(["Fact", "Value"], rows, caption, left=(0, 1), summary=summary))
    return section("Platforms", "platforms", *_trees(judgement), *folded)


def _trees(judgement: Judgement) -> Iterator[Html]:
    """Yield a picture of each PCIe tree, with the arms that have it."""
    arms: dict[str, list[str]] = {}
    for arm, facts in judgement.facts.items():
        text = facts.get(TREE)
        if isinstance(text, str):
            arms.setdefault(text, []).append(arm)
    for text, names in arms.items():
        from paribus.topology import stored
        from paribus.topology.svg import svg

        try:
            drawn = svg(stored.read(text))
        except ParseError:  # a verdict.json may have been written by anybody
            continue
        caption = element("figcaption", escape(f"PCIe tree of {', '.join(names)}"))
        yield element("figure", caption, drawn, kind="tree", tabindex="0")


def _fact(value: Any) -> str:
    if isinstance(value, dict) and list(value) == ["unknown"]:
        return f"({value['unknown']})"
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _reproduce(judgement: Judgement) -> Html:
    versions = ", ".join(f"{k} {v}" for k, v in judgement.versions.items())
    commands = reproduce_commands(judgement)
    parts = [
        join(element("p", escape(text)), element("pre", escape(command), tabindex="0"))
        for text, command in commands
    ]
    seed = judgement.study.settings.seed
    note = (
        f"With seed = {seed} under [plan] the order of the launches is the same. In the study "
        "directory, plan.json holds the frozen study, launches.db every sample, and logs/ the "
        "output of every launch."
    )
    if not commands:
        note = "paribus compare gives the same report for the same tables and options."
    parts.append(element("p", escape(note)))
    made = element("p", escape(f"Made with {versions}."), kind="small") if versions else Html("")
    return section("How to reproduce", "reproduce", *parts, made)


def _how_to_read(judgement: Judgement) -> Html:
    design = design_of(judgement.study)
    endpoints = {h.metric.endpoint for h in judgement.headlines} - {"median"}
    which = f" (or their {' or '.join(sorted(endpoints))}, where that decides)" if endpoints else ""
    value = design.value.format(which=which, nearness=design.nearness)
    text = HOW_TO_READ.format(
        unit=value if lookup.measured(judgement) else ELSEWHERE,
        sure=units.percent(judgement.study.settings.confidence),
        when=design.at_any(several_looks=lookup.several_looks(judgement)),
    )
    notes = [sentences.cases_note(judgement, judgement.cases)]
    notes += [sentences.endpoints_note(judgement.endpoints)] if judgement.endpoints else []
    paragraphs = (element("p", escape(part)) for part in (*text.split("\n\n"), *notes) if part)
    return section("How to read this", "reading", *paragraphs)
