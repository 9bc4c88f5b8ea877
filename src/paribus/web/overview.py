"""The first page, a list of all studies: filtered and sorted, unfinished ones first."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paribus.core import Comparison, Word, count
from paribus.report import wording
from paribus.report.first import Scale, bar
from paribus.report.markup import Html, element, escape, heads, join, tabular
from paribus.store import Effect
from paribus.web.found import MOST_ENTRIES
from paribus.web.pages import again, filters, more, rows_of, select
from paribus.web.summaries import Summary, when
from paribus.words.lists import listed

STATES = {
    "running": "running",
    "queued": "in a queue",
    "ended": "ended",
    "stopped": "interrupted",
    "lost": "did not begin",
    "broken": "cannot be read",
}
WORDS = {word.value: word for word in Word}
URGENT = {"running": 0, "stopped": 1, "lost": 1, "queued": 2, "broken": 3}
"""The order of states in the list; studies that have ended follow."""

FEW = "too few"

SQUARES = 24
"""Effects of a study that have a square."""

FARTHEST = math.log(8.0)
"""The end of the longest bars, as the log of a ratio of times."""


def kind_of(one: Effect) -> str:
    """Return the CSS class of a verdict's colour: "faster", ...; "" for one that is not decided."""
    word = WORDS.get(one.word)
    return word.name.lower() if word in wording.DECIDED else ""


def word_of(one: Effect) -> str:
    """Return the word of a verdict, or FEW where the launches are too few for an interval."""
    size = times(one)
    few = one.word == Word.UNDECIDED and size is not None and not wording.has_interval(size)
    return FEW if few else one.word


def times(one: Effect) -> Comparison | None:
    """Return how many times as slow an arm is, with the interval; None without a ratio."""
    low, high = one.low or 0.0, math.inf if one.high is None else one.high
    if one.ratio is None or not (0 < one.ratio < math.inf and low >= 0 and high > 0):
        return None
    known = Comparison(1, one.ratio, low, high, 0.0)
    return known.turned() if one.better == "higher" else known


def text_of(one: Effect) -> str:
    """Return how many times as slow an arm is, with the interval; "" without a ratio."""
    known = times(one)
    if known is None or wording.has_interval(known):
        return wording.estimate(known) if known else ""
    return wording.ratio_text(known)


def takes(one: Summary, asked: Mapping[str, str]) -> bool:
    """Return whether a study passes the filters `asked`: text, state, verdict, factor, host."""
    words = (one.question, one.found.name, one.factor, *one.arms, *one.benchmarks, *one.hosts)
    text, state, verdict, factor, host = (
        asked.get(name, "") for name in ("text", "state", "verdict", "factor", "host")
    )
    return (
        text.lower() in "\n".join(words).lower()
        and state in ("", one.state)
        and factor in ("", one.factor)
        and (not verdict or any(effect.word == verdict for effect in one.effects))
        and (not host or host in one.hosts)
    )


SORTS: dict[str, tuple[str, Callable[[Summary], tuple[object, ...]]]] = {
    "newest": (
        "unfinished, then newest",
        lambda one: (URGENT.get(one.state, 4), -(one.started or 0.0)),
    ),
    "effect": ("largest effect first", lambda one: (-_size(_worst(one)),)),
    "question": ("by question", lambda one: (one.question.lower(), -(one.started or 0.0))),
}


def overview(
    summaries: Sequence[Summary], asked: Mapping[str, str], stopped: Path | None = None
) -> Html:
    """Return the first page: filters, and the list, which the browser fetches again every 30 s.

    `stopped`: the folder at which the search for studies ended early.
    """
    narrowed = _filters(summaries, asked) if len(summaries) > 1 else Html("")
    return join(narrowed, again("list", 30, _listing(summaries, asked, stopped)))


def _filters(summaries: Sequence[Summary], asked: Mapping[str, str]) -> Html:
    """Return the form that narrows the list."""
    choices = {
        "state": {one.state: STATES[one.state] for one in summaries},
        "verdict": {e.word: e.word for one in summaries for e in one.effects},
        "factor": {one.factor: one.factor for one in summaries if one.factor},
        "host": {name: name for one in summaries for name in one.hosts},
    }
    search = element(
        "input",
        type="search",
        name="text",
        value=asked.get("text", ""),
        placeholder="Search",
        aria_label="Search in questions, arms, benchmarks and hosts",
    )
    sorts = select("sort", asked.get("sort", ""), {name: text for name, (text, _) in SORTS.items()})
    return filters(asked, choices, search, sorts)


def _listing(summaries: Sequence[Summary], asked: Mapping[str, str], stopped: Path | None) -> Html:
    """Return the list of the studies that pass the filters; two can be chosen for comparison."""
    box = Html("") if stopped is None else _stopped(stopped)
    if not summaries:
        begin = join("Start one: ", element("code", "paribus run container-network"), ".")
        return join(
            element("h1", "No study yet" if stopped is None else "No study found"),
            box,
            element("p", begin) if stopped is None else Html(""),
        )
    _, key = SORTS.get(asked.get("sort", ""), SORTS["newest"])
    shown = sorted((one for one in summaries if takes(one, asked)), key=key)
    rows = rows_of(asked)
    of = f"{len(shown)} of " if len(shown) < len(summaries) else ""
    title = element("h1", escape(f"{of}{count(len(summaries), 'study')}"), aria_live="polite")
    compare = element("button", "Compare the chosen", type="submit", id="compare")
    worst = [_worst(one) for one in shown[:rows]]
    far = math.exp(min(FARTHEST, max([0.05, *map(_size, worst)])))
    scale = Scale([(0.0, Comparison(0, 1.0, 1 / far, far, 0.0))])
    lines = [_row(one, scale, time.time()) for one in shown[:rows]]
    caption = element("caption", "All studies; choose two to compare them", kind="unseen")
    table = tabular(caption, [Html("<td></td>"), *heads(HEAD)], lines, "studies")
    top = element("div", title, compare, element("span", "", id="reason"), kind="top")
    body = table if shown else element("p", "No study is like that.")
    end = more(asked, len(shown) - rows)
    return element("form", top, box, body, end, action="compare/", method="get")


HEAD = ("Question", "Benchmarks", "Largest effect, times as slow", "State", "Host", "Started")


def _stopped(folder: Path) -> Html:
    return element(
        "p",
        escape(
            f"The search for studies stopped after {MOST_ENTRIES:,} files and folders, in"
            f" {folder}: studies beyond are not shown. Give the folders that hold studies: "
        ),
        element("code", "paribus serve DIR ..."),
        kind="box warnings",
    )


def _row(one: Summary, scale: Scale, now: float) -> Html:
    """Return the row of a study."""
    name = element("small", escape(one.found.name))
    link = element("a", escape(one.question), href=f"studies/{one.found.ident}/")
    cells = [
        element("td", _chosen(one), kind="pick"),
        element("th", element("div", link, name), scope="row", kind="asks", title=one.question),
    ]
    worst = _worst(one)
    if one.effects:
        cells.append(element("td", _squares(one.effects), kind="verdicts"))
        cells.append(element("td", _bar(*worst, scale) if worst else "", kind="worst"))
    else:
        text = one.sentence or "no verdict yet"
        cells.append(element("td", escape(text), colspan="2", kind="says"))
    hosts = listed(one.hosts, 2) if one.hosts else ""
    cells += [
        element("td", _state(one), kind="is"),
        element("td", escape(hosts), kind="on", title=", ".join(one.hosts[:50])),
        element("td", _age(one.started, now), kind="age"),
    ]
    return element("tr", *cells)


def _chosen(one: Summary) -> Html:
    """Return the box that chooses a study to be compared, if it can be."""
    if not one.found.measured or one.state in ("broken", "queued", "lost"):
        return Html("")
    fits = {"factor": one.factor, "arms": one.arms, "benchmarks": one.benchmarks, "copy": one.copy}
    return element(
        "input",
        type="checkbox",
        name="of",
        value=one.found.ident,
        aria_label=f"Choose {one.found.name}",
        data_name=one.found.name,
        data_fits=json.dumps(fits),
    )


def _squares(effects: Sequence[Effect]) -> Html:
    """Return a square for each effect in the colour of its verdict, and the counts in words."""
    drawn = []
    for one in effects[:SQUARES]:
        word = word_of(one)
        sign = wording.SYMBOLS[WORDS[word]] if word in WORDS else "…" if word == FEW else "?"
        title = f"{one.benchmark} {one.arm}: {word} {text_of(one)}".rstrip()
        kind = f"square {kind_of(one) or 'open'}"
        drawn.append(element("span", sign, kind=kind, title=title, aria_hidden="true"))
    drawn += [escape(f"+{len(effects) - SQUARES}")] if len(effects) > SQUARES else []
    words = [word_of(one) for one in effects]
    counted = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return join(*drawn, element("span", escape(counted), kind="unseen"))


def _worst(one: Summary) -> tuple[Effect, Comparison] | None:
    """Return the largest decided effect with its ratio, else the largest of all; None for none."""
    known = [(effect, size) for effect in one.effects if (size := times(effect))]
    claimed = [pair for pair in known if kind_of(pair[0])]
    return max(claimed or known, key=_size, default=None)


def _size(known: tuple[Effect, Comparison] | None) -> float:
    return abs(math.log(known[1].ratio)) if known else -1.0


def _bar(one: Effect, size: Comparison, scale: Scale) -> Html:
    """Return an effect drawn, and its figures."""
    text = f"{one.benchmark} {one.arm}: {word_of(one)} {text_of(one)}"
    drawn = bar(scale, 0.0, [(size, kind_of(one) or "open")])
    ratio = element("b", escape(wording.ratio_text(size)))
    where = element("span", escape(one.benchmark), kind="said")
    return element("span", drawn, ratio, where, title=text, kind="forest")


def _state(one: Summary) -> Html:
    """Return the state of a study, with its progress if it runs, else its number of launches."""
    text = element("span", escape(STATES[one.state]), kind=f"state {one.state}")
    if one.state == "running" and one.planned:
        done, most = str(min(one.launches, one.planned)), str(one.planned)
        reported = f"{done} of {count(one.planned, 'launch')}"
        return join(
            text, element("progress", max=most, value=done, aria_label=reported, title=reported)
        )
    if one.found.measured and one.launches:
        counted = one.launches if one.counted is None else one.counted
        return join(text, element("small", escape(f"{count(counted, 'launch')}")))
    return text


def _age(started: float | None, now: float) -> Html:
    """Return how long ago a study was started; its date and time as the title."""
    if started is None:
        return Html("")
    ago = max(0.0, now - started)
    size, unit = next((s, u) for s, u in AGES if ago >= s or s == 1)
    text = "now" if ago < 60 else f"{int(ago / size)} {unit} ago"
    return element("time", escape(text), title=when(started))


AGES = ((365 * 86400, "y"), (30 * 86400, "mo"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
"""Units of ages: seconds and name, the largest first."""
