"""How the launches of a benchmark are spread, where the words speak of it: states, outliers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from paribus.core import Judgement, NoticeName, Point, State, format_value, lenses
from paribus.report import track, wording
from paribus.report.axes import log_ticks, padded
from paribus.report.markup import Html, attribute, element, escape
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
    """Return the levels of all counting launches, each arm from its lowest to its highest.

    Nothing where no word speaks of the spread of `benchmark`, or launches are few.
    """
    arms: dict[str, list[float]] = {}
    for one in judgement.points if benchmark in spoken(judgement) else ():
        if one.benchmark == benchmark and counts(one):
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

    drawn = _ticks(low, high, across)
    for arm, mine in arms.items():
        for rank, level in enumerate(sorted(mine)):
            y = HEIGHT - RADIUS - (HEIGHT - 2 * RADIUS) * (rank + 0.5) / len(mine)
            title = f"<title>{escape(f'{arm}, level {format_value(level)}')}</title>"
            at = f'cx="{across(level)}" cy="{y:.1f}" r="{RADIUS}"'
            drawn.append(f'<circle {at} fill="{colours[arm]}">{title}</circle>')
            if mark == (arm, level):
                drawn.append(f'<circle class="far" cx="{across(level)}" cy="{y:.1f}" r="8"/>')
                mark = None
    return _strip(drawn, arms)


SHARES = {"min": 0.0, "p25": 0.25, "median": 0.5, "p99": 0.99}
"""Share of the samples of a launch that are faster than an endpoint."""

LEFT = 8.0
"""Percent of the width that the names of endpoints take."""

WIDE = 1000
"""Width of the area of the lines, in units of its own."""


def samples(judgement: Judgement, benchmark: str) -> Html:
    """Return what share of the samples is faster than a value in each arm, a dot an endpoint.

    Nothing where no word speaks of it, or where little is known of the samples.
    """
    heads = judgement.of_benchmark(benchmark, judgement.headlines)
    ends = judgement.of_benchmark(benchmark, judgement.endpoints)
    words = {(one.arm, one.verdict.word) for one in (*heads, *ends)}
    if len(words) == len(heads) and benchmark not in spoken(judgement):
        return Html("")
    colours, dots = track.colours(judgement), dict[str, dict[float, float]]()
    for one in (*heads, *ends):
        for arm, value in ((judgement.reference, one.reference_value), (one.arm, one.arm_value)):
            share = SHARES.get(one.metric.endpoint)
            if value and share is not None and 0 < value.median < math.inf:
                dots.setdefault(clean(arm), {})[share] = value.median
    lines = {
        clean(one.arm): values
        for one in judgement.distributions
        if one.benchmark == benchmark
        and clean(one.arm) in colours
        and (values := sorted(value for value in one.values if 0 < value < math.inf))
    }
    if not heads or not (lines or max(map(len, dots.values()), default=0) > len(SHARES) - 2):
        return Html("")
    metric, typical = heads[0].metric, "; dots: a typical launch" if lines else ""
    caption = f" Samples ({metric.unit}): what share is faster, from the least to the p99{typical}"
    drawn = _shares(lines, dots, colours, rising=metric.better == "lower")
    return element("figure", element("figcaption", track.keys(judgement), escape(caption)), drawn)


def _shares(
    lines: Mapping[str, Sequence[float]],
    dots: Mapping[str, Mapping[float, float]],
    colours: Mapping[str, str],
    *,
    rising: bool,
) -> Html:
    told = {a: [*lines.get(a, ()), *dots.get(a, {}).values()] for a in {**dots, **lines}}
    low, high = padded(min(map(min, told.values())), max(map(max, told.values())))

    def at(value: float) -> float:
        return math.log(value / low) / math.log(high / low)

    def across(value: float) -> str:
        return f"{LEFT + (99 - LEFT) * at(value):.2f}%"

    def up(share: float) -> float:
        return HEIGHT - 4 - (HEIGHT - 8) * share

    drawn = _ticks(low, high, across)
    for name, share in SHARES.items():
        drawn.append(f'<text x="0" y="{up(share):.1f}" dy="4">{name}</text>')
    area = f'x="{LEFT}%" width="{99 - LEFT}%" height="{HEIGHT}" viewBox="0 0 {WIDE} {HEIGHT}"'
    drawn.append(f'<svg {area} preserveAspectRatio="none">')
    for arm, several in lines.items():
        path, n = f"M0 {up(0 if rising else 1):.1f}", len(several)
        for place, value in enumerate(several, 1):
            path += f"H{WIDE * at(value):.0f}V{up(place / n if rising else 1 - place / n):.1f}"
        drawn.append(f'<path d="{path}H{WIDE}" stroke="{colours[arm]}"/>')
    drawn.append("</svg>")
    for arm, mine in dots.items():
        for share, value in mine.items():
            title = f"<title>{escape(f'{arm}: {format_value(value)}')}</title>"
            place = f'cx="{across(value)}" cy="{up(share):.1f}" r="{RADIUS}"'
            drawn.append(f'<circle {place} fill="{colours[arm]}">{title}</circle>')
    return _strip(drawn, told)


def _ticks(low: float, high: float, across: Callable[[float], str]) -> list[str]:
    drawn = []
    for tick in log_ticks(low, high):
        x = across(tick)
        drawn.append(f'<line class="usual" x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}"/>')
        drawn.append(f'<text x="{x}" y="{HEIGHT + 16}" text-anchor="middle">{tick:,g}</text>')
    return drawn


def _strip(drawn: Sequence[str], values: Mapping[str, Collection[float]]) -> Html:
    """Return the picture, which says to who cannot see it from where to where each arm goes."""
    said = "; ".join(
        f"{arm}: from {format_value(min(mine))} to {format_value(max(mine))}"
        for arm, mine in values.items()
    )
    size = f'width="100%" height="{HEIGHT + 22}" role="img" aria-label="{attribute(said)}"'
    return Html(f'<svg class="strip" {size}>{"".join(drawn)}</svg>')


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
