"""Studies of one question over time: a row a benchmark, in it a mark a study."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from paribus.core import Comparison, count
from paribus.report import wording
from paribus.report.axes import log_ticks, padded
from paribus.report.markup import Html, attribute, element, escape, join
from paribus.store import Effect
from paribus.web.overview import kind_of, text_of, times
from paribus.web.summaries import Summary, when

LANE = 84
LEFT, RIGHT = 7.0, 98.0
"""Percent of the width between which studies stand."""

MOST = 1e4
"""Times as slow at which a picture ends."""

Shown = tuple[Summary, Effect, Comparison]


def like(one: Summary, every: Sequence[Summary]) -> list[Summary]:
    """Return the studies of the question of `one`, itself included, the oldest first.

    Of copies one is taken.
    """
    same = (one.question, one.factor, one.arms[:1])
    found = {
        other.copy or other.found.ident: other
        for other in every
        if (other.question, other.factor, other.arms[:1]) == same and other.started is not None
    }
    return sorted(found.values(), key=lambda other: other.started or 0.0)


def page(studies: Sequence[Summary]) -> Html:
    """Return the page of studies of one question, the oldest first."""
    first = studies[0]
    rows: dict[tuple[str, str], list[Shown]] = {}
    for study in studies:
        for effect in study.effects:
            size = times(effect)
            if size is not None:
                rows.setdefault((effect.benchmark, effect.arm), []).append((study, effect, size))
    several = len({arm for _, arm in rows}) > 1
    ends = [one.started or 0.0 for one in studies]
    said = f"{count(len(studies), 'study')} from {_day(ends[0])} to {_day(ends[-1])}"
    lines = [_row(name, shown, ends, several=several) for name, shown in rows.items()]
    heads = ("Benchmark", f"Times as slow as {first.arms[0]}", "First", "Last")
    table = element(
        "table",
        element("caption", "The effect of every study, with its interval", kind="unseen"),
        element("thead", element("tr", *(element("th", escape(h), scope="col") for h in heads))),
        element("tbody", *lines),
        kind="trend",
    )
    few = "One study has asked this so far: a trend needs two." if len(studies) < 2 else ""
    none = "" if rows else "No study has an effect with a size yet."
    return join(
        element("p", escape(first.question), kind="question"),
        element("h1", escape(said if len(studies) > 1 else "No trend yet")),
        *(element("p", escape(text)) for text in (few, none) if text),
        table if rows else Html(""),
        _compare(studies) if len(studies) > 1 else Html(""),
    )


def _compare(studies: Sequence[Summary]) -> Html:
    last = [one for one in studies if one.found.measured][-2:]
    if len(last) < 2:
        return Html("")
    place = "&".join(f"of={one.found.ident}" for one in last)
    said = f"Compare {last[0].found.name} with {last[1].found.name}"
    return element("p", element("a", escape(said), href=f"../compare/?{place}"))


def _row(
    name: tuple[str, str], shown: Sequence[Shown], ends: Sequence[float], *, several: bool
) -> Html:
    arm = [element("small", escape(name[1]))] if several else []
    first, last = (
        join(
            element("b", escape(wording.ratio_text(size.ratio))),
            element("small", escape(wording.interval_text(size))) if _known(size) else Html(""),
        )
        for _, _, size in (shown[0], shown[-1])
    )
    return element(
        "tr",
        element("th", escape(name[0]), *arm, scope="row"),
        element("td", _picture(name, shown, ends), kind="over"),
        element("td", first, kind="number"),
        element("td", last, kind="number"),
    )


def _known(size: Comparison) -> bool:
    return wording.has_interval(size)


def _picture(name: tuple[str, str], shown: Sequence[Shown], ends: Sequence[float]) -> Html:
    """Return the effects of one arm in one benchmark over the time of all studies."""
    sides = [1.0]
    for _, _, size in shown:
        sides += [end for end in (size.low, size.ratio, size.high) if 1 / MOST < end < MOST]
    low, high = padded(min(sides), max(sides))
    room = max(ends[-1] - ends[0], 1.0)

    def across(at: float) -> float:
        return LEFT + (RIGHT - LEFT) * (0.02 + 0.96 * (at - ends[0]) / room)

    def up(ratio: float) -> str:
        inside = min(high, max(low, ratio))
        return f"{2 + (LANE - 4) * math.log(high / inside) / math.log(high / low):.1f}"

    drawn = [*_ticks(low, high, up), *_days(ends, across)]
    places = [(f"{across(study.started or 0.0):.2f}%", up(s.ratio)) for study, _, s in shown]
    for (x1, y1), (x2, y2) in pairwise(places):
        drawn.append(f'<line class="pair" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>')
    for (x, y), (study, effect, size) in zip(places, shown, strict=True):
        kind = kind_of(effect) or "open"
        told = f"{study.found.name}, {when(study.started)}: {effect.word} {text_of(effect)}"
        mark = f"<title>{escape(told)}</title>"
        if _known(size):
            y1, y2 = up(size.low), up(size.high)
            mark += f'<line class="{kind}" x1="{x}" x2="{x}" y1="{y1}" y2="{y2}"/>'
        mark += f'<circle class="{kind}" cx="{x}" cy="{y}" r="5"/>'
        place = f"../studies/{study.found.ident}/"
        drawn.append(f'<a href="{place}" aria-label="{attribute(told)}">{mark}</a>')
    label = attribute(f"{name[0]}, {name[1]}: {count(len(shown), 'study')}")
    said = f'class="strip" width="100%" height="{LANE + 20}" role="group" aria-label="{label}"'
    return Html(f"<svg {said}>{''.join(drawn)}</svg>")


def _ticks(low: float, high: float, up: Callable[[float], str]) -> Iterator[str]:
    for tick in log_ticks(low, high, most=4):
        kind, y = ("one" if tick == 1 else "usual"), up(tick)
        yield f'<line class="{kind}" x1="{LEFT}%" x2="{RIGHT}%" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 1}%" y="{y}" dy="4" text-anchor="end">{tick:g}</text>'


def _days(ends: Sequence[float], across: Callable[[float], float]) -> Iterator[str]:
    """Yield the days below a picture: of the first and the last study, and up to two between."""
    first, last = ends[0], ends[-1]
    pattern = "%Y-%m-%d" if last - first > 172_800 else "%m-%d %H:%M"
    parts = 3 if last > first else 1
    for number in range(parts + (last > first)):
        at = first + (last - first) * number / parts
        text = time.strftime(pattern, time.gmtime(at))
        anchor = "start" if number == 0 else "end" if number == parts else "middle"
        kind = "between" if 0 < number < parts else "end"
        place = f'class="{kind}" x="{across(at):.2f}%" y="{LANE + 16}" text-anchor="{anchor}"'
        yield f"<text {place}>{text}</text>"


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
