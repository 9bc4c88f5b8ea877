"""What figures share: panels, axes, ticks, and the colour and shape of each arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paribus.core import Case, Comparison, Finding, Judgement, Metric, Ratio
from paribus.report import wording
from paribus.report.wording import clean

Spec = dict[str, Any]

COLOURS = ("#7d8794", "#2f7fc1", "#c0589c", "#8f7a1e", "#1f9277", "#c4622d", "#7d6fd0")
SHAPES = ("circle", "diamond", "triangle-up", "square", "triangle-down", "triangle-right", "wedge")
UNDECIDED = "#8a8f98"
FAILED = "#d0432f"
BAND = {"color": UNDECIDED, "opacity": 0.22}


@dataclass(frozen=True, slots=True)
class Panel:
    """The cases of one benchmark that share a figure: one metric, one sweep."""

    benchmark: str
    metric: Metric
    group: str  # the other parameters, if they differ between panels
    key: str | None  # the numeric case parameter on the x axis, if there is one
    cases: tuple[Finding, ...]


SAME_PRODUCT = 0.02
"""Tolerance of the products of two metrics that are inverses: printed figures have few digits."""

OF_SCATTER = 0.1
"""The same as a share of the scatter, as quartiles of few values are interpolated."""


def panels(judgement: Judgement, benchmark: str) -> tuple[Panel, ...]:
    """Return the panels of `benchmark` in the order of its cases: one or more per metric."""
    cases = judgement.of_benchmark(benchmark, judgement.cases)
    made = []
    for metric in dict.fromkeys(f.metric for f in cases):
        rows = [f for f in cases if f.metric == metric]
        key = _axis(rows)
        groups = _groups(rows, key)
        # Such as HPL's P and Q: each figure would have a single point of the sweep.
        if key and all(len({f.case for f in group}) == 1 for group in groups.values()):
            key, groups = None, _groups(rows, None)
        made += [
            Panel(benchmark, metric, name if len(groups) > 1 else "", key, tuple(group))
            for name, group in groups.items()
        ]
    return tuple(made)


def _groups(rows: Sequence[Finding], key: str | None) -> dict[str, list[Finding]]:
    """Return the rows grouped by their case without the parameter `key`; one group without it."""
    groups: dict[str, list[Finding]] = {}
    for row in rows:
        rest = Case(tuple(i for i in (row.case or Case()).items if i[0] != key))
        groups.setdefault(str(rest) if key else "", []).append(row)
    return groups


def drawn(judgement: Judgement, benchmark: str) -> tuple[Panel, ...]:
    """Return the panels of `benchmark` that are drawn: without inverses of earlier metrics."""
    found: list[Panel] = []
    for panel in panels(judgement, benchmark):
        if not any(_restates(panel, one) for one in found):
            found.append(panel)
    return tuple(found)


def _restates(panel: Panel, other: Panel) -> bool:
    """Return whether a panel shows the inverse of `other`: seconds and the rate of the same.

    In each case, the products of the values of both arms, and of their quartiles, are then equal.
    """
    if panel.metric.better == other.metric.better or panel.group != other.group:
        return False
    others = {(f.arm, f.case): f for f in other.cases}
    if {(f.arm, f.case) for f in panel.cases} != others.keys():
        return False
    return all(_inverse(f, others[f.arm, f.case]) for f in panel.cases)


def _inverse(one: Finding, other: Finding) -> bool:
    """Return whether the values of two findings are inverses of each other."""
    products, scatter = [], 0.0
    for a, b in (
        (one.reference_value, other.reference_value),
        (one.arm_value, other.arm_value),
    ):
        if a is None or b is None:
            return False
        products += [a.median * b.median, a.low * b.high, a.high * b.low]
        scatter = max(scatter, a.high / a.low - 1)
    share = max(SAME_PRODUCT, OF_SCATTER * scatter)
    return max(products) <= (1 + share) * min(products)


def _axis(rows: Sequence[Finding]) -> str | None:
    """Return the numeric parameter with the most values, "bytes" before others; None without."""
    values: dict[str, set[float]] = {}
    for row in rows:
        for key, value in (row.case or Case()).items:
            if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
                values.setdefault(key, set()).add(value)
    swept = {k: len(v) for k, v in values.items() if len(v) > 1}
    everywhere = [k for k in swept if all((r.case or Case()).get(k) is not None for r in rows)]
    if "bytes" in everywhere:
        return "bytes"
    return max(everywhere, key=lambda k: swept[k], default=None)


def log_axis(field: str, low: float, high: float, title: Any) -> Spec:
    """Return the channel of figures on a logarithmic axis from `low` to `high`, and some room."""
    domain = padded(low, high)
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False},
        "axis": {"values": log_ticks(*domain), "format": ",~g", "title": title, "titleLimit": 320},
    }


def ratio_axis(rows: Sequence[Spec], title: Sequence[str]) -> Spec:
    """Return the channel of ratios, with 1, the margin and all ends in view."""
    ends = [1.0, *(row[key] for row in rows for key in ("low", "high", "below", "above"))]
    return log_axis("ratio", min(ends), max(ends), [*title])


def times_title(judgement: Judgement) -> tuple[str, str]:
    """Return the two lines of the title of an axis of ratios."""
    return f"times as slow as {clean(judgement.reference)}", "(above 1: slower)"


def ends_of(known: Comparison | Ratio, margin: float) -> Spec:
    """Return the row of a figure for a ratio, interval and margin; an open end is the ratio."""
    below, above = wording.band(margin)
    low = known.low if known.low > 0 else known.ratio
    high = known.high if math.isfinite(known.high) else known.ratio
    return {"ratio": known.ratio, "low": low, "high": high, "below": below, "above": above}


def new_spec(title: str, description: str) -> Spec:
    return {
        "title": clean(title),
        "description": clean(description),
        "padding": {"left": 2, "top": 4, "right": 14, "bottom": 2},
    }


def panel_title(panel: Panel) -> str:
    return clean(f"{panel.benchmark} ({panel.group})" if panel.group else panel.benchmark)


def layer(mark: Spec, position: Spec, channels: Spec) -> Spec:
    return {"mark": mark, "encoding": {**position, **channels}}


def arm_names(judgement: Judgement) -> list[str]:
    return [clean(a.name) for a in judgement.study.arms]


def arm_channels(judgement: Judgement, *, reference: bool = True) -> Spec:
    """Return colour and shape by arm, the same in every figure of a report."""
    names = arm_names(judgement)
    first = 0 if reference else 1
    columns = 4 if max(map(len, names)) <= 8 else 2
    legend = {
        "title": None,
        "orient": "top",
        "labelLimit": 150,
        "columns": columns,
        "symbolOpacity": 1,
    }
    return {
        channel: {
            "field": "arm",
            "type": "nominal",
            "scale": {
                "domain": names[first:],
                "range": [palette[i % len(palette)] for i in range(len(names))][first:],
            },
            "legend": legend,
        }
        for channel, palette in (("color", COLOURS), ("shape", SHAPES))
    }


def tooltip(**fields: str) -> Spec:
    """Return the tooltip channel that shows these fields under these titles."""
    return {
        "tooltip": [{"field": f, "type": "nominal", "title": title} for f, title in fields.items()]
    }


def x_of(panel: Panel, finding: Finding) -> float | None:
    if panel.key is None or finding.case is None:
        return None
    value = finding.case.get(panel.key)
    number = float(value) if isinstance(value, int | float) else 0.0
    return number if number > 0 else _place_of_zero(panel)


def _sweep_values(panel: Panel) -> list[float]:
    found = {f.case.get(panel.key) for f in panel.cases if f.case is not None and panel.key}
    return sorted(float(v) for v in found if isinstance(v, int | float))


def _place_of_zero(panel: Panel) -> float:
    return min((v for v in _sweep_values(panel) if v > 0), default=2) / 2


ROOFLINE = "intensity"
"""The case parameter whose panels are rooflines."""

AXES = {"bytes": "message size", ROOFLINE: "intensity (operations per byte of memory)"}
"""Titles of the axes of case parameters, where these are not their names."""


def sweep_axis(panel: Panel) -> Spec:
    """Return the x axis of a sweep: logarithmic, ticks at measured points, names with units."""
    assert panel.key is not None
    key = panel.key
    names = {(v if v > 0 else _place_of_zero(panel)): v for v in _sweep_values(panel)}
    labels = ",".join(f"'{_digits(p)}':'{wording.tick_label(key, v)}'" for p, v in names.items())
    low, high = min(names), max(names)
    room = max(1.25, (high / low) ** 0.03)
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [low / room, high * room], "nice": False},
        "axis": {
            "title": AXES.get(key, clean(key)),
            "values": list(names),
            "labelExpr": f"{{{labels}}}[toString(datum.value)] || ''",
            "labelOverlap": "greedy",
            "labelSeparation": 6,
            "grid": False,
        },
    }


def _digits(number: float) -> str:
    """Return a number as JavaScript writes it, by which an axis finds its label."""
    return str(int(number)) if number.is_integer() else repr(number)


def padded(low: float, high: float) -> tuple[float, float]:
    """Return (low, high) with room on both sides of a logarithmic axis."""
    low = low or high / 1000  # 0 has no place on such an axis
    room = max((high / low) ** 0.06, 1.004)
    return low / room, high * room


def log_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between `low` and `high`, evenly enough for a logarithmic axis.

    >>> log_ticks(3, 4000)
    [10.0, 100.0, 1000.0]
    >>> log_ticks(0.97, 1.06)
    [0.98, 1.0, 1.02, 1.04, 1.06]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [s * 10.0**e for e in range(first, last + 1) for s in steps]
        inside = [float(f"{t:.12g}") for t in ticks if low <= t <= high]
        if 3 <= len(inside) <= most:
            return inside
        if len(inside) < 3:
            return _even_ticks(low, high, most)
    return inside[:: math.ceil(len(inside) / most)]


def _even_ticks(low: float, high: float, most: int) -> list[float]:
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(s * size for s in (1, 2, 5, 10, 20) if (high - low) / (s * size) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]
