"""The efficiencies of a study that scales: on a terminal, in HTML, drawn, and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from paribus.core import Efficiency, Judgement, Scaling, percent
from paribus.report import wording
from paribus.report.axes import UNDECIDED, Spec, arm_channels, layer, new_spec, tooltip
from paribus.report.markup import Html, element, escape, join, table
from paribus.report.printing import Row, heading, item, print_rows
from paribus.report.wording import clean
from paribus.stats.scaling import reach
from paribus.words import scaling as words

if TYPE_CHECKING:
    from rich.console import Console

    from paribus.paper.paper import PaperTable

IDEAL = 1.0
ONCE: Spec = {"values": [{}]}
"""Data of a mark that is drawn once, and not for each row."""


def benchmarks(judgement: Judgement) -> tuple[str, ...]:
    """Return the benchmarks that scale, in the order of the study."""
    return tuple(dict.fromkeys(one.benchmark for one in judgement.scaling))


def rows_of(judgement: Judgement, benchmark: str, arm: str) -> list[Efficiency]:
    """Return the sizes of a benchmark in one arm, the smallest first."""
    return [one for one in judgement.scaling if (one.benchmark, one.arm) == (benchmark, arm)]


def sentences(judgement: Judgement, benchmark: str) -> list[str]:
    """Return how far each arm scales in a benchmark, and its speed per host."""
    scaling, found = judgement.study.scaling, []
    for arm in judgement.study.arms if scaling else ():
        assert scaling is not None
        rows = rows_of(judgement, benchmark, arm.name)
        said = words.reaches(arm.name, scaling, **reach(rows, scaling.bound)._asdict())
        said += words.per_host(scaling, rows[0].size, rows[-1].size, rows[-1].efficiency)
        found.append(clean(f"{said}."))
    return found


def reaches(judgement: Judgement) -> list[dict[str, Any]]:
    """Return as JSON values how far each arm scales in each benchmark; 0: no such size."""
    scaling = judgement.study.scaling
    found = []
    for label in benchmarks(judgement) if scaling else ():
        assert scaling is not None
        for arm in judgement.study.arms:
            far = reach(rows_of(judgement, label, arm.name), scaling.bound)._asdict()
            text = clean(words.reaches(arm.name, scaling, **far))
            found.append({"benchmark": label, "arm": arm.name, **far, "text": text})
    return found


def _against(row: Efficiency) -> tuple[str, str]:
    """Return the ratio of an efficiency to the reference's, and the word on it."""
    if row.against is None:
        return "", ""
    word = row.against.verdict.word
    return wording.estimate_text(row.against), words.WORDS.get(word, word.value)


def _share(row: Efficiency, first: int) -> str:
    return "100" if row.size == first and row.value else words.share(row.efficiency)


# --- terminal ----------------------------------------------------------------------------------


def print_scaling(judgement: Judgement, console: Console) -> None:
    """Print the efficiencies of every arm, beside those of the reference, and how far each goes."""
    scaling = judgement.study.scaling
    if scaling is None or not judgement.scaling:
        return
    heading(console, words.title(scaling))
    item(console, words.meaning(scaling), style="dim")
    for arm in judgement.study.arms[1:]:
        lines: list[Row] = []
        for label in benchmarks(judgement):
            theirs = rows_of(judgement, label, judgement.reference)
            mine = rows_of(judgement, label, arm.name)
            lines.append(Row([label]))
            for one, other in zip(theirs, mine, strict=True):
                shares = [_share(row, theirs[0].size) for row in (one, other)]
                lines.append(Row([f"  {one.size}", *shares, *_against(other)], "bold"))
        head = [scaling.over, judgement.reference, arm.name, "ratio [interval]", "scales"]
        print_rows(console, head, lines, right=(), verdict=4, indent=2)
    for label in benchmarks(judgement):
        for text in sentences(judgement, label):
            item(console, text, name=label)


# --- HTML --------------------------------------------------------------------------------------


def caption(scaling: Scaling, benchmark: str) -> str:
    return f"{clean(benchmark)}: efficiency by {scaling.over}; whiskers: intervals; line: ideal"


def html_parts(judgement: Judgement, benchmark: str) -> Html:
    """Return the table and the sentences of one benchmark."""
    scaling = judgement.study.scaling
    assert scaling is not None
    head = [scaling.over.capitalize(), "Arm", "Scales", "Value", "Efficiency, % [interval]"]
    cells = [[escape(one) for one in row] for row in _cells(judgement, benchmark)]
    found = [
        table(
            [*head, f"Ratio to {judgement.reference}"],
            cells,
            f"{benchmark}: {words.title(scaling).lower()}",
            left=(0, 1, 2),
            fold=True,
        )
    ]
    said = [element("li", escape(text)) for text in sentences(judgement, benchmark)]
    return join(*found, element("ul", *said))


def _cells(judgement: Judgement, benchmark: str) -> Iterator[list[str]]:
    rows = [one for one in judgement.scaling if one.benchmark == benchmark]
    first = min(one.size for one in rows)
    for row in sorted(rows, key=lambda one: one.size):
        ratio, word = _against(row)
        value = wording.value_text(row.value, row.metric)
        yield [str(row.size), row.arm, word, value, _share(row, first), ratio]


# --- picture -----------------------------------------------------------------------------------


def figure(judgement: Judgement, benchmark: str) -> Spec:
    """Return the efficiency of every arm by size, with intervals, ideal line and bound."""
    scaling = judgement.study.scaling
    assert scaling is not None
    rows = [r for one in judgement.scaling if one.benchmark == benchmark for r in _points(one)]
    sizes = sorted({row["size"] for row in rows})
    told = "; ".join(f"{r['arm']}, {r['size']} {scaling.over}: {r['shown']}" for r in rows)
    title = f"{clean(benchmark)}: {words.title(scaling).lower()}"
    spec = new_spec(title, f"{words.meaning(scaling)} {told}")
    room = 1.12
    scale = {"type": "log", "base": 2, "domain": [sizes[0] / room, sizes[-1] * room], "nice": False}
    axis = {"title": scaling.over, "values": sizes, "format": "d", "grid": False}
    x = {"field": "size", "type": "quantitative", "scale": scale, "axis": axis}
    top = max(1.08, *(1.04 * row["high"] for row in rows))
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
        mine = {"data": {"values": [row for row in rows if row["arm"] == clean(name)]}}
        whisker = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        line = {"type": "rule", "strokeWidth": 2, **nudge}
        dot = {"type": "point", "filled": True, "opacity": 1, "size": 30, **nudge}
        layers += [
            layer(line, whisker, colour | tips) | mine,
            layer(dot, {"x": x, "y": y}, arms | tips) | mine,
        ]
    return spec | {"height": 260, "data": {"values": rows}, "layer": layers}


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
    """Yield what is drawn of an efficiency: the smallest size is ideal by definition."""
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
        "shown": words.share(known) if known else "100",
        "value": wording.value_text(row.value, row.metric),
    }


# --- tables ------------------------------------------------------------------------------------


def paper_table(judgement: Judgement) -> list[PaperTable]:
    """Return the table of a paper, none for a study that does not scale."""
    from paribus.paper.paper import PaperTable

    scaling = judgement.study.scaling
    if scaling is None or not judgement.scaling:
        return []
    head = ["benchmark", "arm", scaling.over, "value", "efficiency, % [interval]"]
    title = f"{words.title(scaling)}. {words.meaning(scaling)}"
    made = PaperTable(title, [*head, words.AGAINST, "scales"], frozenset((2, 3, 4, 5)))
    for row in judgement.scaling:
        first = rows_of(judgement, row.benchmark, row.arm)[0].size
        value = wording.value_text(row.value, row.metric)
        ratio, word = _against(row)
        cells = [row.benchmark, row.arm, str(row.size), value, _share(row, first), ratio, word]
        made.add(cells, words.why(row.against) if row.against else "")
    return [made]
