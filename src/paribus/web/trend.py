"""The page of one question over time: a row for each benchmark, with a mark for each study."""

from __future__ import annotations

import time
from collections.abc import Sequence

from paribus.core import Comparison, count
from paribus.report import over_time, wording
from paribus.report.markup import Html, element, escape, heads, join, tabular
from paribus.store import Effect
from paribus.web.overview import kind_of, text_of, times
from paribus.web.summaries import Summary, when

Shown = tuple[Summary, Effect, Comparison]
"""A study, its effect in one benchmark, and that as a ratio of times."""


def like(one: Summary, every: Sequence[Summary]) -> list[Summary]:
    """Return the studies of the question of `one`, itself included, the oldest first.

    Copies of a study count once.
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
    text = f"{count(len(studies), 'study')} from {_day(ends[0])} to {_day(ends[-1])}"
    lines = [_row(name, shown, ends, several=several) for name, shown in rows.items()]
    names = ("Benchmark", f"Times as slow as {first.arms[0]}: up is slower", "First", "Last")
    caption = element("caption", "The effect of every study, with its interval", kind="unseen")
    table = tabular(caption, heads(names), lines, "trend")
    few = "One study has asked this so far: a trend needs two." if len(studies) < 2 else ""
    none = "" if rows else "No study has an effect with a size yet."
    return join(
        element("p", escape(first.question), kind="question"),
        element("h1", escape(text if len(studies) > 1 else "No trend yet")),
        *(element("p", escape(text)) for text in (few, none) if text),
        table if rows else Html(""),
        _compare(studies) if len(studies) > 1 else Html(""),
    )


def _compare(studies: Sequence[Summary]) -> Html:
    last = [one for one in studies if one.found.measured][-2:]
    if len(last) < 2:
        return Html("")
    place = "&".join(f"of={one.found.ident}" for one in last)
    text = f"Compare {last[0].found.name} with {last[1].found.name}"
    return element("p", element("a", escape(text), href=f"../compare/?{place}"))


def _row(
    name: tuple[str, str], shown: Sequence[Shown], ends: Sequence[float], *, several: bool
) -> Html:
    """Return the row of an arm in a benchmark: its picture, the first and the last effect."""
    arm = [element("small", escape(name[1]))] if several else []
    first, last = (
        element("b", escape(wording.ratio_text(size)))
        + element("small", escape(wording.interval_text(size))) * wording.has_interval(size)
        for _, _, size in (shown[0], shown[-1])
    )
    return element(
        "tr",
        element("th", escape(name[0]), *arm, scope="row"),
        element("td", _picture(name, shown, ends), kind="over"),
        element("td", first, kind="number"),
        element("td", last, kind="number"),
    )


def _picture(name: tuple[str, str], shown: Sequence[Shown], ends: Sequence[float]) -> Html:
    """Return the effects of one arm in one benchmark over the time of all studies."""
    marks = [
        over_time.Mark(
            study.started or 0.0,
            size,
            kind_of(effect) or "open",
            f"{study.found.name}, {when(study.started)}: {effect.word} {text_of(effect)}",
            f"../studies/{study.found.ident}/",
        )
        for study, effect, size in shown
    ]
    label = f"{name[0]}, {name[1]}: {count(len(shown), 'study')}"
    return over_time.picture(label, marks, (ends[0], ends[-1]))


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))
