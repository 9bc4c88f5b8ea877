"""The launches of a study: its time line, a list that is narrowed, and the page of one of them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from paribus.core import Metric, Point, State, count, format_bytes, format_seconds
from paribus.plan import read_plan
from paribus.report import samples, spread, wording
from paribus.report.markup import Html, element, escape, join, pairs, table
from paribus.stats.summary import launch_median
from paribus.store import Store, Stored
from paribus.web.found import Found, read_part
from paribus.web.now import value_of
from paribus.web.pages import select, study_links
from paribus.web.rendering import Rendered
from paribus.web.summaries import when
from paribus.words.values import flag_of

ROWS = 100
"""Launches that a page shows at first; each time more are asked for, four times as many."""

TAIL = 1 << 18
"""Bytes of an output that a page shows, from its end."""

LAST = 12
"""Last lines of a launch that failed, on top of its page."""

OTHERS = ("counted", "not counted", "unusual")
"""What is asked for beside the states of launches."""

Levels = Mapping[tuple[int, int], Point]


@dataclass(frozen=True, slots=True)
class Query:
    """Which launches are listed: of a benchmark, of an arm, of one outcome; the newest `rows`."""

    benchmark: str = ""
    arm: str = ""
    outcome: str = ""
    rows: int = ROWS

    def takes(self, one: Stored, points: Levels) -> bool:
        """Return whether a launch is to be listed."""
        launch = one.launch
        point = points.get((launch.number, one.attempt))
        counted = one.void is None and launch.block != wording.WARM_UP
        known = {"", one.outcome.state.value, OTHERS[0] if counted else OTHERS[1]}
        known |= {OTHERS[2]} if point and flag_of(point) else set()
        return (
            self.benchmark in ("", launch.benchmark)
            and self.arm in ("", launch.arm)
            and self.outcome in known
        )


def page(found: Found, query: Query, report: Rendered | None) -> Html:
    """Return the page of the launches; without a `report` which are unusual is not known yet.

    Raises ParibusError where they cannot be read.
    """
    points = _points(report)
    with Store(found.path) as store:
        every = list(store.launches(samples=False, void=True))
        chosen = [n for n, one in enumerate(every, 1) if query.takes(one, points)]
        shown = store.some(chosen[: -query.rows - 1 : -1])
    metrics = read_plan(found.path).metrics
    began = every[0].outcome.started if every else 0.0
    warm = sum(one.launch.block == wording.WARM_UP for one in every)
    void = sum(one.void is not None for one in every)
    caption = f"{len(chosen)} of {count(len(every), 'launch')}: {warm} of the warm-up, {void} void"
    rows = [_row(one, began, metrics, points) for one in shown]
    asked = urlencode({**asdict(query), "rows": 4 * query.rows})
    more = element("a", escape(f"{len(chosen) - len(rows)} more"), href=f"?{asked}", id="more")
    listed = join(
        table(HEAD, rows, caption, left=(0, 1, 2, 3, 5)), more * (len(chosen) > len(rows))
    )
    unknown = "The report is being made. The time line, and what is unusual, is known after that."
    return join(
        study_links(found, "../", "Launches"),
        element("h1", "Launches"),
        Html(report.line) if report else element("p", unknown, kind="small"),
        _filters(every, query),
        element("div", listed, data_again="", data_every="10", kind="launches"),
    )


HEAD = ("Launch", "Block", "Benchmark", "Arm", "Value", "Outcome", "Start", "Took")


def _points(report: Rendered | None) -> Levels:
    return {(p.number, p.attempt): p for p in report.points} if report else {}


def _filters(every: Sequence[Stored], query: Query) -> Html:
    known = {
        "benchmark": dict.fromkeys(one.launch.benchmark for one in every),
        "arm": dict.fromkeys(one.launch.arm for one in every),
        "outcome": dict.fromkeys([*(one.outcome.state.value for one in every), *OTHERS]),
    }
    return element(
        "form",
        *(
            select(name, getattr(query, name), {"": f"any {name}", **{v: v for v in values}})
            for name, values in known.items()
            if len(values) > 1
        ),
        element("button", "Show", type="submit"),
        kind="filters",
        method="get",
        role="search",
    )


def _row(
    one: Stored, began: float, metrics: Mapping[str, Sequence[Metric]], points: Levels
) -> list[Html]:
    launch, outcome = one.launch, one.outcome
    point = points.get((launch.number, one.attempt))
    flag = flag_of(point) if point else ""
    notes = [text for text in (one.void or "", outcome.error) if text]
    unusual = [Html(" "), element("span", "unusual", kind="chip few", title=flag)] if flag else []
    return [
        element("a", escape(_name(one)), href=f"{launch.number}-{one.attempt}/"),
        escape(_block(one)),
        escape(launch.benchmark),
        escape(launch.arm),
        escape(_value(one, metrics)),
        join(
            escape(outcome.state.value + (", not counted" if one.void is not None else "")),
            *unusual,
            *(element("small", escape(text[:120]), title=text) for text in notes),
        ),
        element(
            "span", escape(f"+{_offset(outcome.started - began)}"), title=when(outcome.started)
        ),
        escape(format_seconds(outcome.wall_s)),
    ]


def _offset(seconds: float) -> str:
    return f"{seconds:,.1f} s"


def _name(one: Stored) -> str:
    again = f", attempt {one.attempt + 1}" if one.attempt else ""
    return f"{one.launch.number}{again}"


def _block(one: Stored) -> str:
    return "warm-up" if one.launch.block == wording.WARM_UP else str(one.launch.block)


def _value(one: Stored, metrics: Mapping[str, Sequence[Metric]]) -> str:
    """Return the figure that decides with its unit, "" of a launch without."""
    value = value_of(one, metrics)
    if value is None:
        return ""
    return " ".join(wording.scaled(value, metrics[one.launch.benchmark][0].unit)).strip()


@dataclass(frozen=True, slots=True)
class One:
    """A launch with its samples, those before and after it, and those of its block."""

    stored: Stored
    began: float
    before: Stored | None
    after: Stored | None
    partners: Sequence[Stored]


def find_one(found: Found, number: int, attempt: int) -> One | None:
    """Return a launch of a study, None where there is none of this number; raises StoreError."""
    with Store(found.path) as store:
        every = list(store.launches(samples=False, void=True))
        for at, one in enumerate(every):
            launch = one.launch
            if (launch.number, one.attempt) == (number, attempt):
                like = (launch.benchmark, launch.block)
                partners = [
                    other
                    for other in every
                    if (other.launch.benchmark, other.launch.block) == like and other is not one
                ]
                [whole] = store.some([at + 1])
                before, after = (
                    every[n] if 0 <= n < len(every) else None for n in (at - 1, at + 1)
                )
                return One(whole, every[0].outcome.started, before, after, partners)
    return None


def launch_page(found: Found, of: One, report: Rendered | None) -> Html:
    """Return the page of a launch: its value beside those like it, its samples, what it printed."""
    one, launch, outcome = of.stored, of.stored.launch, of.stored.outcome
    metrics = read_plan(found.path).metrics
    point = _points(report).get((launch.number, one.attempt))
    notes = [
        text for text in (one.void or "", outcome.error, flag_of(point) if point else "") if text
    ]
    outputs = _outputs(found, one)
    facts = [
        ("Value", _value(one, metrics) or "none"),
        *_against(report, point),
        ("Block", _block(one)),
        ("Outcome", outcome.state.value),
        ("Exit code", "none" if outcome.exit_code is None else str(outcome.exit_code)),
        ("Start", f"+{_offset(outcome.started - of.began)}, {when(outcome.started)}"),
        ("Took", format_seconds(outcome.wall_s)),
    ]
    title = f"Launch {_name(one)}: {launch.arm} in {launch.benchmark}"
    return join(
        study_links(found, "../../"),
        _neighbours(of),
        element("h1", escape(title)),
        *(element("p", escape(text), kind="box") for text in notes),
        _last_lines(outputs) if outcome.state is not State.OK else Html(""),
        pairs(facts),
        _beside(report, point) if report and point else Html(""),
        samples.figure(outcome.samples, metrics.get(launch.benchmark, ())),
        element("h2", "Command ", element("button", "Copy", data_copy="command", hidden="")),
        element(
            "pre", escape(shlex.join(outcome.argv)), tabindex="0", id="command", kind="wrapped"
        ),
        *(_output(name, data, size) for name, data, size in outputs),
    )


def _against(report: Rendered | None, point: Point | None) -> list[tuple[str, str]]:
    """Return how a launch compares with the median of its arm, nothing where that is not known."""
    if not (report and point and point.level):
        return []
    key = (point.benchmark, point.arm)
    like = [p.level for p in report.points if (p.benchmark, p.arm) == key and spread.counts(p)]
    usual = launch_median([level for level in like if level] or [point.level])
    return [("Against the median of its arm", wording.ratio_text(point.level / usual))]


def _neighbours(of: One) -> Html:
    def link(one: Stored, text: str) -> Html:
        return element("a", escape(text), href=f"../{one.launch.number}-{one.attempt}/")

    parts = [
        *([link(of.before, f"◂ {_name(of.before)}")] if of.before else []),
        *([link(of.after, f"{_name(of.after)} ▸")] if of.after else []),
        *(
            link(one, f"{one.launch.arm} of the same block: {_name(one)}")
            for one in of.partners[:6]
        ),
    ]
    return element("nav", *parts, kind="bar study", aria_label="Other launches")


def _beside(report: Rendered, point: Point) -> Html:
    """Return the launches of the same benchmark in the order of their levels, this one ringed."""
    arms: dict[str, list[float]] = {}
    for one in report.points:
        if one.benchmark == point.benchmark and one.level and spread.counts(one):
            arms.setdefault(one.arm, []).append(one.level)
    mark = (point.arm, point.level) if point.level and spread.counts(point) else None
    if sum(map(len, arms.values())) < spread.FEWEST:
        return Html("")
    caption = f" {point.benchmark}: launches in the order of their level, this one ringed"
    return element(
        "figure",
        element("figcaption", Html(report.keys), escape(caption)),
        spread.picture(arms, report.colours, mark),
    )


Output = tuple[str, bytes, int]


def _outputs(found: Found, one: Stored) -> list[Output]:
    outputs: list[Output] = []
    for path in sorted((found.path / "logs").glob(f"{one.launch.number:04d}-{one.attempt}-*")):
        try:
            outputs.append((path.name, *read_part(path, TAIL, tail=True)))
        except OSError as error:
            outputs.append((path.name, f"cannot be read: {error.strerror}".encode(), 0))
    return outputs


def _last_lines(outputs: Sequence[Output]) -> Html:
    """Return the end of what a launch said of its failure: standard error, or else its output."""
    said = sorted(((name.endswith(".err"), data) for name, data, _ in outputs if data.strip()))
    if not said:
        return element("p", "It printed nothing.", kind="small")
    lines = said[-1][1].decode("utf-8", "replace").rstrip().splitlines()[-LAST:]
    return element("pre", _lines(lines), tabindex="0", kind="wrapped failed")


def _output(name: str, data: bytes, size: int) -> Html:
    if not data:
        return element("p", escape(f"{name}: empty"), kind="small")
    cut = f"the last {format_bytes(len(data))} of {format_bytes(size)}" if size > len(data) else ""
    parts = [element("h2", escape(name)), element("p", escape(cut), kind="small") if cut else ""]
    lines = data.decode("utf-8", "replace").splitlines()
    return join(*parts, element("pre", _lines(lines), tabindex="0"))


def _lines(lines: Collection[str]) -> Html:
    """Return text of several lines as HTML, its lines kept."""
    return Html("\n".join(escape(line) for line in lines))
