"""The time line: every launch of a study on one axis, in a lane for each benchmark, as SVG."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, pairwise

from paribus.core import Judgement, Point, State, count, format_ratio, format_value
from paribus.report import lookup, wording
from paribus.report.axes import COLOURS, arm_names
from paribus.report.markup import Html, attribute, element, escape, join
from paribus.report.wording import clean
from paribus.words.values import flag_of

MOST_POINTS = 6_000
"""The most launches that are drawn on a time axis: a page could not show more."""

LANE, HEAD, STRIP, FOOT, KEYS = 30, 19, 12, 34, 18
"""Heights in px: a lane, the name above it, the strip below all, the axis, the legend on top."""

PAGE = 900
SHORTEST, NEAR = 3.0, 0.025
"""The least height in px of a bar, and the least log ratio at the edges of a lane."""

WIDEST = 5.0
"""The greatest width in px of a bar: with many launches it is narrower."""

MOST_TITLES = 1_500
"""The most launches of which each has a title, shown when it is pointed at."""


MARKS = {
    "line": '<path d="M0 6h12" stroke="currentColor"/>',
    "dashed": '<path d="M6 0v12" stroke="currentColor" stroke-width="6" stroke-dasharray="3 2"/>',
    "circle": '<circle cx="6" cy="6" r="3" fill="none" stroke="currentColor"/>',
    "cross": '<path d="M2 2l8 8M2 10l8-8" stroke="#d0432f" stroke-width="1.5"/>',
    "ring": '<circle cx="6" cy="6" r="5" fill="none" stroke="#d0432f" stroke-width="1.5"/>',
}
"""The marks of a time line beside its bars, each drawn 12 by 12 for the key."""


def caption(judgement: Judgement) -> str:
    """Return in words what each mark means that is in the picture."""
    return "; ".join(f"{mark}: {meaning}" for mark, meaning in _meanings(judgement).items())


def _meanings(judgement: Judgement) -> dict[str, str]:
    every = lookup.launches(judgement)
    meanings = {
        "line": (f"usual for {judgement.reference}", True),
        "dashed": ("not counted", any(p.level and p.block == wording.WARM_UP for p in every)),
        "circle": ("no value", any(p.state is State.OK and not p.level for p in every)),
        "cross": ("failed", any(p.state is not State.OK for p in every)),
        "ring": ("outlier", any(p.outlying for p in every)),
    }
    return {mark: meaning for mark, (meaning, there) in meanings.items() if there}


def legend(colours: Mapping[str, str]) -> Html:
    """Return a legend of colours by name."""
    square = '<rect width="12" height="12" fill="{}"/>'
    return join(*(_key(square.format(colour), name) for name, colour in colours.items()))


def _key(drawn: str, meaning: str) -> Html:
    mark = Html(f'<svg width="12" height="12">{drawn}</svg> ')
    return element("span", mark, escape(meaning), kind="key")


def colours(judgement: Judgement) -> dict[str, str]:
    """Return the colour of each arm by its name, and one for all combinations of two arms."""
    arms = dict(zip(arm_names(judgement), cycle(COLOURS), strict=False))
    launched = {clean(p.arm) for p in (*judgement.points, *judgement.voided)}
    combined = COLOURS[len(arms) % len(COLOURS)]
    return {**dict.fromkeys(sorted(launched - arms.keys()), combined), **arms}


def named(judgement: Judgement) -> dict[str, str]:
    """Return the colours of a legend by name: arms, and combinations of them as one."""
    arms, every = arm_names(judgement), colours(judgement).items()
    found = {name if name in arms else "combinations": colour for name, colour in every}
    return {**{name: found[name] for name in arms}, **found}


def figure(judgement: Judgement, *, linked: bool = False) -> Html:
    """Return the time line with a legend below it; "" without one."""
    shown = picture(judgement, linked=linked)
    keys = (_key(MARKS[mark], meaning) for mark, meaning in _meanings(judgement).items())
    below = element("figcaption", legend(named(judgement)), *keys)
    return element("figure", shown, below) if shown else Html("")


def picture(
    judgement: Judgement, width: str = "100%", *, style: str = "", linked: bool = False
) -> Html:
    """Return the time line as SVG of this width; "" without launches, or with too many.

    Outside a page it needs a `style`, and gets a title and legend. If `linked`, each launch leads
    to its own page, whose name is its number and attempt.
    """
    points = lookup.launches(judgement)
    if not points or len(points) > MOST_POINTS:
        return Html("")
    labels = [b for b in lookup.benchmarks(judgement) if any(p.benchmark == b for p in points)]
    room = float(width) if style else PAGE
    clock = _Clock(points, min(WIDEST, 0.8 * room * len(labels) / len(points)) * room / PAGE)
    clock.linked = linked
    drawn: list[str] = []
    for number, label in enumerate(labels):
        top = number * (LANE + HEAD) + HEAD
        of_lane = [p for p in points if p.benchmark == label]
        levels = [p.level for p in of_lane if p.level]
        around = (format_ratio(end(levels)) for end in (min, max) if len(levels) > 1)
        name = ", ".join(filter(None, (label, " to ".join(around))))
        drawn.append(f'<text x="0" y="{top - 4}">{escape(name)}</text>')
        drawn += _lane(of_lane, top, clock, colours(judgement))
    drawn.append(f'<text x="100%" y="{HEAD - 4}" text-anchor="end">▴ slower</text>')
    bottom = len(labels) * (LANE + HEAD) + 6
    busy = [p for p in points if p.disturbed]
    if busy:
        drawn.append(f'<text x="0" y="{bottom + HEAD - 4}">machine busy</text>')
        bottom += HEAD
        ends = f'y1="{bottom}" y2="{bottom + STRIP}"'
        drawn += [f'<line class="busy" {clock.across(p)} {ends}/>' for p in busy]
        bottom += STRIP
    drawn += _axis(judgement, clock, bottom)
    broken = sum(p.state is not State.OK for p in points)
    reported = (
        f"{count(len(points), 'launch')} over time, {broken} without usable output,"
        f" {len(busy)} disturbed, {sum(bool(p.outlying) for p in points)} far from their like"
    )
    alone, space, below = "", "", 0
    if style:
        title = escape(f"Every launch. {caption(judgement)}")
        alone = f"<title>{title}</title><style>{style}</style>{_legend(judgement)}"
        space, below = ' xmlns="http://www.w3.org/2000/svg"', KEYS
    return Html(
        f'<svg{space} class="track" width="{width}" height="{bottom + FOOT + below}"'
        f' role="{"group" if linked else "img"}"'
        f' aria-label="{attribute(reported)}">{alone}<g stroke-width="{clock.wide:.1f}"'
        f' transform="translate(0 {below})">'
        f"{join(*drawn)}</g></svg>"
    )


def _legend(judgement: Judgement) -> str:
    """Return the colour of each arm as SVG, for a picture without a caption."""
    drawn, x = [], 0.0
    for name, colour in named(judgement).items():
        drawn.append(f'<rect x="{x:.0f}" y="2" width="10" height="10" fill="{colour}"/>')
        drawn.append(f'<text x="{x + 14:.0f}" y="11">{escape(name)}</text>')
        x += 26 + 7 * len(name)
    return "".join(drawn)


class _Clock:
    """The common axis of a picture: places of launches in percent, and the width of bars in px."""

    def __init__(self, points: Sequence[Point], wide: float) -> None:
        self.last = max(points[-1].at_s, 1e-9)
        self.wide = wide
        self.titles = len(points) <= MOST_TITLES
        self.linked = False

    def at(self, seconds: float) -> str:
        return f"{0.5 + 99 * seconds / self.last:.2f}%"

    def leading(self, point: Point, mark: str) -> str:
        """Return the `mark` of a launch, as a link to its page if pages are linked."""
        place = f"{point.number}-{point.attempt}/"
        return f'<a href="{place}" tabindex="-1">{mark}</a>' if self.linked else mark

    def across(self, point: Point) -> str:
        return f'x1="{self.at(point.at_s)}" x2="{self.at(point.at_s)}"'


def _lane(
    points: Sequence[Point], top: int, clock: _Clock, colours: dict[str, str]
) -> Iterator[str]:
    """Yield the SVG of the launches of one benchmark: lines of blocks, bars, and marks."""
    levels = [math.log(p.level) for p in points if p.level]
    low, high = min(-NEAR, *levels, 0.0), max(NEAR, *levels, 0.0)

    def height(level: float) -> float:
        return top + LANE - LANE * (math.log(level) - low) / (high - low)

    usual = height(1)
    yield f'<line class="usual" x1="0" x2="100%" y1="{usual:.1f}" y2="{usual:.1f}"/>'
    blocks: dict[int, list[Point]] = {}
    for point in points:
        if point.level and point.block != wording.WARM_UP:
            blocks.setdefault(point.block, []).append(point)
    for block in blocks.values():
        for one, other in pairwise(block):
            yield (
                f'<line class="pair" x1="{clock.at(one.at_s)}" y1="{height(one.level or 1):.1f}"'
                f' x2="{clock.at(other.at_s)}" y2="{height(other.level or 1):.1f}"/>'
            )
    for point in points:
        title = f"<title>{escape(_reported(point))}</title>" if clock.titles else ""
        x, colour = clock.at(point.at_s), colours[clean(point.arm)]
        if point.state is not State.OK:
            at = f'x="{x}" y="{usual + 5:.1f}" text-anchor="middle"'
            yield clock.leading(point, f'<text class="cross" {at}>×{title}</text>')
            continue
        if not point.level:
            mark = f'<circle class="none" cx="{x}" cy="{usual:.1f}" r="3" stroke="{colour}">'
            yield clock.leading(point, f"{mark}{title}</circle>")
            continue
        y = height(point.level)
        kind = ' class="out"' if point.block == wording.WARM_UP else ""
        far = y if abs(y - usual) >= SHORTEST else usual - SHORTEST
        bar = f'{clock.across(point)} y1="{usual:.1f}" y2="{far:.1f}" stroke="{colour}"'
        yield clock.leading(point, f"<line{kind} {bar}>{title}</line>")
        if point.outlying:
            yield f'<circle class="far" cx="{x}" cy="{y:.1f}" r="5"/>'


def _reported(point: Point) -> str:
    """Return the title of a launch: number, block, arm, level, and what is unusual about it."""
    slow = f"{format_value(point.level)} times as slow" if point.level else point.state.value
    block, void = wording.block_text(point.block), "void" * bool(point.void)
    parts = [f"launch {point.number}", block, point.arm, slow, void]
    return "; ".join(filter(None, (", ".join(filter(None, parts)), flag_of(point))))


def _axis(judgement: Judgement, clock: _Clock, top: int) -> Iterator[str]:
    """Yield the common axis: the time since the start, and the clock at its beginning."""
    _, divisor, unit = next(one for one in UNITS if clock.last <= one[0])
    last = clock.last / divisor
    step = next(s * 10.0**e for e in range(-3, 33) for s in (1, 2, 5) if last / (s * 10.0**e) <= 8)
    yield f'<line class="usual" x1="0" x2="100%" y1="{top + 4}" y2="{top + 4}"/>'
    for number in range(int(last / step) + 1):
        x = clock.at(number * step * divisor)
        inside = "middle" if number * step < 0.95 * last else "end"
        anchor = inside if number else "start"
        yield f'<text x="{x}" y="{top + 17}" text-anchor="{anchor}">{number * step:g} {unit}</text>'
    if judgement.started is not None:
        day = time.strftime("from %Y-%m-%d %H:%M UTC", time.gmtime(judgement.started))
        yield f'<text x="100%" y="{top + 31}" text-anchor="end">{day}</text>'


UNITS = ((300, 1.0, "s"), (7200, 60.0, "min"), (172_800, 3600.0, "h"), (math.inf, 86_400.0, "d"))
"""Units of time: up to how many seconds each is used, how many it has, and its name."""
