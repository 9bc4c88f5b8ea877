"""The pages of launches: the time line and list of a study, and the page of one launch."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Mapping, Sequence

from paribus.core import (
    Metric,
    Point,
    Sample,
    State,
    count,
    format_bytes,
    format_ratio,
    format_seconds,
)
from paribus.judge.evidence import merit
from paribus.plan import read_plan
from paribus.report import spread, track, wording
from paribus.report.markup import Html, attribute, element, escape, join, pairs, table
from paribus.report.wording import clean
from paribus.stats.summary import launch_median
from paribus.store import Store, Stored
from paribus.web.found import Found, read_part
from paribus.web.pages import again, filters, more, rows_of, study_links
from paribus.web.rendering import Rendered
from paribus.web.summaries import when
from paribus.words.values import flag_of

TAIL = 1 << 18
"""Bytes of an output that a page shows, from its end."""

LAST = 12
"""Last lines of its output that the page of a failed launch begins with."""

OTHERS = ("counted", "not counted", "unusual")
"""Choices of the filter `outcome`, beside the states of launches."""

Levels = Mapping[tuple[int, int], Point]
"""The points of the report's time line, by number and attempt of the launch."""


def takes(one: Stored, asked: Mapping[str, str], points: Levels) -> bool:
    """Return whether a launch passes the filters `asked`: benchmark, arm and outcome."""
    launch = one.launch
    point = points.get((launch.number, one.attempt))
    counted = one.void is None and launch.block != wording.WARM_UP
    known = {"", one.outcome.state.value, OTHERS[0] if counted else OTHERS[1]}
    known |= {OTHERS[2]} if point and flag_of(point) else set()
    return (
        asked.get("benchmark", "") in ("", launch.benchmark)
        and asked.get("arm", "") in ("", launch.arm)
        and asked.get("outcome", "") in known
    )


def page(found: Found, asked: Mapping[str, str], report: Rendered | None) -> Html:
    """Return the page of the launches that pass the filters `asked`.

    Which are unusual is known only with a `report`. Raises ParibusError for a damaged study.
    """
    points = _points(report)
    with Store(found.path) as store:
        every = list(store.launches(samples=False, void=True))
        chosen = [n for n, one in enumerate(every, 1) if takes(one, asked, points)]
        shown = store.some(chosen[: -rows_of(asked) - 1 : -1])
    metrics = read_plan(found.path).metrics
    warm = sum(one.launch.block == wording.WARM_UP for one in every)
    void = sum(one.void is not None for one in every)
    caption = f"{len(chosen)} of {count(len(every), 'launch')}: {warm} of the warm-up, {void} void"
    rows = [_row(one, every[0], metrics, points) for one in shown]
    listed = table(HEAD, rows, caption, left=(0, 1, 2, 3, 5))
    line = Html(report.line) if report else UNKNOWN
    return join(
        study_links(found, "../", "Launches"),
        element("h1", "Launches"),
        _filters(every, asked),
        again("launches", 10, line, listed, more(asked, len(chosen) - len(rows))),
    )


UNKNOWN = element("p", "The report is being made; what is unusual follows.", kind="small")
HEAD = ("Launch", "Block", "Benchmark", "Arm", "Value", "Outcome", "Start", "Took")


def _points(report: Rendered | None) -> Levels:
    return {(p.number, p.attempt): p for p in report.points} if report else {}


def _filters(every: Sequence[Stored], asked: Mapping[str, str]) -> Html:
    states = (*(one.outcome.state.value for one in every), *OTHERS)
    known = {
        "benchmark": {one.launch.benchmark: one.launch.benchmark for one in every},
        "arm": {one.launch.arm: one.launch.arm for one in every},
        "outcome": {state: state for state in states},
    }
    return filters(asked, known)


def _row(
    one: Stored, first: Stored, metrics: Mapping[str, Sequence[Metric]], points: Levels
) -> list[Html]:
    """Return the cells of one launch."""
    launch, outcome = one.launch, one.outcome
    point = points.get((launch.number, one.attempt))
    flag = flag_of(point) if point else ""
    notes = [text for text in (one.void or "", outcome.error) if text]
    unusual = [Html(" "), element("span", "unusual", kind="chip few", title=flag)] if flag else []
    return [
        element("a", escape(_name(one)), href=f"{launch.number}-{one.attempt}/"),
        escape("warm-up" if launch.block == wording.WARM_UP else str(launch.block)),
        escape(launch.benchmark),
        escape(launch.arm),
        escape(_value(one, metrics)),
        join(
            escape(outcome.state.value + (", not counted" if one.void is not None else "")),
            *unusual,
            *(element("small", escape(text[:120]), title=text) for text in notes),
        ),
        element("span", escape(_offset(one, first)), title=when(outcome.started)),
        escape(format_seconds(outcome.wall_s)),
    ]


def _offset(one: Stored, first: Stored) -> str:
    return f"+{one.outcome.started - first.outcome.started:,.1f} s"


def _name(one: Stored) -> str:
    return f"{one.launch.number}{_again(one)}"


def _again(one: Stored) -> str:
    return f", attempt {one.attempt + 1}" if one.attempt else ""


def _called(one: Stored) -> str:
    """Return what a launch was: "latency, tcp, block 11"; of a session which one of it."""
    launch = one.launch
    place = f", launch {launch.place}" if launch.place else ""
    return (
        f"{launch.benchmark}, {launch.arm}, {wording.block_text(launch.block)}{place}{_again(one)}"
    )


def _value(one: Stored, metrics: Mapping[str, Sequence[Metric]]) -> str:
    """Return the figure that decides with its unit, "" of a launch without."""
    mine = metrics.get(one.launch.benchmark, ())
    value = merit(one.outcome.samples, mine)
    return "" if value is None else " ".join(wording.scaled(value, mine[0].unit)).strip()


def launch_page(found: Found, number: int, attempt: int, report: Rendered | None) -> Html | None:
    """Return the page of a launch: its value beside those like it, its samples and its output.

    None where no launch has this number and attempt; raises ParibusError for a damaged study.
    """
    with Store(found.path) as store:
        every = list(store.launches(samples=False, void=True))
        keys = [(one.launch.number, one.attempt) for one in every]
        if (number, attempt) not in keys:
            return None
        at = keys.index((number, attempt))
        [one] = store.some([at + 1])
    launch, outcome = one.launch, one.outcome
    metrics = read_plan(found.path).metrics
    point = _points(report).get((launch.number, one.attempt))
    notes = [
        text for text in (one.void or "", outcome.error, flag_of(point) if point else "") if text
    ]
    slow = against(point, report.points) if report and point else ""
    line = Html("") if report else UNKNOWN
    outputs = _outputs(found, one)
    facts = [
        ("Value", _value(one, metrics) or "none"),
        *([("Times as slow as the median of its arm", slow)] if slow else []),
        ("Launch", _name(one)),
        ("Outcome", outcome.state.value),
        ("Exit code", "none" if outcome.exit_code is None else str(outcome.exit_code)),
        ("Start", f"{_offset(one, every[0])}, {when(outcome.started)}"),
        ("Took", format_seconds(outcome.wall_s)),
    ]
    return join(
        study_links(found, "../../"),
        _neighbours(every, at),
        element("h1", escape(_called(one))),
        *(element("p", escape(text), kind="box") for text in notes),
        _last_lines(outputs) if outcome.state is not State.OK else Html(""),
        pairs(facts),
        around(point, report.points, report.colours) if report and point else line,
        of_launch(outcome.samples, metrics.get(launch.benchmark, ())),
        element("h2", "Command ", element("button", "Copy", data_copy="command", hidden="")),
        element(
            "pre", escape(shlex.join(outcome.argv)), tabindex="0", id="command", kind="wrapped"
        ),
        *(_output(name, data, size) for name, data, size in outputs),
    )


def _neighbours(every: Sequence[Stored], at: int) -> Html:
    """Return links to the launches before and after one, and to those of its block."""

    def link(one: Stored, text: str) -> Html:
        return element("a", escape(text), href=f"../{one.launch.number}-{one.attempt}/")

    mine = (every[at].launch.benchmark, every[at].launch.block)
    block = [one for one in every if (one.launch.benchmark, one.launch.block) == mine]
    parts = [link(one, f"◂ {_called(one)}") for one in every[max(0, at - 1) : at]]
    parts += [link(one, f"{_called(one)} ▸") for one in every[at + 1 : at + 2]]
    for one in block[:PARTNERS]:
        if one is not every[at]:
            place = f", launch {one.launch.place}" if one.launch.place else ""
            parts.append(link(one, f"{one.launch.arm} of the same block{place}{_again(one)}"))
    return element("nav", *parts, kind="bar study", aria_label="Other launches")


PARTNERS = 8
"""Launches of its block that the page of a launch links to."""


def _outputs(found: Found, one: Stored) -> list[tuple[str, bytes, int]]:
    """Return name, last bytes and whole size of each output; an error in place of the bytes."""
    outputs = []
    for path in sorted((found.path / "logs").glob(f"{one.launch.number:04d}-{one.attempt}-*")):
        try:
            outputs.append((path.name, *read_part(path, TAIL, tail=True)))
        except OSError as error:
            outputs.append((path.name, f"cannot be read: {error.strerror}".encode(), 0))
    return outputs


def _last_lines(outputs: Sequence[tuple[str, bytes, int]]) -> Html:
    """Return the last lines of a launch's standard error, or of its output without any."""
    texts = sorted(((name.endswith(".err"), data) for name, data, _ in outputs if data.strip()))
    if not texts:
        return element("p", "It printed nothing.", kind="small")
    lines = texts[-1][1].decode("utf-8", "replace").rstrip().splitlines()[-LAST:]
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


# --- a launch beside the others, and its samples ----------------------------------------------


def around(point: Point, points: Sequence[Point], colours: Mapping[str, str]) -> Html:
    """Return the launches of the same benchmark as `picture`, with a ring around one of them."""
    like = [p for p in points if p.benchmark == point.benchmark]
    arms = {clean(p.arm) for p in like}
    keys = track.legend({arm: colour for arm, colour in colours.items() if arm in arms})
    ringed = ", this one ringed" if spread.counts(point) else ""
    text = f"{point.benchmark}: every launch, times as slow as usual for the reference{ringed}"
    return spread.strip(like, colours, keys, text, point)


def against(point: Point, points: Sequence[Point]) -> str:
    """Return how many times as slow a launch was as the median of its arm, "" if not known."""
    key = (point.benchmark, point.arm)
    like = [p.level for p in points if (p.benchmark, p.arm) == key and spread.counts(p)]
    known = [level for level in like if level]
    if not point.level or not known:
        return ""
    return format_ratio(point.level / launch_median(known))


ROW, MOST_ROWS = 34, 24
"""Height in px of the row of a case, and the most rows."""

MOST_DOTS = 300
"""Dots of a case; of more samples, the lowest and the highest of each stretch have one."""


def of_launch(samples: Sequence[Sample], metrics: Sequence[Metric]) -> Html:
    """Return a table of the cases of the metric that decides, with the samples drawn.

    Return nothing for a launch without samples of it.
    """
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
    """Return the figure of a sample: its values in order, around their median."""
    median = launch_median(one.values)
    logs = [math.log(value / median) for value in one.values]
    low, high = min(logs), max(logs)
    room = max(high - low, 0.02)

    def height(level: float) -> float:
        return 4 + (ROW - 8) * (high - level) / room

    drawn = [f'<line class="usual" x1="0" x2="100%" y1="{height(0):.1f}" y2="{height(0):.1f}"/>']
    for place in _kept(logs):
        x = 1 + 98 * (place + 0.5) / len(logs)
        drawn.append(f'<circle cx="{x:.2f}%" cy="{height(logs[place]):.1f}" r="2"/>')
    text = f"{count(len(logs), 'sample')}, {math.exp(low):.3g} to {math.exp(high):.3g} medians"
    shown = f'class="track samples" width="100%" height="{ROW}" role="img"'
    title = f"<title>{escape(text)}</title>"
    return Html(f'<svg {shown} aria-label="{attribute(text)}">{title}{"".join(drawn)}</svg>')


def _kept(values: Sequence[float]) -> list[int]:
    """Return the places of the values to draw: all, or both extremes of each stretch."""
    if len(values) <= MOST_DOTS:
        return list(range(len(values)))
    step = math.ceil(2 * len(values) / MOST_DOTS)
    kept: set[int] = set()
    for begin in range(0, len(values), step):
        places = range(begin, min(begin + step, len(values)))
        kept |= {min(places, key=values.__getitem__), max(places, key=values.__getitem__)}
    return sorted(kept)
