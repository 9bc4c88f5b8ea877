"""What a study does at this moment: the blocks up to each look, what runs where, its launches."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paribus.core import Metric, ParibusError, State, StoreError, count, format_seconds
from paribus.judge.evidence import figures
from paribus.plan import Plan, read_plan
from paribus.report import wording
from paribus.report.axes import COLOURS
from paribus.report.markup import Html, attribute, element, escape, join
from paribus.stats.summary import geometric_mean, launch_median
from paribus.store import (
    Doing,
    Effect,
    Holder,
    Standing,
    Store,
    Stored,
    alive,
    read_count,
    read_holder,
    read_standing,
)
from paribus.web.effects import effect, kind_of, text_of
from paribus.web.found import Found, stamp

DOTS = 60
"""Launches that the strip shows."""

MOST_ROWS = 12
"""Benchmarks with a row of their own; those still measured come first."""

STOP_S = 60.0
"""Seconds after which a study that was asked to stop is said to go on."""

LINEAR = 60
"""Blocks up to which all are drawn equally wide; of more, the early ones are wider."""

APART = 5.0
"""Percent of the width between two looks that both have their number."""

HEIGHT, RADIUS = 56, 4
"""Heights in px: the strip of the last launches, and half a dot."""


class Dot(NamedTuple):
    """A launch on the strip; `value` is that of its figure of merit, None without one."""

    number: int
    block: int
    benchmark: str
    arm: str
    state: State
    value: float | None


@dataclass
class _Kept:
    """What is known of a study that somebody looks at; `rows` of its launches have been read."""

    of: object
    plan: Plan
    rows: int = 0
    dots: deque[Dot] = field(default_factory=lambda: deque(maxlen=DOTS))
    nodes: dict[str, dict[str, None]] = field(default_factory=dict)


class Watched:
    """What the studies that somebody looks at do now, and which of them were asked to stop."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._asked: dict[str, tuple[float, Holder | None]] = {}

    def stopping(self, found: Found) -> None:
        """Take down that a study was asked to stop."""
        self._asked[found.ident] = time.monotonic(), read_holder(found.path)

    def state(self, found: Found) -> dict[str, Any]:
        """Return what a study does: its state in words, as `text`, and as a picture, as `html`.

        `running` and `stopping` say whether it does, `code` is its exit code, `launches` are
        those stored, `job` is that in which it waits and is not running.
        """
        now: dict[str, Any] = {"running": False, "stopping": False, "code": None, "launches": 0}
        now |= {"html": "", "job": ""}
        try:
            standing, now["running"] = read_standing(found.path), alive(found.path)
            now["launches"] = read_count(found.path).launches
        except StoreError as error:
            return {**now, "text": str(error)}
        standing = standing or Standing("")
        if not now["running"]:
            self._asked.pop(found.ident, None)
            ended = "" if standing.code is None else f" (exit code {standing.code})"
            text = f"{standing.text or 'not running'}{ended}"
            return {**now, "text": text, "code": standing.code, "job": standing.job}
        asked, holder = self._asked.get(found.ident, (0.0, None))
        if asked and holder == read_holder(found.path):
            now["stopping"] = time.monotonic() - asked < STOP_S
            return {**now, "text": STOPPING if now["stopping"] else _goes_on(holder)}
        doing, kept = standing.doing, self._newest(found)
        if doing is None or kept is None:
            return {**now, "text": standing.text or "running"}
        shown = join(*_panel(standing, doing, kept))
        return {**now, "text": _next(doing, kept.plan), "html": shown}

    def _newest(self, found: Found) -> _Kept | None:
        """Return what is known of a study with its newest launches, None of one without a plan."""
        of = stamp(found)[0]
        kept = self._kept.get(found.ident)
        with suppress(ParibusError, OSError):
            if kept is None or kept.of != of:
                kept = self._kept[found.ident] = _Kept(of, read_plan(found.path))
            with Store(found.path) as store:
                last = read_count(found.path).launches
                new = range(max(kept.rows, last - DOTS) + 1, last + 1)
                kept.dots += [_dot(one, kept.plan) for one in store.some(new)]
                kept.rows = last
                if not kept.nodes:
                    for one in store.gathered():
                        kept.nodes.setdefault(one.arm, {})[one.node] = None
        return kept


STOPPING = "stopping: the launch in flight is given up, what is stored stays"


def _goes_on(holder: Holder | None) -> str:
    where = f"`kill -KILL {holder.pid}` on {holder.host}" if holder else "`kill -KILL`"
    return (
        f"has not stopped within {STOP_S:.0f} s: it may be switching the platform back, which can"
        f" take minutes. What is stored stays even after {where}."
    )


def value_of(one: Stored, metrics: Mapping[str, Sequence[Metric]]) -> float | None:
    """Return the figure that decides, as the geometric mean over the cases of a launch.

    None of a launch without one.
    """
    several = metrics.get(one.launch.benchmark)
    if not several:
        return None
    found, _ = figures(one.outcome.samples, several)
    mine = [value for (name, _), value in found.items() if name == several[0].name]
    return geometric_mean(mine) if mine else None


def _dot(one: Stored, plan: Plan) -> Dot:
    launch, state = one.launch, one.outcome.state
    value = value_of(one, plan.metrics) if state is State.OK else None
    return Dot(launch.number, launch.block, launch.benchmark, launch.arm, state, value)


def _next(doing: Doing, plan: Plan) -> str:
    """Return "running; look 2 of 6 comes after 12 blocks, in about 20 s"."""
    at = plan.looks.at
    if not at:
        return "running, without a planned end"
    if doing.look not in at:
        return "running"
    soon = "" if doing.look_s is None else f", in about {_about(doing.look_s)}"
    place = f"look {at.index(doing.look) + 1} of {len(at)}"
    return f"running; {place} comes after {count(doing.look, 'block')}{soon}"


def _about(seconds: float) -> str:
    """Return a time to come, no more exact than it is known."""
    step = next((step for limit, step in ((10, 1), (60, 5), (600, 30)) if seconds < limit), 60)
    whole = max(step, round(seconds / step) * step)
    return f"{whole} s" if whole < 10 else format_seconds(whole)


def _panel(standing: Standing, doing: Doing, kept: _Kept) -> Iterator[Html]:
    """Yield the blocks of each benchmark, what runs, and the last launches."""
    yield _blocks(standing, doing, kept.plan)
    nodes = [*kept.nodes.get(doing.arm, {})]
    where = f" on {wording.listing(nodes, most=3)}" if nodes else ""
    block = "warm-up" if doing.block == wording.WARM_UP else f"block {doing.block}"
    since = time.strftime("%H:%M:%S UTC", time.gmtime(doing.since))
    spent = f"{format_seconds(round(doing.elapsed_s))} so far"
    left = "" if doing.left_s is None else f", at most {_about(doing.left_s)} left"
    failed = f"; {count(standing.failures, 'launch')} failed" if standing.failures else ""
    yield element(
        "p",
        element("b", escape(f"{doing.arm} in {doing.benchmark}{where}")),
        escape(f", {block}, launch {doing.number}, since {since}; {spent}{left}{failed}"),
        kind="runs",
    )
    yield _strip([*kept.dots], kept.plan)


def _blocks(standing: Standing, doing: Doing, plan: Plan) -> Html:
    """Return a bar for each benchmark: its blocks, and the looks that are to come."""
    words: dict[str, list[Effect]] = {}
    for one in standing.effects:
        words.setdefault(one.benchmark, []).append(one)
    decided = {label: all(map(kind_of, several)) for label, several in words.items()}
    rows = sorted(doing.blocks, key=lambda label: decided.get(label, False))[:MOST_ROWS]
    most = plan.looks.at[-1] if plan.looks.at else max(1, *doing.blocks.values())
    looks = [(at, _share(at, most)) for at in plan.looks.at]
    last, numbers = -APART, []
    for at, x in looks:
        if x - last >= APART:
            last = x
            anchor = "end" if x > 98 else "middle"
            numbers.append(f'<text x="{x:.1f}%" y="12" text-anchor="{anchor}">{at}</text>')
    ticks = "".join(f'<line x1="{x:.1f}%" x2="{x:.1f}%" y1="0" y2="14"/>' for _, x in looks[:-1])
    axis = f'<svg width="100%" height="16" aria-hidden="true">{"".join(numbers)}</svg>'
    head = [
        element("span", "Benchmark"),
        element("span", Html(axis), element("span", "Blocks, with looks", kind="unseen")),
        element("span", "Blocks"),
        element("span", "Times as slow, so far"),
    ]
    drawn = []
    for label in (one for one in doing.blocks if one in rows):
        done, several = doing.blocks[label], words.get(label, [])
        kind = kind_of(several[0]) if several and decided[label] else ""
        width = f"{_share(done, most):.1f}%"
        bar = f'<rect class="whole" width="100%" height="14"/><rect width="{width}" height="14"/>'
        cells = [
            element("b", escape(label)),
            Html(f'<svg width="100%" height="14" aria-hidden="true">{bar}{ticks}</svg>'),
            escape(f"{done}/{most}" if plan.looks.at else f"{done}"),
            join(*(_so_far(one, named=len(plan.study.arms) > 2) for one in several)),
        ]
        row = [element("span", cell) for cell in cells]
        here = str(label == doing.benchmark).lower()
        drawn.append(element("li", *row, kind=kind or "now", data_now=here))
    rest = len(doing.blocks) - len(rows)
    more = [element("li", escape(f"{count(rest, 'more benchmark')}"))] if rest else []
    return element("ul", element("li", *head, kind="head"), *drawn, *more, kind="blocks")


def _so_far(one: Effect, *, named: bool) -> Html:
    if kind_of(one):
        return effect(one, named=named)
    said = f" {text_of(one)}{f' {one.arm}' if named else ''}"
    return element("span", element("span", "measuring", kind="said"), escape(said))


def _share(blocks: int, most: int) -> float:
    """Return the place of a number of blocks on the bar, in percent."""
    part = min(1.0, blocks / most)
    return 100 * (part if most <= LINEAR else math.sqrt(part))


def _strip(dots: Sequence[Dot], plan: Plan) -> Html:
    """Return the last launches in their order: as slow as usual in the middle, slower above."""
    if not dots:
        return Html("")
    arms = [arm.name for arm in plan.study.arms]
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(arms)}
    levels = [_slowness(dot, dots, arms[0], plan) for dot in dots]
    far = max(0.1, *(abs(one) for one in levels if one is not None)) if any(levels) else 0.1
    drawn = [f'<line class="usual" x1="0" x2="100%" y1="{HEIGHT / 2}" y2="{HEIGHT / 2}"/>']
    for place, (dot, level) in enumerate(zip(dots, levels, strict=True)):
        x = f"{100 * (place + 0.5) / max(len(dots), 20):.2f}%"
        block = "warm-up" if dot.block == wording.WARM_UP else f"block {dot.block}"
        said = f"launch {dot.number}, {block}, {dot.arm} in {dot.benchmark}"
        if level is None:
            title = f"<title>{escape(f'{said}: {dot.state.value}')}</title>"
            cross = f'x="{x}" y="{HEIGHT / 2 + 5}" text-anchor="middle"'
            drawn.append(f'<text class="cross" {cross}>×{title}</text>')
            continue
        y = HEIGHT / 2 - (HEIGHT / 2 - RADIUS - 1) * level / far
        title = f"<title>{escape(f'{said}: {math.exp(level):.3g} times as slow as usual')}</title>"
        fill = colours.get(dot.arm, COLOURS[len(arms) % len(COLOURS)])
        drawn.append(f'<circle cx="{x}" cy="{y:.1f}" r="{RADIUS}" fill="{fill}">{title}</circle>')
    failed = sum(dot.state is not State.OK for dot in dots)
    label = f"the last {count(len(dots), 'launch')}, {failed} failed; times as slow as {arms[0]}"
    square = '<svg width="12" height="12"><rect width="12" height="12" fill="{}"/></svg> '
    keys = (
        element("span", Html(square.format(colour)), escape(name), kind="key")
        for name, colour in colours.items()
    )
    caption = element("figcaption", *keys, escape(f" The last {count(len(dots), 'launch')}"))
    shown = f'class="track" width="100%" height="{HEIGHT}" role="img"'
    svg = f'<svg {shown} aria-label="{attribute(label)}">{"".join(drawn)}</svg>'
    return element("figure", caption, Html(svg))


def _slowness(dot: Dot, dots: Sequence[Dot], reference: str, plan: Plan) -> float | None:
    """Return the logarithm of how many times as slow as usual a launch was, None without value.

    Usual is the median of the reference's launches of its benchmark that are shown.
    """
    if dot.value is None:
        return None
    like = [one for one in dots if one.benchmark == dot.benchmark and one.value is not None]
    usual = launch_median(
        [one.value or 0.0 for one in like if one.arm == reference]
        or [one.value or 0.0 for one in like]
    )
    slower = math.log(dot.value / usual)
    return slower if plan.metrics[dot.benchmark][0].better == "lower" else -slower
