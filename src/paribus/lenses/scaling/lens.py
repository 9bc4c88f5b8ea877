"""The efficiencies of a study that scales: in sentences, on a terminal, in HTML and as values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paribus.core import (
    Comparison,
    Finding,
    Judgement,
    Lens,
    Scalar,
    Scaling,
    Seen,
    Word,
    count,
    format_changes,
    percent,
)
from paribus.lenses.scaling.efficiency import Efficiency, efficiencies, reach
from paribus.paper.paper import PaperTable
from paribus.report import export, stored, wording
from paribus.report.axes import UNDECIDED, Spec, arm_channels, layer, new_spec, tooltip
from paribus.report.figures import plain
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape, join, table
from paribus.report.printing import Row, heading, item, print_rows
from paribus.report.wording import clean
from paribus.words.lists import listed
from paribus.words.values import reason_of

if TYPE_CHECKING:
    from rich.console import Console

Rows = tuple[Efficiency, ...]

# --- words -----------------------------------------------------------------------------------

WORDS: Mapping[Word, str] = {Word.FASTER: "better", Word.SLOWER: "worse"}
"""Verdicts on the ratio of two efficiencies in reports; other words stay as they are."""

AGAINST = "efficiency / reference's"


def title(scaling: Scaling) -> str:
    """Return the title of the section: "Strong scaling over hosts"."""
    return f"{scaling.kind.capitalize()} scaling over {scaling.over}"


def meaning(scaling: Scaling) -> str:
    """Return the sentences on what an efficiency is."""
    each = scaling.over[:-1]
    same = "at each size" if scaling.kind == "strong" else f"for each {each}"
    return (
        f"Efficiency: the speed per {each} over that at the smallest size, in %; 100 is ideal."
        f" {scaling.kind.capitalize()}: the same problem {same}."
    )


def share(comparison: Comparison | None) -> str:
    """Return an efficiency with its interval, in per cent: "88.1 [86.2, 90.3]".

    >>> share(Comparison(8, 0.5, 0.45, 0.561, 0.95)), share(None)
    ('50.0 [45.0, 56.1]', 'none')
    """
    if comparison is None:
        return "none"
    ratio, low, high = (f"{100 * x:.1f}" for x in _ends(comparison))
    if comparison.low <= 0 and comparison.high == math.inf:
        return f"{ratio} [no interval yet]"
    return f"{ratio} [{low}, {high}]"


def _ends(comparison: Comparison) -> tuple[float, float, float]:
    return comparison.ratio, comparison.low, comparison.high


def reach_text(
    arm: str, scaling: Scaling, *, up_to: int, below: int, undecided: int, flat: int
) -> str:
    """Return how far an arm scales; the sizes are those of efficiency.Reach."""
    if not up_to:
        return f"{arm}: no data at the smallest size, so no efficiency"
    bound, noun = percent(scaling.bound), scaling.over[:-1]
    text = f"{arm}: efficiency above {bound} up to {count(up_to, noun)}"
    text += f", below it at {below}" * bool(below)
    text += f", undecided at {undecided}" * bool(undecided)
    return text + f"; no faster at {flat} than at the size before" * bool(flat)


def per_host(scaling: Scaling, first: int, last: int, efficiency: Comparison | None) -> str:
    """Return how much faster a host, or rank, is at the first size than at the last, or ""."""
    if efficiency is None or not 0 < efficiency.low <= efficiency.high < math.inf:
        return ""
    middle, high, low = format_changes([1 / one for one in _ends(efficiency)])
    noun = scaling.over[:-1]
    return f"; speed per {noun} at {first} against {last}: {middle} [{low}, {high}]"


def why(against: Finding) -> str:
    """Return why there is no verdict on an arm against the reference, "" where there is one."""
    if against.verdict.word in (*WORDS, Word.EQUIVALENT):
        return ""
    if against.verdict.word is Word.UNDECIDED and against.comparison:
        return f"The interval does not decide against the margin of {percent(against.margin)}."
    return f"{reason_of(against.verdict)}."


IDEAL = 1.0
ONCE: Spec = {"values": [{}]}
"""The data of a mark that is drawn once, not for each row."""


def methods(judgement: Judgement, rows: Rows) -> str:
    """Return how the sizes of a study that scales were measured."""
    sizes = sorted({one.size for one in judgement.study.benchmarks})
    return (
        f"The benchmarks have sizes, {listed(list(map(str, sizes)), last=' and ')}"
        f" {_asked(judgement).over}, and those of one benchmark went on together. The efficiency at"
        " a size is the speed over the ideal one, estimated as a ratio from launches of the same"
        " block at that size and at the smallest."
    )


def _asked(judgement: Judgement) -> Scaling:
    """Return how the study scales: one with rows of this lens does."""
    assert judgement.study.scaling is not None
    return judgement.study.scaling


def _benchmarks(rows: Rows) -> tuple[str, ...]:
    """Return the benchmarks that scale, in the order of the study."""
    return tuple(dict.fromkeys(one.benchmark for one in rows))


def _of(rows: Rows, benchmark: str, arm: str) -> list[Efficiency]:
    """Return the sizes of a benchmark in one arm, the smallest first."""
    return [one for one in rows if (one.benchmark, one.arm) == (benchmark, arm)]


def _sentences(judgement: Judgement, rows: Rows, benchmark: str) -> list[str]:
    """Return how far each arm scales in a benchmark, and its speed per host."""
    scaling, found = _asked(judgement), []
    for arm in judgement.study.arms:
        mine = _of(rows, benchmark, arm.name)
        text = reach_text(arm.name, scaling, **reach(mine, scaling.bound)._asdict())
        text += per_host(scaling, mine[0].size, mine[-1].size, mine[-1].efficiency)
        found.append(clean(f"{text}."))
    return found


def _against(row: Efficiency) -> tuple[str, str]:
    """Return the ratio of an efficiency to the reference's, and the word on it."""
    if row.against is None:
        return "", ""
    word = row.against.verdict.word
    known = row.against.comparison if row.against.verdict.size_known else None
    return wording.estimate(known) if known else "none", WORDS.get(word, word.value)


def _share(row: Efficiency, first: int) -> str:
    return "100" if row.size == first and row.value else share(row.efficiency)


# --- terminal and HTML -------------------------------------------------------------------------


def print_scaling(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print the efficiencies of every arm, beside those of the reference, and how far each goes."""
    scaling = _asked(judgement)
    heading(console, title(scaling))
    item(console, meaning(scaling), style="dim")
    for arm in judgement.study.arms[1:]:
        lines: list[Row] = []
        for label in _benchmarks(rows):
            theirs = _of(rows, label, judgement.reference)
            mine = _of(rows, label, arm.name)
            lines.append(Row([label]))
            for one, other in zip(theirs, mine, strict=True):
                shares = [_share(row, theirs[0].size) for row in (one, other)]
                lines.append(Row([f"  {one.size}", *shares, *_against(other)], "bold"))
        head = [scaling.over, judgement.reference, arm.name, "ratio [interval]", "scales"]
        print_rows(console, head, lines, right=(), coloured=(4,), indent=2)
    for label in _benchmarks(rows):
        for text in _sentences(judgement, rows, label):
            item(console, text, name=label)


def html_section(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    """Return the section of the HTML report: a picture, a table and sentences each."""
    asked = _asked(judgement)
    parts = [element("h2", escape(title(asked))), element("p", escape(meaning(asked)))]
    for label in _benchmarks(rows):
        caption = f"{clean(label)}: efficiency by {asked.over}; whiskers: intervals; line: ideal"
        if (drawn := figure(judgement, rows, label)) is not None:
            parts.append(element("div", figures.add(drawn, caption), kind="figures"))
        parts.append(_html_parts(judgement, rows, label))
    return element("section", *parts, aria_label="Scaling")


def _html_parts(judgement: Judgement, rows: Rows, benchmark: str) -> Html:
    """Return the table and the sentences of one benchmark."""
    asked = _asked(judgement)
    head = [asked.over.capitalize(), "Arm", "Scales", "Value", "Efficiency, % [interval]"]
    mine = [one for one in rows if one.benchmark == benchmark]
    first = min(one.size for one in mine)
    cells = []
    for row in sorted(mine, key=lambda one: one.size):
        ratio, word = _against(row)
        value = wording.value_text(row.value, row.metric)
        texts = (str(row.size), row.arm, word, value, _share(row, first), ratio)
        cells.append([escape(one) for one in texts])
    shown = table(
        [*head, f"Ratio to {judgement.reference}"],
        cells,
        f"{benchmark}: {title(asked).lower()}",
        left=(0, 1, 2),
        fold=True,
    )
    items = [element("li", escape(text)) for text in _sentences(judgement, rows, benchmark)]
    return join(shown, element("ul", *items))


# --- picture -----------------------------------------------------------------------------------


def _figures(judgement: Judgement, rows: Rows) -> Iterator[tuple[str, Spec]]:
    for number, benchmark in enumerate(_benchmarks(rows)):
        if (drawn := figure(judgement, rows, benchmark)) is not None:
            yield f"scaling-{number:02d}-{plain(benchmark)}", drawn


def figure(judgement: Judgement, rows: Rows, benchmark: str) -> Spec | None:
    """Return the efficiency of every arm by size, with intervals, ideal line and bound.

    None where no size has a figure.
    """
    scaling = _asked(judgement)
    points = [r for one in rows if one.benchmark == benchmark for r in _points(one)]
    if not points:
        return None
    sizes = sorted({row["size"] for row in points})
    reported = "; ".join(f"{r['arm']}, {r['size']} {scaling.over}: {r['shown']}" for r in points)
    name = f"{clean(benchmark)}: {title(scaling).lower()}"
    spec = new_spec(name, f"{meaning(scaling)} {reported}")
    room = 1.12
    scale = {"type": "log", "base": 2, "domain": [sizes[0] / room, sizes[-1] * room], "nice": False}
    axis = {"title": scaling.over, "values": sizes, "format": "d", "grid": False}
    x = {"field": "size", "type": "quantitative", "scale": scale, "axis": axis}
    top = max(1.08, *(1.04 * row["high"] for row in points))
    y = {
        "field": "efficiency",
        "type": "quantitative",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"title": "efficiency, %", "labelExpr": "format(100 * datum.value, '.0f')"},
    }
    arms = arm_channels(judgement)
    colour = {"color": arms["color"]}
    tips = tooltip(arm="arm", size=scaling.over, shown="efficiency, %", value="median launch")
    names = [one.name for one in judgement.study.arms]
    layers = [
        _level(y, IDEAL, "ideal", [1, 0]),
        _level(y, scaling.bound, "bound", [4, 3]),
        *_labels(y, ((IDEAL, "ideal"), (scaling.bound, f"{percent(scaling.bound)} of ideal"))),
        layer({"type": "line", "strokeWidth": 1.5}, {"x": x, "y": y}, colour),
    ]
    for index, name in enumerate(names):
        nudge = {"xOffset": 6 * (index - (len(names) - 1) / 2)}
        mine = {"data": {"values": [row for row in points if row["arm"] == clean(name)]}}
        whisker = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        line = {"type": "rule", "strokeWidth": 2, **nudge}
        dot = {"type": "point", "filled": True, "opacity": 1, "size": 30, **nudge}
        layers += [
            layer(line, whisker, colour | tips) | mine,
            layer(dot, {"x": x, "y": y}, arms | tips) | mine,
        ]
    return spec | {"height": 260, "data": {"values": points}, "layer": layers}


def _level(y: Spec, at: float, name: str, dash: list[int]) -> Spec:
    mark = {"type": "rule", "strokeDash": dash, "color": UNDECIDED, "strokeWidth": 1.5}
    datum = {k: v for k, v in y.items() if k != "field"} | {"datum": at}
    return {"mark": mark, "encoding": {"y": datum}, "name": name, "data": ONCE}


def _labels(y: Spec, levels: tuple[tuple[float, str], ...]) -> Iterator[Spec]:
    for at, name in levels:
        mark = {"type": "text", "text": name, "align": "left", "dx": 4, "dy": -6, "fontSize": 11}
        datum = {k: v for k, v in y.items() if k != "field"} | {"datum": at}
        place = {"y": datum, "x": {"value": 0}}
        yield {"mark": {**mark, "color": UNDECIDED}, "encoding": place, "data": ONCE}


def _points(row: Efficiency) -> Iterator[Spec]:
    """Yield the point of an efficiency, none without data; the smallest size is at 100 %."""
    known = row.efficiency
    if row.value is None or (known is None and row.step is not None):
        return
    ratio = known.ratio if known else IDEAL
    if not 0 < ratio < math.inf:
        return
    yield {
        "arm": clean(row.arm),
        "size": row.size,
        "efficiency": ratio,
        "low": known.low if known and known.low > 0 else ratio,
        "high": known.high if known and known.high < math.inf else ratio,
        "shown": share(known) if known else "100",
        "value": wording.value_text(row.value, row.metric),
    }


# --- values ------------------------------------------------------------------------------------


def _paper(judgement: Judgement, rows: Rows) -> list[PaperTable]:
    """Return the table of a paper."""
    scaling = _asked(judgement)
    head = ["benchmark", "arm", scaling.over, "value", "efficiency, % [interval]"]
    caption = f"{title(scaling)}. {meaning(scaling)}"
    made = PaperTable(caption, [*head, AGAINST, "scales"], frozenset((2, 3, 4, 5)))
    for row in rows:
        first = _of(rows, row.benchmark, row.arm)[0].size
        value = wording.value_text(row.value, row.metric)
        ratio, word = _against(row)
        cells = [row.benchmark, row.arm, str(row.size), value, _share(row, first), ratio, word]
        made.add(cells, why(row.against) if row.against else "")
    return [made]


COLUMNS = (
    *("benchmark", "metric", "unit", "better", "arm", "over", "kind", "size", "value"),
    *("efficiency", "efficiency_low", "efficiency_high", "level", "n"),
    *("step", "step_low", "step_high"),
    *("against", "against_low", "against_high", "margin", "verdict", "note"),
)


def _csv(judgement: Judgement, rows: Rows) -> Iterator[Sequence[Scalar | None]]:
    """Yield the efficiencies with all digits, a row for each size, below their names.

    `against` is the efficiency over that of the reference.
    """
    asked = _asked(judgement)
    yield COLUMNS
    for row in rows:
        own, metric = row.against, row.metric
        ratio = own.comparison if own and own.verdict.size_known else None
        verdict = [own.margin, own.verdict.word.value, why(own)] if own else [None] * 3
        yield (
            *(row.benchmark, metric.name, metric.unit, metric.better, row.arm),
            *(asked.over, asked.kind, row.size, export.spread_cells(row.value)[0]),
            *export.comparison_cells(row.efficiency),
            *export.comparison_cells(row.step)[:3],
            *export.comparison_cells(ratio)[:3],
            *verdict,
        )


def to_json(judgement: Judgement, rows: Rows) -> dict[str, Any]:
    """Return the efficiencies, and how far each arm scales in each benchmark (0: no such size)."""
    scaling, reaches = _asked(judgement), []
    for label in _benchmarks(rows):
        for arm in judgement.study.arms:
            far = reach(_of(rows, label, arm.name), scaling.bound)._asdict()
            text = clean(reach_text(arm.name, scaling, **far))
            reaches.append({"benchmark": label, "arm": arm.name, **far, "text": text})
    return {"scaling": [_to_json(judgement, row) for row in rows], "reaches": reaches}


def _to_json(judgement: Judgement, row: Efficiency) -> dict[str, Any]:
    against = row.against and export.finding_json(judgement, row.against)
    return {**export.plain(row), "against": against}


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    """Return the stored efficiencies; raises ValueError if arms have other sizes or benchmarks."""
    study, found = judgement.study, tuple(map(_from_json, table["scaling"]))
    sizes = [[(r.benchmark, r.size) for r in found if r.arm == arm.name] for arm in study.arms]
    whole = len(found) == len(study.arms) * len(sizes[0])
    if found and not (study.scaling and whole and all(one == sizes[0] for one in sizes)):
        raise ValueError("the efficiencies are not of the same sizes in each arm")
    return found or None


def _from_json(table: Mapping[str, Any]) -> Efficiency:
    against = None if table["against"] is None else stored.finding(table["against"], "scaling")
    found: Efficiency = stored.read_as(Efficiency, {**table, "against": against})
    return found


def _judge(seen: Seen) -> Rows | None:
    heads = seen.judgement.headlines
    return efficiencies(seen.plan, seen.evidence, heads, seen.over) or None


LENS = Lens(
    judge=_judge,
    to_json=to_json,
    from_json=from_json,
    text=print_scaling,
    html=html_section,
    text_after="ratios",
    html_after="ratios",
    figures=_figures,
    methods=methods,
    paper=_paper,
    csv=("scaling.csv", _csv),
)
