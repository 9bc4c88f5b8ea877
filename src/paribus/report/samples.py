"""The samples of one launch in the order in which they were taken, a row a case."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paribus.core import Metric, Sample, count
from paribus.report import wording
from paribus.report.markup import Html, attribute, element, escape, join, table
from paribus.stats.summary import launch_median

MOST_ROWS = 24
"""Cases that have a row; of a launch with more the first ones."""

MOST_DOTS = 300
"""Samples of a case that have a dot; of more, the lowest and the highest of each stretch."""

HEIGHT = 34


def figure(samples: Sequence[Sample], metrics: Sequence[Metric]) -> Html:
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
        return 4 + (HEIGHT - 8) * (high - level) / room

    drawn = [f'<line class="usual" x1="0" x2="100%" y1="{height(0):.1f}" y2="{height(0):.1f}"/>']
    for place in _kept(logs):
        x = 1 + 98 * (place + 0.5) / len(logs)
        drawn.append(f'<circle cx="{x:.2f}%" cy="{height(logs[place]):.1f}" r="2"/>')
    said = f"{count(len(logs), 'sample')}, {math.exp(low):.3g} to {math.exp(high):.3g} medians"
    shown = f'class="track samples" width="100%" height="{HEIGHT}" role="img"'
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
