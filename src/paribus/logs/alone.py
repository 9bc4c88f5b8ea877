"""`run --alone ARM`: an arm by itself against stored days of it, with a range and without verdict.

Nothing is measured beside it, so a slow day looks like a slow arm. The answer is where another day
of the same arm would lie: the logs of n days' values, with standard deviation s, give a range of
`t(n - 1) s sqrt(1 + 1 / n)` around their mean (the prediction interval of a normal sample).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paribus.core import Metric, Study, UserError, count, format_ratio, format_value, percent
from paribus.judge.evidence import Evidence
from paribus.logs.against import planned, refuse
from paribus.logs.change import Measured
from paribus.logs.studies import check_apart, read, shared_labels
from paribus.plan import freeze, with_sizes
from paribus.report.markup import Html, document, element, escape, join, table
from paribus.report.printing import Row, line, print_rows
from paribus.stats.student import quantile

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "paribus.alone/1"
LEAST_DAYS = 6
"""With 3 days another one lies within 5 standard deviations of days, with 6 within 2.8."""

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Shown:
    """One benchmark: today's value, the geometric mean of the stored days, and the ratio of both.

    Values are in `unit`. The ratio of another day of the same arm lies between `low` and `high` in
    95 of 100 cases. `days` is how many stored days have a value.
    """

    benchmark: str
    unit: str
    today: float
    stored: float
    ratio: float
    low: float
    high: float
    days: int


def days_of(folder: Path, study: Study, accepted: Mapping[str, str]) -> tuple[Measured, ...]:
    """Return the stored studies in `folder` that measured the first arm of `study`, oldest first.

    Raises UserError for fewer than LEAST_DAYS, and UnequalError as `against.refuse`.
    """
    arm, found = study.arms[0].name, []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (path / "plan.json").is_file():
            one = read(path.name, path)
            arms = [mine.name for mine in one.plan.study.arms]
            if one.judgement.started is not None and arm in arms:
                found.append(one)
    if len(found) < LEAST_DAYS:
        cause = f"holds {count(len(found), 'study')} with {arm}, of which {LEAST_DAYS} are needed"
        fix = "give a folder of study directories: a range takes days"
        raise UserError(cause, place=str(folder), fix=fix)
    now = planned(found[0], freeze(with_sizes(study, found[0].plan.study), {}))
    for n, one in enumerate(found):
        for earlier in found[:n]:
            check_apart(earlier, one)
        if not shared_labels(one, now, []):
            raise UserError("has no benchmark of this study", place=one.name, fix="leave it out")
        refuse(one, now, accepted, arm)
        refuse(found[0], one, accepted, arm)
    light = (replace(one, evidence=Evidence(one.plan.metrics)) for one in found)
    return tuple(sorted(light, key=lambda one: one.judgement.started or 0.0))


def rows(days: Sequence[Measured], today: Measured) -> tuple[Shown, ...]:
    """Return a row for each benchmark that today and LEAST_DAYS of the days have a value of."""
    arm = today.plan.study.arms[0].name
    found = []
    for label, metrics in today.plan.metrics.items():
        mine = _value(today, label, metrics[0], arm)
        stored = [_value(one, label, metrics[0], arm) for one in days]
        logs = [math.log(one) for one in stored if one]
        if mine and len(logs) >= LEAST_DAYS:
            found.append(row(label, metrics[0].unit, mine, logs))
    return tuple(found)


def row(label: str, unit: str, mine: float, logs: Sequence[float]) -> Shown:
    """Return the row of today's value `mine`; `logs` are those of the values of stored days."""
    n, middle = len(logs), statistics.fmean(logs)
    reach = quantile((1 - CONFIDENCE) / 2, n - 1) * statistics.stdev(logs) * math.sqrt(1 + 1 / n)
    ratio = math.exp(math.log(mine) - middle)
    return Shown(label, unit, mine, math.exp(middle), ratio, math.exp(-reach), math.exp(reach), n)


def _value(study: Measured, label: str, metric: Metric, arm: str) -> float | None:
    """Return an arm's value in a study, None without one; of an arm launched twice the mean."""
    names = (arm, f"{arm}-again")
    found: dict[str, float] = {}
    for head in study.judgement.headlines:
        if (head.benchmark, head.metric) == (label, metric):
            sides = {study.judgement.reference: head.reference_value, head.arm: head.arm_value}
            found |= {name: one.median for name, one in sides.items() if name in names and one}
    if not found:
        return None
    return math.exp(statistics.fmean(math.log(one) for one in found.values()))


# --- words -----------------------------------------------------------------------------------


def title(today: Measured, days: Sequence[Measured]) -> str:
    """Return the title: which arm is compared with how many days."""
    dates = len({(one.judgement.started or 0.0) // 86_400 for one in days})
    stored = f"{len(days)} stored days (no verdict)"
    if dates < len(days):
        stored = (
            f"{len(days)} stored studies of {count(dates, 'day')} (no verdict): days scatter"
            " further than studies of a day, so another day may lie outside of the range"
        )
    return f"{today.plan.study.arms[0].name} alone against {stored}"


def basis() -> str:
    """Return the note on the range: how often it holds, and what it does not show."""
    return (
        f"Ratio: today / mean of the stored days. Another day of the same arm lies in the range in"
        f" {percent(CONFIDENCE)} of cases, if days scatter as these did. Nothing was measured"
        " beside it today: a slow day looks like a slow arm."
    )


HEAD = ("benchmark", "today", "stored days", "ratio", "range of another day", "days")


def _cells(one: Shown) -> list[str]:
    values = (f"{format_value(v)} {one.unit}" for v in (one.today, one.stored))
    between = f"[{format_ratio(one.low, like=1.0)}, {format_ratio(one.high, like=1.0)}]"
    return [one.benchmark, *values, format_ratio(one.ratio), between, str(one.days)]


def show(heading: str, found: Sequence[Shown], console: Console) -> None:
    """Print the table."""
    line(console, heading, style="bold")
    shown = [Row(_cells(one)) for one in found]
    print_rows(console, HEAD, shown, right=(1, 2, 3), coloured=())
    line(console, basis(), style="dim")


def page(question: str, heading: str, found: Sequence[Shown]) -> str:
    """Return the HTML page."""
    cells = [[escape(cell) for cell in _cells(one)] for one in found]
    body: Html = join(
        element("header", element("p", escape(question), kind="question")),
        element("h1", escape(heading)),
        table([one.capitalize() for one in HEAD], cells, heading, left=(0,)),
        element("p", escape(basis()), kind="small"),
    )
    return document(question, body)


def to_json(heading: str, days: Sequence[Measured], found: Sequence[Shown]) -> dict[str, Any]:
    """Return JSON values (docs/alone-schema.json)."""
    return {
        "schema": SCHEMA,
        "title": heading,
        "confidence": CONFIDENCE,
        "days": [{"name": one.name, "started": one.judgement.started} for one in days],
        "rows": [asdict(one) for one in found],
    }
