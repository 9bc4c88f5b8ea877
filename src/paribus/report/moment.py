"""A study that runs, drawn: the blocks of each benchmark up to the looks, and the last launches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from paribus.core import State, count
from paribus.report import track, wording
from paribus.report.markup import Html, attribute, element, escape
from paribus.stats.summary import launch_median

MOST_ROWS = 12
"""Benchmarks with a row of their own; those still measured come first."""

LINEAR = 60
"""Blocks up to which all are drawn equally wide; of more, the early ones are wider."""

APART = 5.0
"""Percent of the width between two looks that both have their number."""

FEWEST = 20
"""Launches for which the strip has room at least."""

HEIGHT, RADIUS = 56, 4
"""Heights in px: the strip of the last launches, and half a dot."""


class Row(NamedTuple):
    """The complete blocks of a benchmark, what is `said` so far, and whether it is measured `now`.

    `kind` is the class of the colour of its verdict, "" while there is none.
    """

    label: str
    done: int
    said: Html
    kind: str
    now: bool


class Dot(NamedTuple):
    """A launch on the strip; `value` is None without one, otherwise a larger one is slower."""

    number: int
    block: int
    benchmark: str
    arm: str
    state: State
    value: float | None


def blocks(rows: Sequence[Row], looks: Sequence[int]) -> Html:
    """Return a bar for each benchmark: its blocks, and the looks that are to come."""
    kept = sorted(rows, key=lambda row: bool(row.kind))[:MOST_ROWS]
    most = looks[-1] if looks else max(1, *(row.done for row in rows))
    places = [(at, _share(at, most)) for at in looks]
    last, numbers = -APART, []
    for at, x in places:
        if x - last >= APART:
            last = x
            anchor = "end" if x > 98 else "middle"
            numbers.append(f'<text x="{x:.1f}%" y="12" text-anchor="{anchor}">{at}</text>')
    ticks = "".join(f'<line x1="{x:.1f}%" x2="{x:.1f}%" y1="0" y2="14"/>' for _, x in places[:-1])
    axis = f'<svg width="100%" height="16" aria-hidden="true">{"".join(numbers)}</svg>'
    head = [
        element("span", "Benchmark"),
        element("span", Html(axis), element("span", "Blocks, with looks", kind="unseen")),
        element("span", "Blocks"),
        element("span", "Times as slow, so far"),
    ]
    drawn = []
    for row in (row for row in rows if row in kept):
        width = f"{_share(row.done, most):.1f}%"
        bar = f'<rect class="whole" width="100%" height="14"/><rect width="{width}" height="14"/>'
        cells = [
            escape(row.label),
            Html(f'<svg width="100%" height="14" aria-hidden="true">{bar}{ticks}</svg>'),
            escape(f"{row.done}/{most}" if looks else f"{row.done}"),
            row.said,
        ]
        spans = [element("span", cell) for cell in cells]
        here = str(row.now).lower()
        drawn.append(element("li", *spans, kind=row.kind or "now", data_now=here))
    rest = len(rows) - len(kept)
    more = [element("li", escape(f"{count(rest, 'more benchmark')}"))] if rest else []
    return element("ul", element("li", *head, kind="head"), *drawn, *more, kind="blocks")


def _share(done: int, most: int) -> float:
    """Return the place of a number of blocks on the bar, in percent."""
    part = min(1.0, done / most)
    return 100 * (part if most <= LINEAR else math.sqrt(part))


def strip(dots: Sequence[Dot], colours: Mapping[str, str], other: str) -> Html:
    """Return the last launches in their order: as slow as usual in the middle, slower above.

    Usual is the reference, the first of `colours`; what is no arm has the colour `other`.
    """
    if not dots:
        return Html("")
    reference = next(iter(colours))
    levels = [_slowness(dot, dots, reference) for dot in dots]
    far = max([0.1, *(abs(one) for one in levels if one is not None)])
    middle = HEIGHT / 2
    drawn = [f'<line class="usual" x1="0" x2="100%" y1="{middle}" y2="{middle}"/>']
    for place, (dot, level) in enumerate(zip(dots, levels, strict=True)):
        x = f"{100 * (place + 0.5) / max(len(dots), FEWEST):.2f}%"
        block = "warm-up" if dot.block == wording.WARM_UP else f"block {dot.block}"
        said = f"launch {dot.number}, {block}, {dot.arm} in {dot.benchmark}"
        if level is None:
            title = f"<title>{escape(f'{said}: {dot.state.value}')}</title>"
            at = f'x="{x}" y="{middle + 5}" text-anchor="middle"'
            drawn.append(f'<text class="cross" {at}>×{title}</text>')
            continue
        y = middle - (middle - RADIUS - 1) * level / far
        title = f"<title>{escape(f'{said}: {math.exp(level):.3g} times as slow as usual')}</title>"
        fill = colours.get(dot.arm, other)
        drawn.append(f'<circle cx="{x}" cy="{y:.1f}" r="{RADIUS}" fill="{fill}">{title}</circle>')
    failed = sum(dot.state is not State.OK for dot in dots)
    number = count(len(dots), "launch")
    label = f"the last {number}, {failed} failed; times as slow as {reference}"
    shown = f'class="track" width="100%" height="{HEIGHT}" role="img"'
    svg = f'<svg {shown} aria-label="{attribute(label)}">{"".join(drawn)}</svg>'
    caption = escape(f" The last {number}: the line is what is usual for {reference}")
    return element("figure", element("figcaption", track.legend(colours), caption), Html(svg))


def _slowness(dot: Dot, dots: Sequence[Dot], reference: str) -> float | None:
    """Return the logarithm of how many times as slow as usual a launch was, None without value.

    Usual is the median of the reference's launches of its benchmark that are shown.
    """
    if dot.value is None:
        return None
    like = [(one.arm, one.value) for one in dots if one.benchmark == dot.benchmark]
    known = [(arm, value) for arm, value in like if value is not None]
    theirs = [value for arm, value in known if arm == reference]
    return math.log(dot.value / launch_median(theirs or [value for _, value in known]))
