"""What a study does at this moment: its blocks up to each look, and the launch that runs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from paribus.core import ParibusError, StoreError, count, format_seconds
from paribus.plan import Plan, read_plan
from paribus.report import wording
from paribus.report.markup import Html, element, escape, join
from paribus.report.tables import chip
from paribus.store import Doing, Effect, Standing, Store, read_count
from paribus.store.watched import Holder, alive, read_holder, read_standing
from paribus.web.found import Found, Kept, stamp
from paribus.web.overview import WORDS, kind_of, text_of
from paribus.words.lists import listed

MOST_ROWS = 12
"""Benchmarks with a row of their own; those still measured come first."""

LINEAR = 60
"""Blocks up to which all are equally wide in the picture; of more, the early ones are wider."""

APART = 5.0
"""Percent of the width that numbers of looks lie apart at least."""

STOP_S = 60.0
"""Seconds after which the page says that a study that was asked to stop has not."""


@dataclass
class _Known:
    """The plan of a study that a browser shows, and its nodes by arm, in the order of the facts."""

    plan: Plan
    nodes: dict[str, dict[str, None]] = field(default_factory=dict)


class Watched:
    """The state of the studies that browsers show, and which of them were asked to stop."""

    def __init__(self) -> None:
        self._reading = Lock()
        self._kept = Kept[_Known]()
        self._asked: dict[str, tuple[float, Holder | None]] = {}

    def stopping(self, found: Found) -> None:
        """Note that a study was asked to stop."""
        self._asked[found.ident] = time.monotonic(), read_holder(found.path)

    def state(self, found: Found) -> dict[str, Any]:
        """Return the state of a study: "text" in words, "html" as a picture, and as values.

        "running", "stopping"; "code", its exit code, None without one; "launches", how many are
        stored; "job", the job in which it waits, "" for none.
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
        now["text"] = standing.text or "running"
        with self._reading:
            doing, kept = standing.doing, self._newest(found)
            if doing and kept:
                now["text"] = _next(doing, kept.plan)
                now["html"] = join(*_panel(standing, doing, kept))
        asked, holder = self._asked.get(found.ident, (0.0, None))
        if asked and holder == read_holder(found.path):
            now["stopping"] = time.monotonic() - asked < STOP_S
            kill = f"`kill -KILL {holder.pid}` on {holder.host}" if holder else "`kill -KILL`"
            now["text"] = STOPPING if now["stopping"] else GOES_ON.format(kill=kill)
        return now

    def _newest(self, found: Found) -> _Known | None:
        """Return the plan and nodes of a study, None where there is no plan yet."""
        kept = None
        with suppress(ParibusError, OSError):
            kept = self._kept.made(found, stamp(found)[0], lambda one: _Known(read_plan(one.path)))
            if not kept.nodes:
                with Store(found.path) as store:
                    for one in store.gathered():
                        kept.nodes.setdefault(one.arm, {})[one.node] = None
        return kept


GOES_ON = (
    f"has not stopped within {STOP_S:.0f} s: it may be switching the platform back, which can"
    " take minutes. What is stored stays even after {kill}."
)
STOPPING = "stopping: the launch in flight is given up, what is stored stays"


def _next(doing: Doing, plan: Plan) -> str:
    """Return "running; look 2 of 6 comes after 12 blocks, in about 20 s", or "running"."""
    at = plan.looks.at
    if not at:
        return "running, without a planned end"
    if doing.look not in at:
        return "running"
    soon = "" if doing.look_s is None else f", in about {_about(doing.look_s)}"
    place = f"look {at.index(doing.look) + 1} of {len(at)}"
    return f"running; {place} comes after {count(doing.look, 'block')}{soon}"


def _about(seconds: float) -> str:
    """Return a forecast time, rounded: to 1 s, 5 s, 30 s or minutes."""
    step = next((step for limit, step in ((10, 1), (60, 5), (600, 30)) if seconds < limit), 60)
    whole = max(step, round(seconds / step) * step)
    return f"{whole} s" if whole < 10 else format_seconds(whole)


def _panel(standing: Standing, doing: Doing, kept: _Known) -> Iterator[Html]:
    """Yield the picture of blocks, and the line on the launch that runs."""
    yield _blocks(standing, doing, kept.plan)
    nodes = [*kept.nodes.get(doing.arm, {})]
    where = f" on {listed(nodes, 3)}" if nodes else ""
    block = wording.block_text(doing.block)
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


def _blocks(standing: Standing, doing: Doing, plan: Plan) -> Html:
    """Return a bar for each benchmark: the blocks done, the looks, the effects so far."""
    looks = plan.looks.at
    most = looks[-1] if looks else max([1, *doing.blocks.values()])
    places = [(at, _share(at, most)) for at in looks]
    last, numbers = -APART, []
    for at, x in places:
        if x - last >= APART:
            last = x
            anchor = "end" if x > 98 else "middle"
            numbers.append(f'<text x="{x:.1f}%" y="12" text-anchor="{anchor}">{at}</text>')
    ticks = "".join(f'<line x1="{x:.1f}%" x2="{x:.1f}%" y1="0" y2="14"/>' for _, x in places[:-1])
    axis = f'<svg width="100%" height="16" aria-hidden="true">{"".join(numbers)}</svg>'
    unseen = element("span", "Blocks, with looks", kind="unseen")
    head = ("Benchmark", join(Html(axis), unseen), "Blocks", "Times as slow, so far")
    drawn = {}
    for label, done in doing.blocks.items():
        several = [one for one in standing.effects if one.benchmark == label]
        kind = kind_of(several[0]) if several and all(map(kind_of, several)) else ""
        width = f"{_share(done, most):.1f}%"
        bar = f'<rect class="whole" width="100%" height="14"/><rect width="{width}" height="14"/>'
        cells = (
            escape(label),
            Html(f'<svg width="100%" height="14" aria-hidden="true">{bar}{ticks}</svg>'),
            escape(f"{done}/{most}" if looks else f"{done}"),
            join(*(_so_far(one, named=len(plan.study.arms) > 2) for one in several)),
        )
        here = str(label == doing.benchmark).lower()
        row = element("li", *(element("span", c) for c in cells), kind=kind or "now", data_now=here)
        drawn[label] = bool(kind), row
    kept = sorted(drawn, key=lambda label: drawn[label][0])[:MOST_ROWS]
    rest = len(drawn) - len(kept)
    return element(
        "ul",
        element("li", *(element("span", text) for text in head), kind="head"),
        *(row for label, (_, row) in drawn.items() if label in kept),
        *([element("li", escape(f"{count(rest, 'more benchmark')}"))] if rest else []),
        kind="blocks",
    )


def _share(done: int, most: int) -> float:
    """Return the place of a number of blocks on the bar, in percent."""
    part = min(1.0, done / most)
    return 100 * (part if most <= LINEAR else math.sqrt(part))


def _so_far(one: Effect, *, named: bool) -> Html:
    sign = element("span", "measuring", kind="said")
    if kind_of(one):
        sign = chip(WORDS[one.word], one.reason)
    return element("span", sign, escape(f" {text_of(one)} {one.arm if named else ''}"))
