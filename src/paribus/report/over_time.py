"""A picture of the effect of one arm in one benchmark over several studies, as SVG."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from paribus.core import Comparison
from paribus.report import wording
from paribus.report.axes import log_ticks, padded
from paribus.report.markup import Html, attribute, escape

LANE = 84
LEFT, RIGHT = 7.0, 98.0
"""Percent of the width between which studies are drawn."""

ROOM = 100
"""Characters of names that fit below a picture."""

MOST = 1e4
"""The largest ratio that is drawn."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A study in the picture."""

    at: float  # when it began
    times: Comparison  # how many times as slow the arm was
    kind: str  # the CSS class of its colour
    reported: str  # a sentence on it
    link: str = ""  # its page, if any


Level = tuple[float, float, float]
"""Begin and end of a time, and how many times as slow the arm was in it."""


def picture(
    label: str,
    marks: Sequence[Mark],
    ends: tuple[float, float],
    levels: Sequence[Level] = (),
    changes: Sequence[tuple[float, str]] = (),
    names: Sequence[str] = (),
) -> Html:
    """Return the marks of studies between the times `ends`, connected by lines.

    If there are `levels`, these are drawn instead of the connecting lines. `changes` are vertical
    lines (time and text). `names` label the places 0, 1, 2, ... in place of days.
    """
    sides = [1.0]
    for one in marks:
        around = (one.times.low, one.times.ratio, one.times.high)
        sides += [end for end in around if 1 / MOST < end < MOST]
    low, high = padded(min(sides), max(sides))
    room = max(ends[1] - ends[0], 1.0)

    def across(at: float) -> str:
        return f"{LEFT + (RIGHT - LEFT) * (0.02 + 0.96 * (at - ends[0]) / room):.2f}%"

    def up(ratio: float) -> str:
        inside = min(high, max(low, ratio))
        return f"{2 + (LANE - 4) * math.log(high / inside) / math.log(high / low):.1f}"

    below = _places(names, across) if names else _days(ends, across)
    drawn = [*_ticks(low, high, up), *below]
    for at, text in changes:
        x = across(at)
        title = f"<title>{escape(text)}</title>"
        drawn.append(f'<line class="change" x1="{x}" x2="{x}" y1="0" y2="{LANE}">{title}</line>')
    lines = [(a, b, up(ratio), up(ratio)) for a, b, ratio in levels]
    if not levels:
        lines = [(a.at, b.at, up(a.times.ratio), up(b.times.ratio)) for a, b in pairwise(marks)]
    for begin, end, y1, y2 in lines:
        place = f'x1="{across(begin)}" y1="{y1}" x2="{across(end)}" y2="{y2}"'
        drawn.append(f'<line class="{"level" if levels else "pair"}" {place}/>')
    drawn += [_mark(one, across(one.at), up) for one in marks]
    said = f'class="strip" width="100%" height="{LANE + 20}" role="group"'
    return Html(f'<svg {said} aria-label="{attribute(label)}">{"".join(drawn)}</svg>')


def _mark(one: Mark, x: str, up: Callable[[float], str]) -> str:
    mark = f"<title>{escape(one.reported)}</title>"
    if wording.has_interval(one.times):
        y1, y2 = up(one.times.low), up(one.times.high)
        mark += f'<line class="{one.kind}" x1="{x}" x2="{x}" y1="{y1}" y2="{y2}"/>'
    mark += f'<circle class="{one.kind}" cx="{x}" cy="{up(one.times.ratio)}" r="5"/>'
    if not one.link:
        return f'<g class="mark">{mark}</g>'
    place = f'href="{attribute(one.link)}" aria-label="{attribute(one.reported)}"'
    return f'<a class="mark" {place}>{mark}</a>'


def _ticks(low: float, high: float, up: Callable[[float], str]) -> Iterator[str]:
    for tick in log_ticks(low, high, most=4):
        kind, y = ("one" if tick == 1 else "usual"), up(tick)
        yield f'<line class="{kind}" x1="{LEFT}%" x2="{RIGHT}%" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 1}%" y="{y}" dy="4" text-anchor="end">{tick:g}</text>'


def _places(names: Sequence[str], across: Callable[[float], str]) -> Iterator[str]:
    """Yield names below their places, as many as there is room for."""
    every = math.ceil(len(names) * max(map(len, names)) / ROOM)
    for n in range(0, len(names), every):
        anchor = "start" if n == 0 else "end" if n == len(names) - 1 else "middle"
        place = f'class="end" x="{across(n)}" y="{LANE + 16}" text-anchor="{anchor}"'
        yield f"<text {place}>{escape(names[n])}</text>"


def _days(ends: tuple[float, float], across: Callable[[float], str]) -> Iterator[str]:
    """Yield the days below a picture: of the first and the last study, and up to two between."""
    first, last = ends
    pattern = "%Y-%m-%d" if last - first > 172_800 else "%m-%d %H:%M"
    parts = 3 if last > first else 1
    for number in range(parts + (last > first)):
        at = first + (last - first) * number / parts
        text = time.strftime(pattern, time.gmtime(at))
        anchor = "start" if number == 0 else "end" if number == parts else "middle"
        kind = "between" if 0 < number < parts else "end"
        place = f'class="{kind}" x="{across(at)}" y="{LANE + 16}" text-anchor="{anchor}"'
        yield f"<text {place}>{text}</text>"
