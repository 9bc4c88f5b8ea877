"""How the launches of a benchmark are spread, where the words speak of it: states, outliers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from paribus.core import Judgement, NoticeName, Point, State, format_value
from paribus.report import track, wording
from paribus.report.axes import log_ticks, padded
from paribus.report.markup import Html, attribute, element, escape
from paribus.report.wording import clean
from paribus.stats.summary import launch_median

SPEAKS = frozenset((NoticeName.TWO_STATES, NoticeName.OUTLYING_LAUNCHES, NoticeName.RATIO_MOVED))
"""Notices that say something of how launches are spread."""

FEWEST = 4
HEIGHT, RADIUS = 140, 4


def figure(judgement: Judgement, benchmark: str) -> Html:
    """Return the levels of all counting launches, each arm from its lowest to its highest.

    Nothing where no notice speaks of the spread of `benchmark`, or launches are few.
    """
    spoken = {b for n in judgement.notices if n.name in SPEAKS for b in n.benchmarks}
    arms: dict[str, list[float]] = {}
    for one in judgement.points:
        if benchmark in spoken and one.benchmark == benchmark and counts(one):
            arms.setdefault(clean(one.arm), []).append(one.level or 1.0)
    levels = [level for mine in arms.values() for level in mine]
    if len(levels) < FEWEST or len(levels) > track.MOST_TITLES:
        return Html("")
    caption = " Launches in the order of their level (1: usual for the reference)"
    return element(
        "figure",
        element("figcaption", track.keys(judgement), escape(caption)),
        picture(arms, track.colours(judgement)),
    )


def picture(
    arms: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    mark: tuple[str, float] | None = None,
) -> Html:
    """Return the levels of each arm from the lowest to the highest; `mark` is one with a ring."""
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
            title = f"<title>{escape(f'{arm}, level {format_value(level)}')}</title>"
            at = f'cx="{across(level)}" cy="{y:.1f}" r="{RADIUS}"'
            drawn.append(f'<circle {at} fill="{colours[arm]}">{title}</circle>')
            if mark == (arm, level):
                drawn.append(f'<circle class="far" cx="{across(level)}" cy="{y:.1f}" r="8"/>')
                mark = None
    ends = {arm: (min(mine), max(mine)) for arm, mine in arms.items()}
    said = "; ".join(
        f"{arm}: from {format_value(least)} to {format_value(most)}"
        for arm, (least, most) in ends.items()
    )
    return Html(
        f'<svg class="strip" width="100%" height="{HEIGHT + 22}" role="img"'
        f' aria-label="{attribute(said)}">{"".join(drawn)}</svg>'
    )


SHARES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p99": 0.99}
"""Share of the samples of a launch that are faster than an endpoint."""


def quantiles(judgement: Judgement, benchmark: str) -> Html:
    """Return how the samples of both arms are distributed, by the endpoints that are known.

    Nothing where a benchmark has fewer than three, and where no word speaks of its distribution.
    """
    heads = judgement.of_benchmark(benchmark, judgement.headlines)
    ends = judgement.of_benchmark(benchmark, judgement.endpoints)
    spoken = {b for n in judgement.notices if n.name in SPEAKS for b in n.benchmarks}
    words = {one.verdict.word for one in (*heads, *ends)}
    if benchmark not in spoken and len(words) < 2:
        return Html("")
    arms: dict[str, dict[float, float]] = {}
    for one in (*heads, *ends):
        for arm, value in ((judgement.reference, one.reference_value), (one.arm, one.arm_value)):
            share = SHARES.get(one.metric.endpoint)
            if value and share is not None and 0 < value.median < math.inf:
                arms.setdefault(clean(arm), {})[share] = value.median
    if not arms or max(map(len, arms.values())) < len(SHARES) - 1:
        return Html("")
    unit = heads[0].metric.unit
    caption = escape(f" Samples of a launch ({unit}): how many are faster, from min to p99")
    keys = track.keys(judgement)
    return element("figure", element("figcaption", keys, caption), _steps(arms, judgement))


def _steps(arms: Mapping[str, Mapping[float, float]], judgement: Judgement) -> Html:
    values = [value for mine in arms.values() for value in mine.values()]
    low, high = padded(min(values), max(values))
    colours = track.colours(judgement)

    def across(value: float) -> str:
        return f"{LEFT + (99 - LEFT) * math.log(value / low) / math.log(high / low):.2f}%"

    def up(share: float) -> float:
        return HEIGHT - 4 - (HEIGHT - 8) * share

    drawn = []
    for tick in log_ticks(low, high):
        x = across(tick)
        drawn.append(f'<line class="usual" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"/>')
        drawn.append(f'<text x="{x}" y="{HEIGHT + 16}" text-anchor="middle">{tick:,g}</text>')
    for name, share in SHARES.items():
        drawn.append(f'<text x="0" y="{up(share):.1f}" dy="4">{name}</text>')
    for arm, mine in arms.items():
        points = sorted(mine.items())
        for (a, x1), (b, x2) in pairwise(points):
            ends = f'x1="{across(x1)}" y1="{up(a):.1f}" x2="{across(x2)}" y2="{up(b):.1f}"'
            drawn.append(f'<line stroke="{colours[arm]}" stroke-width="2" {ends}/>')
        for share, value in points:
            title = f"<title>{escape(f'{arm}: {format_value(value)}')}</title>"
            at = f'cx="{across(value)}" cy="{up(share):.1f}" r="{RADIUS}"'
            drawn.append(f'<circle {at} fill="{colours[arm]}">{title}</circle>')
    said = "; ".join(
        f"{arm}: {', '.join(format_value(value) for _, value in sorted(mine.items()))}"
        for arm, mine in arms.items()
    )
    size = f'width="100%" height="{HEIGHT + 22}" role="img" aria-label="{attribute(said)}"'
    return Html(f'<svg class="strip" {size}>{"".join(drawn)}</svg>')


LEFT = 8.0
"""Percent of the width that the names of endpoints take."""


def around(point: Point, points: Sequence[Point], colours: Mapping[str, str]) -> Html:
    """Return the launches of the same benchmark as `picture`, with a ring around one of them."""
    like = [p for p in points if p.benchmark == point.benchmark and counts(p)]
    arms: dict[str, list[float]] = {arm: [] for arm in colours if any(p.arm == arm for p in like)}
    for one in like:
        arms.setdefault(one.arm, []).append(one.level or 1.0)
    if not FEWEST <= len(like) <= track.MOST_TITLES:
        return Html("")
    keys = track.legend({arm: colours[arm] for arm in arms})
    ringed = ", this one ringed" if counts(point) else ""
    caption = escape(f" {point.benchmark}: launches in the order of their level{ringed}")
    mark = (point.arm, point.level) if point.level and counts(point) else None
    return element("figure", element("figcaption", keys, caption), picture(arms, colours, mark))


def against(point: Point, points: Sequence[Point]) -> str:
    """Return the level of a launch in those of the median launch of its arm, "" without one."""
    key = (point.benchmark, point.arm)
    like = [p.level for p in points if (p.benchmark, p.arm) == key and counts(p)]
    known = [level for level in like if level]
    if not point.level or not known:
        return ""
    return wording.ratio_text(point.level / launch_median(known))


def counts(point: Point) -> bool:
    """Return whether a launch counts and has a level."""
    counted = point.block != wording.WARM_UP and not point.void
    return counted and point.state is State.OK and bool(point.level)
