"""The list of studies: a row each, those that run first; filtered, sorted, two to be compared."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlencode

from paribus.core import Comparison, count
from paribus.report import wording
from paribus.report.markup import Html, element, escape, join
from paribus.store import Effect
from paribus.web.effects import WORDS, kind_of, text_of, times
from paribus.web.found import MOST_ENTRIES
from paribus.web.pages import select
from paribus.web.summaries import Summary, when

STATES = {
    "running": "running",
    "queued": "in a queue",
    "ended": "ended",
    "stopped": "interrupted",
    "lost": "did not begin",
    "broken": "cannot be read",
}
URGENT = {"running": 0, "stopped": 1, "lost": 1, "queued": 2, "broken": 3}
"""What is shown before studies that have ended."""

SQUARES = 24
"""Effects of a study that have a square."""

FARTHEST = math.log(8.0)
"""Logarithm of the times as slow at which the bars of a list end at most."""


ROWS = 100
"""Studies that a page shows at first; each time more are asked for, four times as many."""


ROWS_ASKED = re.compile("[1-9][0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Query:
    """Which studies are listed: with a text, and of one state, verdict, factor and host.

    The first `rows` of them are shown.
    """

    text: str = ""
    state: str = ""
    verdict: str = ""
    factor: str = ""
    host: str = ""
    sort: str = "newest"
    rows: int = ROWS

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> Query:
        """Return what an address asks for."""
        names = ("text", "state", "verdict", "factor", "host")
        sort, rows = asked.get("sort", ""), asked.get("rows", "")
        return cls(
            *(asked.get(name, "")[:200] for name in names),
            sort=sort if sort in SORTS else "newest",
            rows=int(rows) if ROWS_ASKED.fullmatch(rows) else ROWS,
        )

    def takes(self, one: Summary) -> bool:
        """Return whether a study is to be listed."""
        words = (one.question, one.found.name, one.factor, *one.arms, *one.benchmarks, *one.hosts)
        return (
            self.text.lower() in "\n".join(words).lower()
            and self.state in ("", one.state)
            and self.factor in ("", one.factor)
            and (not self.verdict or any(e.word == self.verdict for e in one.effects))
            and (not self.host or self.host in one.hosts)
        )


def _largest(one: Summary) -> float:
    known = _worst(one)
    return abs(math.log(known[1].ratio)) if known else -1.0


SORTS: dict[str, tuple[str, Callable[[Summary], tuple[object, ...]]]] = {
    "newest": ("newest first", lambda one: (URGENT.get(one.state, 4), -(one.started or 0.0))),
    "effect": ("largest effect first", lambda one: (-_largest(one),)),
    "question": ("by question", lambda one: (one.question.lower(), -(one.started or 0.0))),
}


def overview(summaries: Sequence[Summary], query: Query, stopped: Path | None = None) -> Html:
    """Return the first page: filters, and the list, which is asked for again while it is seen."""
    listed = element("div", _listing(summaries, query, stopped), data_again="", data_every="30")
    return join(_filters(summaries, query) if len(summaries) > 1 else Html(""), listed)


def _filters(summaries: Sequence[Summary], query: Query) -> Html:
    """Return the form that narrows the list; a choice among one thing is left out."""
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
        value=query.text,
        placeholder="Search",
        aria_label="Search in questions, arms, benchmarks and hosts",
    ).replace("</input>", "")
    sorts = {name: text for name, (text, _) in SORTS.items()}
    return element(
        "form",
        search,
        *(
            select(name, getattr(query, name), {"": f"any {name}", **dict(sorted(known.items()))})
            for name, known in choices.items()
            if len(known) > 1
        ),
        select("sort", query.sort, sorts),
        element("button", "Show", type="submit"),
        kind="filters",
        method="get",
        role="search",
    )


def _listing(summaries: Sequence[Summary], query: Query, stopped: Path | None = None) -> Html:
    """Return the list of the studies that `query` asks for; two can be chosen to be compared.

    It says where the search for them `stopped` before its end.
    """
    box = Html("") if stopped is None else _stopped(stopped)
    if not summaries:
        begin = join("Start one: ", element("code", "paribus run container-network"), ".")
        return join(
            element("h1", "No study yet" if stopped is None else "No study found"),
            box,
            element("p", begin) if stopped is None else Html(""),
        )
    shown = sorted(filter(query.takes, summaries), key=SORTS[query.sort][1])
    of = f"{len(shown)} of " if len(shown) < len(summaries) else ""
    title = element("h1", escape(f"{of}{count(len(summaries), 'study')}"), role="status")
    compare = element("button", "Compare the chosen", type="submit", id="compare")
    worst = [known[1] for one in shown if (known := _worst(one))]
    far = min(FARTHEST, max([0.05, *(abs(math.log(one.ratio)) * 1.2 for one in worst)]))
    now = time.time()
    table = element(
        "table",
        element("caption", "All studies; choose two to compare them", kind="unseen"),
        element("thead", element("tr", *(_head(name) for name in HEAD))),
        element("tbody", "\n".join(_row(one, far, now) for one in shown[: query.rows])),
        kind="studies",
    )
    top = element("div", title, compare, element("span", "", id="reason"), kind="top")
    body = table if shown else element("p", "No study is like that.")
    asked = urlencode({**asdict(query), "rows": 4 * query.rows})
    more = element("a", escape(f"{len(shown) - query.rows} more"), href=f"?{asked}", id="more")
    end = more if len(shown) > query.rows else Html("")
    return element("form", top, box, body, end, action="compare/", method="get")


HEAD = ("", "Question", "Benchmarks", "Largest effect, times as slow", "State", "Host", "Started")


def _head(name: str) -> Html:
    return element("th", escape(name) if name else element("span", "Chosen", kind="unseen"),
                   scope="col")  # fmt: skip


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


def _row(one: Summary, far: float, now: float) -> Html:
    name = element("small", escape(one.found.name))
    link = element("a", escape(one.question), href=f"studies/{one.found.ident}/")
    cells = [
        element("td", _chosen(one), kind="pick"),
        element("th", link, name, scope="row", kind="asks", title=one.question),
    ]
    worst = _worst(one)
    if one.effects:
        cells.append(element("td", _squares(one.effects), kind="verdicts"))
        cells.append(element("td", _bar(*worst, far) if worst else "", kind="worst"))
    else:
        said = one.sentence or "no verdict yet"
        cells.append(element("td", escape(said), colspan="2", kind="says"))
    hosts = wording.listing(one.hosts, most=2) if one.hosts else ""
    cells += [
        element("td", _state(one), kind="is"),
        element("td", escape(hosts), kind="on", title=", ".join(one.hosts[:50])),
        element("td", _age(one.started, now), kind="age"),
    ]
    return element("tr", *cells)


def _chosen(one: Summary) -> Html:
    if not one.found.measured or one.state in ("broken", "queued", "lost"):
        return Html("")
    fits = {"factor": one.factor, "arms": one.arms, "benchmarks": one.benchmarks, "copy": one.copy}
    box = element(
        "input",
        type="checkbox",
        name="of",
        value=one.found.ident,
        aria_label=f"Choose {one.found.name}",
        data_name=one.found.name,
        data_fits=json.dumps(fits),
    )
    return Html(box.replace("</input>", ""))  # an input has no end


def _squares(effects: Sequence[Effect]) -> Html:
    """Return a square for each effect in the colour of its verdict, and their numbers in words."""
    drawn = []
    for one in effects[:SQUARES]:
        sign = wording.SYMBOLS[WORDS[one.word]] if one.word in WORDS else "?"
        said = f"{one.benchmark} {one.arm}: {one.word} {text_of(one)}".rstrip()
        kind = f"square {kind_of(one) or 'open'}"
        drawn.append(element("span", sign, kind=kind, title=said, aria_hidden="true"))
    more = len(effects) - SQUARES
    drawn += [escape(f"+{more}")] if more > 0 else []
    words = [one.word for one in effects]
    counted = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    return join(*drawn, element("span", escape(counted), kind="unseen"))


def _worst(one: Summary) -> tuple[Effect, Comparison] | None:
    """Return the largest effect that a verdict claims, without one the largest of all."""
    known = [(effect, size) for effect in one.effects if (size := times(effect))]
    claimed = [pair for pair in known if kind_of(pair[0])]
    return max(claimed or known, key=lambda pair: abs(math.log(pair[1].ratio)), default=None)


def _bar(one: Effect, size: Comparison, far: float) -> Html:
    """Return an effect drawn from 1 in the middle, slower to the right, and its figures."""

    def at(ratio: float) -> str:
        place = math.log(ratio) / far if 0 < ratio < math.inf else math.copysign(1, ratio - 1)
        return f"{50 + 48 * max(-1.0, min(1.0, place)):.1f}%"

    drawn = '<line class="one" x1="50%" x2="50%" y1="0" y2="18"/>'
    drawn += f'<line class="size" x1="50%" x2="{at(size.ratio)}" y1="9" y2="9"/>'
    if wording.has_interval(size):
        ends = f'x1="{at(size.low)}" x2="{at(size.high)}"'
        drawn += f'<line class="interval" {ends} y1="9" y2="9"/>'
    drawn += f'<circle cx="{at(size.ratio)}" cy="9" r="4"/>'
    kind = kind_of(one) or "open"
    svg = Html(f'<svg class="{kind}" width="110" height="18" aria-hidden="true">{drawn}</svg>')
    where = element("span", escape(f"{one.benchmark}"), kind="said")
    said = f"{one.benchmark} {one.arm}: {one.word} {text_of(one)}"
    return element("span", svg, element("b", escape(wording.ratio_text(size.ratio))), where,
                   title=said)  # fmt: skip


def _state(one: Summary) -> Html:
    """Return the state, of a study that runs with the share of launches that are stored."""
    said = element("span", escape(STATES[one.state]), kind=f"state {one.state}")
    if one.state == "running" and one.planned:
        told = f"{one.launches} of {one.planned} launches"
        done = min(one.launches, one.planned)
        bar = element(
            "progress", max=str(one.planned), value=str(done), aria_label="launches", title=told
        )
        return join(said, bar)
    if one.found.measured and one.launches:
        counted = one.launches if one.counted is None else one.counted
        return join(said, element("small", escape(f"{count(counted, 'launch')}")))
    return said


def _age(started: float | None, now: float) -> Html:
    """Return how long ago a study was started, its day and minute when it is pointed at."""
    if started is None:
        return Html("")
    ago = max(0.0, now - started)
    size, unit = next((s, u) for s, u in AGES if ago >= s or s == 1)
    said = "now" if ago < 60 else f"{int(ago / size)} {unit} ago"
    return element("time", escape(said), title=when(started), datetime=_iso(started))


AGES = ((365 * 86400, "y"), (30 * 86400, "mo"), (86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
"""Seconds of a unit in which ages are told, the largest first."""


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
