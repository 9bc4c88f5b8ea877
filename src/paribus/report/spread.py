"""Figures of how launches and samples are distributed, for benchmarks with a notice on that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from paribus.core import (
    Judgement,
    Metric,
    NoticeName,
    Point,
    State,
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
from paribus.report.markup import Html, attribute, element, escape
from paribus.report.wording import clean

SPEAKS = frozenset((NoticeName.TWO_STATES, NoticeName.OUTLYING_LAUNCHES, NoticeName.RATIO_MOVED))
"""Notices on the distribution of launches."""

FEWEST = 4
HEIGHT, RADIUS = 140, 4


def spoken(judgement: Judgement) -> set[str]:
    """Return the benchmarks on whose distribution of launches there is a notice, or a lens."""
    found = {label for n in judgement.notices if n.name in SPEAKS for label in n.benchmarks}
    return found.union(*(lens.spread(judgement, rows) for lens, rows in lenses(judgement)))


def figure(judgement: Judgement, benchmark: str) -> Html:
    """Return a figure of all launches that count, each arm from its fastest to its slowest.

    "" without a notice on `benchmark` (see `spoken`), and with few launches.
    """
    if benchmark not in spoken(judgement):
        return Html("")
    points = [one for one in lookup.launches(judgement) if one.benchmark == benchmark]
    caption = f"Every launch, times as slow as usual for {judgement.reference}"
    return strip(points, track.colours(judgement), track.legend(track.named(judgement)), caption)


def strip(
    points: Sequence[Point],
    colours: Mapping[str, str],
    keys: Html,
    caption: str,
    ringed: Point | None = None,
) -> Html:
    """Return a figure of the levels of launches that count; "" if they are too few or too many.

    `keys` explain the colours; the launch `ringed` is marked.
    """
    arms: dict[str, list[float]] = {}
    for one in filter(counts, points):
        arms.setdefault(clean(one.arm), []).append(one.level or 1.0)
    if not FEWEST <= sum(map(len, arms.values())) <= track.MOST_TITLES:
        return Html("")
    mark = (clean(ringed.arm), ringed.level or 1.0) if ringed and counts(ringed) else None
    below = element("figcaption", keys, escape(f" {caption}"))
    return element("figure", below, picture(arms, colours, mark))


def picture(
    arms: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    mark: tuple[str, float] | None = None,
) -> Html:
    """Return an SVG of the levels of each arm, the slowest on top and right.

    `mark`, an arm and a level, gets a ring.
    """
    levels = [level for of_arm in arms.values() for level in of_arm]
    low, high = padded(min(levels), max(levels))

    def across(level: float) -> str:
        return f"{100 * math.log(level / low) / math.log(high / low):.2f}%"

    drawn = []
    for tick in log_ticks(low, high):
        x = across(tick)
        drawn.append(f'<line class="usual" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"/>')
        drawn.append(f'<text x="{x}" y="{HEIGHT + 16}" text-anchor="middle">{tick:g}</text>')
    for arm, of_arm in arms.items():
        for rank, level in enumerate(sorted(of_arm)):
            y = HEIGHT - RADIUS - (HEIGHT - 2 * RADIUS) * (rank + 0.5) / len(of_arm)
            title = f"<title>{escape(f'{arm}, {format_value(level)} times as slow')}</title>"
            at = f'cx="{across(level)}" cy="{y:.1f}" r="{RADIUS}"'
            drawn.append(f'<circle {at} fill="{colours[arm]}">{title}</circle>')
            if mark == (arm, level):
                drawn.append(f'<circle class="far" cx="{across(level)}" cy="{y:.1f}" r="8"/>')
                mark = None
    label = "; ".join(
        f"{arm}: from {format_value(min(of_arm))} to {format_value(max(of_arm))}"
        for arm, of_arm in arms.items()
    )
    size = f'width="100%" height="{HEIGHT + 22}" role="img" aria-label="{attribute(label)}"'
    return Html(f'<svg class="strip" {size}>{"".join(drawn)}</svg>')


SHARES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p99": 0.99}
"""The share of the samples of a launch that is faster than an endpoint."""


def samples(judgement: Judgement, benchmark: str) -> Spec | None:
    """Return a figure of the distribution of samples in each arm, with a dot for each endpoint.

    None if all endpoints have the same word and there is no notice, or too little is known.
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
    reported = "; ".join(f"{row['arm']}: {row['shown']}" for row in dots)
    shown = layer(dot, place, arms | tooltip(arm="arm", shown="typical launch"))
    layers = [line | {"data": {"values": lines or dots}}, shown | {"data": {"values": dots}}]
    spec = new_spec(title, f"What share of the samples is faster. {reported}")
    return spec | {"height": HEIGHT, "layer": layers}


def counts(point: Point) -> bool:
    """Return whether a launch counts and has a level."""
    counted = point.block != wording.WARM_UP and not point.void
    return counted and point.state is State.OK and bool(point.level)
