"""Heat maps of cases: a row for each benchmark, a column for each size, the ratio as colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from paribus.core import Finding, Judgement, Word, cases_of, count, format_ratio, grouped, slowness
from paribus.report import tables, wording
from paribus.report.axes import AXES, Panel, drawn
from paribus.report.effects import place
from paribus.report.markup import Html, element, escape, heads, join, tabular
from paribus.words.values import reason_of

STEPS = (1.0, 2.5, 4.5)
"""Places (effects.place) at which the colour of a cell gets darker: the first is the margin."""

DENSE = 13
"""With more columns, a telephone shows colours alone."""


def maps(judgement: Judgement) -> Html:
    """Return a map for each parameter that benchmarks sweep; "" without any ratio."""
    labels = dict.fromkeys(f.benchmark for f in judgement.headlines)
    labels_here = [label for label in labels if not cases_of(judgement, label)]  # else by a lens
    swept = [p for label in labels_here for p in drawn(judgement, label) if p.key]
    panels = [p for p in swept if any(map(slowness, p.cases))]
    keys = dict.fromkeys(p.key for p in panels if p.key)
    return join(*(_map(judgement, key, [p for p in panels if p.key == key]) for key in keys))


def _map(judgement: Judgement, key: str, panels: Sequence[Panel]) -> Html:
    values = sorted({_value(f, key) for p in panels for f in p.cases})
    several = len(judgement.study.arms) > 2
    metrics = Counter(label for label, _ in {(p.benchmark, p.metric.name) for p in panels})
    what = AXES.get(key, key)
    head = [element("th", escape(what), kind="text", scope="col")]
    head += heads(wording.tick_label(key, value) for value in values)
    rows = []
    for panel in panels:
        for arm, found in grouped((f.arm, f) for f in panel.cases).items():
            which = _which(panel, arm * several, of_metrics=metrics[panel.benchmark] > 1)
            rows.append(_row(judgement, panel, which, values, found))
    cases = [f for p in panels for f in p.cases]
    said = escape(f"{count(len(cases), 'case')}, times as slow")
    kind = "heat dense" if len(values) > DENSE else "heat"
    return tabular(element("caption", said, *_keys(cases)), head, rows, kind)


def _keys(cases: Sequence[Finding]) -> Iterator[Html]:
    """Yield a legend of the colours, and of the hatching, that are in a map."""
    sizes = [(times.ratio, f.margin) for f in cases if (times := slowness(f))]
    shades = {shade(*one)[0] for one in sizes}
    known = {"s2": "slower", "f2": "faster", "h0": "within the margin"}
    keys = {kind: text for kind, text in known.items() if kind[0] in shades}
    if not all(map(_has_size, cases)):
        keys["h0 open"] = "no verdict"
    for kind, text in keys.items():
        yield element("span", element("i", kind=kind), escape(text))


def _has_size(finding: Finding) -> bool:
    """Return whether a verdict claims something about the ratio."""
    return finding.verdict.word in wording.DECIDED and finding.verdict.word is not Word.RELIABILITY


def _value(finding: Finding, key: str) -> float:
    value = finding.case.get(key) if finding.case else None
    return float(value) if isinstance(value, int | float) else 0.0


def _which(panel: Panel, arm: str, *, of_metrics: bool) -> str:
    """Return which row of its benchmark it is: its metric if `of_metrics`, group of cases, arm."""
    return ", ".join(filter(None, (panel.metric.name * of_metrics, panel.group, arm)))


def _row(
    judgement: Judgement,
    panel: Panel,
    which: str,
    values: Sequence[float],
    found: Sequence[Finding],
) -> Html:
    anchor = f"#{tables.anchor(judgement, panel.benchmark)}"
    link = element("a", escape(panel.benchmark), href=anchor)
    below = [element("small", escape(which))] if which else []
    at = {_value(f, panel.key or ""): f for f in found}
    cells = [_cell(at[value]) if value in at else Html("<td></td>") for value in values]
    return element("tr", element("th", link, *below, kind="text", scope="row"), *cells)


def _cell(finding: Finding) -> Html:
    times = slowness(finding)
    title = f"{wording.case_text(finding)}: {finding.verdict.word.value}"
    if times is None:
        return element("td", "", kind="h0 open", title=f"{title}, {reason_of(finding.verdict)}")
    kind = shade(times.ratio, finding.margin) + ("" if _has_size(finding) else " open")
    shown = f"{times.ratio:.2f}" if times.ratio < 9.995 else format_ratio(times.ratio)
    title = f"{title}, {wording.estimate(times)}"
    return element("td", shown, kind=kind, title=title)


def shade(ratio: float, margin: float) -> str:
    """Return the CSS class of the colour of a cell with this ratio: "s1" to "s3", "f2", "h0"."""
    at = place(ratio, margin)
    step = sum(abs(at) >= one for one in STEPS)
    return f"{'s' if at > 0 else 'f'}{step}" if step else "h0"
