"""The slowest launch of each benchmark and arm: judged, printed, drawn, written, read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from paribus.core import Judgement, Lens, Seen
from paribus.report.axes import Spec, new_spec
from paribus.report.html import Figures
from paribus.report.markup import Html, element, escape
from paribus.report.printing import heading, item
from paribus.report.stored import read_as

TITLE = "Slowest launches"


@dataclass(frozen=True, slots=True)
class Extreme:
    benchmark: str
    arm: str
    wall_s: float

    @property
    def text(self) -> str:
        return f"{self.benchmark}: the slowest launch took {self.wall_s:.2f} s"


Rows = tuple[Extreme, ...]


def judge(seen: Seen) -> Rows | None:
    least = seen.plan.study.asked["extremes"]
    slowest: dict[tuple[str, str], float] = {}
    for one in seen.launches:
        key = one.launch.benchmark, one.launch.arm
        slowest[key] = max(slowest.get(key, 0.0), one.outcome.wall_s)
    return tuple(Extreme(*key, s) for key, s in slowest.items() if s >= least) or None


def to_json(judgement: Judgement, rows: Rows) -> dict[str, Any]:
    return {"extremes": [asdict(one) for one in rows]}


def from_json(table: Mapping[str, Any], judgement: Judgement) -> Rows | None:
    return tuple(read_as(Extreme, one) for one in table["extremes"]) or None


def text(judgement: Judgement, rows: Rows, console: Console) -> None:
    heading(console, TITLE)
    for one in rows:
        item(console, one.text, name=one.arm)


def figure(judgement: Judgement, rows: Rows) -> Iterator[tuple[str, Spec]]:
    yield "extremes", new_spec(TITLE, "Seconds") | {"data": {"values": [asdict(r) for r in rows]}}


def html(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    drawn = [figures.add(spec, TITLE) for _, spec in figure(judgement, rows)]
    lines = [element("li", escape(f"{one.arm}: {one.text}")) for one in rows]
    return element("section", element("h2", TITLE), *drawn, element("ul", *lines))


LENS = Lens(judge=judge, to_json=to_json, from_json=from_json, text=text, html=html, figures=figure)
