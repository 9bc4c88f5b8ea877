"""How the launches of a benchmark are spread, where the words speak of it: states, outliers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
