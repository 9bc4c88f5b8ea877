"""How the launches of a benchmark are spread, where the words speak of it: states, outliers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from paribus.core import (
    Judgement,
    Metric,
    NoticeName,
    Point,
    Sample,
    State,
    count,
    format_ratio,
    format_value,
    lenses,
)
from paribus.report import lookup, track, wording
from paribus.report.axes import (
    Spec,
    arm_channels,
    layer,
    log_axis,
    log_ticks,
    new_spec,
    padded,
    tooltip,
)
from paribus.report.markup import Html, attribute, element, escape, join, table
from paribus.report.wording import clean
from paribus.stats.summary import launch_median

SPEAKS = frozenset((NoticeName.TWO_STATES, NoticeName.OUTLYING_LAUNCHES, NoticeName.RATIO_MOVED))
"""Notices that say something of how launches are spread."""

FEWEST = 4
HEIGHT, RADIUS = 140, 4


def spoken(judgement: Judgement) -> set[str]:
    """Return the benchmarks of whose spread a notice or a lens speaks."""
    found = {label for n in judgement.notices if n.name in SPEAKS for label in n.benchmarks}
    return found.union(*(lens.spread(judgement, rows) for lens, rows in lenses(judgement)))


def figure(judgement: Judgement, benchmark: str) -> Html:
    """Return how slow all counting launches were, each arm from its fastest to its slowest.

    Nothing where no word speaks of the spread of `benchmark`, or launches are few.
    """
    if benchmark not in spoken(judgement):
        return Html("")
    mine = [one for one in lookup.launches(judgement) if one.benchmark == benchmark]
    caption = f"Every launch, times as slow as usual for {judgement.reference}"
    return _figure(mine, track.colours(judgement), track.legend(track.named(judgement)), caption)


def _figure(
    points: Sequence[Point],
    colours: Mapping[str, str],
    keys: Html,
    caption: str,
    ringed: Point | None = None,
) -> Html:
    """Return how slow those of some launches were that count, nothing of few or of too many."""
    arms: dict[str, list[float]] = {}
    for one in filter(counts, points):
        arms.setdefault(clean(one.arm), []).append(one.level or 1.0)
    if not FEWEST <= sum(map(len, arms.values())) <= track.MOST_TITLES:
        return Html("")
    mark = (clean(ringed.arm), ringed.level or 1.0) if ringed and counts(ringed) else None
    said = element("figcaption", keys, escape(f" {caption}"))
    return element("figure", said, picture(arms, colours, mark))


def picture(
    arms: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    mark: tuple[str, float] | None = None,
) -> Html:
    """Return the levels of each arm, the slowest on top and right; `mark` is one with a ring."""
    levels = [level for mine in arms.values() for level in mine]
    low, high = padded(min(levels), max(levels))

    def across(level: float) -> str:
        return f"{100 * math.log(level / low) / math.log(high / low):.2f}%"

    drawn = []
    for tick in log_ticks(low, high):
        x = across(tick)
        drawn.append(f'<line class="usual" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"/>')
        drawn.append(f'<text x="{x}" y="{HEIGHT + 16}" text-anchor="middle">{tick:g}</text>')
    for arm, mine in arms.items():
        for rank, level in enumerate(sorted(mine)):
            y = HEIGHT - RADIUS - (HEIGHT - 2 * RADIUS) * (rank + 0.5) / len(mine)
            title = f"<title>{escape(f'{arm}, {format_value(level)} times as slow')}</title>"
            at = f'cx="{across(level)}" cy="{y:.1f}" r="{RADIUS}"'
            drawn.append(f'<circle {at} fill="{colours[arm]}">{title}</circle>')
            if mark == (arm, level):
                drawn.append(f'<circle class="far" cx="{across(level)}" cy="{y:.1f}" r="8"/>')
                mark = None
    said = "; ".join(
        f"{arm}: from {format_value(min(mine))} to {format_value(max(mine))}"
        for arm, mine in arms.items()
    )
    size = f'width="100%" height="{HEIGHT + 22}" role="img" aria-label="{attribute(said)}"'
    return Html(f'<svg class="strip" {size}>{"".join(drawn)}</svg>')


SHARES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p99": 0.99}
"""Share of the samples of a launch that are faster than an endpoint."""


def samples(judgement: Judgement, benchmark: str) -> Spec | None:
    """Return what share of the samples is faster than a value in each arm, a dot an endpoint.

    None where no word speaks of it, or where little is known of the samples.
    """
    heads = judgement.of_benchmark(benchmark, judgement.headlines)
    ends = judgement.of_benchmark(benchmark, judgement.endpoints)
    words = {(one.arm, one.verdict.word) for one in (*heads, *ends)}
    if not heads or (len(words) == len(heads) and benchmark not in spoken(judgement)):
        return None
    metric, lines, dots = heads[0].metric, list[Spec](), dict[tuple[str, float], Spec]()
    for one in judgement.distributions:
        values = sorted(value for value in one.values if 0 < value < math.inf)
        for place, value in enumerate(values if one.benchmark == benchmark else ()):
            share = (place + 0.5) / len(values)
            share = share if metric.better == "lower" else 1 - share
            lines.append({"arm": clean(one.arm), "value": value, "share": share})
    for head in (*heads, *ends):
        for arm, known in ((judgement.reference, head.reference_value), (head.arm, head.arm_value)):
            share = SHARES.get(head.metric.endpoint, -1.0)
            if known and share >= 0 and 0 < known.median < math.inf:
                shown = f"{head.metric.endpoint} {wording.value_text(known, metric)}"
                row = {"arm": clean(arm), "value": known.median, "share": share, "shown": shown}
                dots[arm, share] = row
    if not lines and len({share for _, share in dots}) < len(SHARES) - 1:
        return None
    return _shares(judgement, f"{benchmark}: samples", lines, [*dots.values()], metric)


def _shares(
    judgement: Judgement, title: str, lines: list[Spec], dots: list[Spec], metric: Metric
) -> Spec:
    values = [row["value"] for row in (*lines, *dots)]
    x = log_axis("value", min(values), max(values), clean(metric.unit))
    names = ",".join(f"'{share}':'{name}'" for name, share in SHARES.items())
    y = {
        "field": "share",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "axis": {
            "values": [*SHARES.values()],
            "labelExpr": f"{{{names}}}[toString(datum.value)] || 'min'",
            "title": None,
        },
    }
    place, arms = {"x": x, "y": y}, arm_channels(judgement)
    line = layer({"type": "line", "strokeWidth": 2}, place, {"color": arms["color"]})
    dot = {"type": "point", "filled": True, "opacity": 1, "size": 42}
    told = "; ".join(f"{row['arm']}: {row['shown']}" for row in dots)
    shown = layer(dot, place, arms | tooltip(arm="arm", shown="typical launch"))
    layers = [line | {"data": {"values": lines or dots}}, shown | {"data": {"values": dots}}]
    spec = new_spec(title, f"What share of the samples is faster. {told}")
    return spec | {"height": HEIGHT, "layer": layers}


def around(point: Point, points: Sequence[Point], colours: Mapping[str, str]) -> Html:
    """Return the launches of the same benchmark as `picture`, with a ring around one of them."""
    like = [p for p in points if p.benchmark == point.benchmark]
    arms = {clean(p.arm) for p in like}
    keys = track.legend({arm: colour for arm, colour in colours.items() if arm in arms})
    ringed = ", this one ringed" if counts(point) else ""
    said = f"{point.benchmark}: every launch, times as slow as usual for the reference{ringed}"
    return _figure(like, colours, keys, said, point)


def against(point: Point, points: Sequence[Point]) -> str:
    """Return how many times as slow a launch was as the median one of its arm, "" without one."""
    key = (point.benchmark, point.arm)
    like = [p.level for p in points if (p.benchmark, p.arm) == key and counts(p)]
    known = [level for level in like if level]
    if not point.level or not known:
        return ""
    return format_ratio(point.level / launch_median(known))


def counts(point: Point) -> bool:
    """Return whether a launch counts and has a level."""
    counted = point.block != wording.WARM_UP and not point.void
    return counted and point.state is State.OK and bool(point.level)


# --- the samples of one launch ------------------------------------------------------------------

ROW, MOST_ROWS = 34, 24
"""Height in px of a case, and cases that have a row; of a launch with more the first ones."""

MOST_DOTS = 300
"""Samples of a case that have a dot; of more, the lowest and the highest of each stretch."""


def of_launch(samples: Sequence[Sample], metrics: Sequence[Metric]) -> Html:
    """Return a table of the cases of what decides, its samples drawn; nothing without any."""
    if not metrics:
        return Html("")
    merit = metrics[0]
    mine = [one for one in samples if one.metric == (merit.sampled or merit.name)]
    if not mine:
        return Html("")
    several = any(len(one.values) > 1 for one in mine)
    rows = [
        [
            escape(str(one.case) or merit.name),
            escape(" ".join(wording.scaled(launch_median(one.values), merit.unit)).strip()),
            *([escape(f"{len(one.values):,}"), _drawn(one)] if several else []),
        ]
        for one in mine[:MOST_ROWS]
    ]
    more = f", the first {MOST_ROWS} of {count(len(mine), 'case')}" if len(mine) > MOST_ROWS else ""
    caption = f"{merit.name}{', the line is the median' if several else ''}{more}"
    head = ["Case", "Median", "Samples", "In their order"]
    listed = table(head[: len(rows[0])], rows, caption, left=(0, 3))
    return join(element("h2", "Samples"), listed)


def _drawn(one: Sample) -> Html:
    median = launch_median(one.values)
    logs = [math.log(value / median) for value in one.values]
    low, high = min(logs), max(logs)
    room = max(high - low, 0.02)

    def height(level: float) -> float:
        return 4 + (ROW - 8) * (high - level) / room

    drawn = [f'<line class="usual" x1="0" x2="100%" y1="{height(0):.1f}" y2="{height(0):.1f}"/>']
    for place in _kept(logs):
        x = 1 + 98 * (place + 0.5) / len(logs)
        drawn.append(f'<circle cx="{x:.2f}%" cy="{height(logs[place]):.1f}" r="2"/>')
    said = f"{count(len(logs), 'sample')}, {math.exp(low):.3g} to {math.exp(high):.3g} medians"
    shown = f'class="track samples" width="100%" height="{ROW}" role="img"'
    title = f"<title>{escape(said)}</title>"
    return Html(f'<svg {shown} aria-label="{attribute(said)}">{title}{"".join(drawn)}</svg>')


def _kept(values: Sequence[float]) -> list[int]:
    """Return the places of the values that are drawn: all, or two extremes of each stretch."""
    if len(values) <= MOST_DOTS:
        return list(range(len(values)))
    step = math.ceil(2 * len(values) / MOST_DOTS)
    kept: set[int] = set()
    for begin in range(0, len(values), step):
        places = range(begin, min(begin + step, len(values)))
        kept |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return sorted(kept)
