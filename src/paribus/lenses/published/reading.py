"""Published figures as data: a small TOML file, checked, of what somebody printed.

The format is described in docs/compare.md. A published figure carries no interval, so nothing is
judged by it: it is a row of a table, beside one's own figure (lens.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from paribus.benchmarks import BENCHMARKS
from paribus.benchmarks.parameters import flag
from paribus.border import Place, items, one_of, read_toml, table, text, texts, whole
from paribus.core import Case, Finding, Scalar, StudyError, count, typed

MOST_HOSTS = 1_000_000
"""Hosts of a published figure."""

_KEYS = ("title", "year", "url", "doi", "factor", "missing", "arms", "figures")
_KINDS = ("values", "advantage", "overhead", "word")
_FIGURE_KEYS = (
    *("benchmark", "metric", "unit", "better", "case", "peak", "what", "factor", "hosts"),
    *("arm", "reference", "note", *_KINDS),
)


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that somebody published, beside one's own `finding` (None: not measured here).

    `said` is the figure as printed: of `arm` against `reference`, or of `arm` alone. A change is
    one of the value, or, so that its sign says the same for times and rates, of speed or of cost.
    `turned`: one's own reference is the published arm. No verdict rests on any of it.
    """

    source: str
    benchmark: str
    what: str
    arm: str
    reference: str
    said: str
    scale: Literal["value", "speed", "cost"]
    finding: Finding | None = None
    turned: bool = False
    note: str = ""


class Figure(NamedTuple):
    """One figure: its row, and what must be the same here: the factor and the arms of the row; the
    metric ("": any) and the case; with `peak` the best case is meant, whichever it is; and the
    number of hosts (0: any), where it is known here."""

    row: Published
    factor: str
    metric: str
    case: Case | None
    peak: bool
    hosts: int


@dataclass(frozen=True, slots=True)
class Publication:
    """The figures of one publication; `arms` maps names to what they were, `missing` is what is
    not known of them."""

    path: Path
    source: str
    factor: str
    missing: tuple[str, ...]
    arms: Mapping[str, str]
    figures: tuple[Figure, ...]


def load_publication(path: Path) -> Publication:
    """Return the figures in the file at `path`; raises StudyError with file, key and fix."""
    try:
        found = read_toml(path, "a file of figures")
    except OSError as error:
        cause, fix = f"cannot be read: {error.strerror}", "give a TOML file of figures"
        raise StudyError(cause, place=str(path), fix=fix) from error
    except ValueError as error:
        fix = "docs/compare.md shows the format"
        raise StudyError(str(error), place=str(path), fix=fix) from error
    place = Place(str(path), "", found)
    if "question" in found and "benchmarks" in found:
        place.refuse("benchmarks", None, "is a study, not figures", typed(("paribus", "run", path)))
    place.only(_KEYS)
    title = place.need("title", text, 'title = "Containers against bare metal"')
    year = place.need("year", lambda v: v if type(v) is int else text(v), "year = 2021")
    link = place.read("url", text, "") or place.read("doi", text, "")
    arms = place.need("arms", _arms, '[arms]\nhost = "bare metal"')
    source = f"{title} ({year}{f', {link}' if link else ''})"
    factor = place.read("factor", text, "")
    nothing: tuple[str, ...] = ()
    missing = place.read("missing", texts, nothing)
    figures = tuple(
        figure
        for number, one in enumerate(place.need("figures", _some, "[[figures]]"), 1)
        for figure in _figures(Place(str(path), f"figures[{number}]", one), source, factor, arms)
    )
    return Publication(path, source, factor, missing, arms, figures)


def _figures(place: Place, source: str, factor: str, arms: Mapping[str, str]) -> Iterator[Figure]:
    """Yield the figures of one table: one for each point of a sweep."""
    place.only(_FIGURE_KEYS)
    kinds = [kind for kind in _KINDS if kind in place.table]
    if len(kinds) != 1:
        place.refuse("", None, f"gives not one of {', '.join(_KINDS)}", "give one")
    (kind,) = kinds
    benchmark = place.need("benchmark", text, 'benchmark = "osu_latency"')
    metric, unit = _metric(place, benchmark, printed=kind == "values")
    none: list[Case | None] = [None]
    cases = place.read("case", _cases, none)
    peak = place.read("peak", flag, False)
    hosts = place.read("hosts", whole(1, MOST_HOSTS), 0)
    if kind == "values":
        columns = place.need(kind, lambda v: _values(v, len(cases), arms), "values = { a = 1 }")
        first, *others = columns
        reference, arm = (first, others[-1]) if others else ("", first)
        said = [_printed(row, unit) for row in zip(*columns.values(), strict=True)]
    else:
        arm, reference = (
            place.need(key, one_of(*arms), f'{key} = "NAME"') for key in ("arm", "reference")
        )
        read = one_of("faster", "slower", "alike") if kind == "word" else _range
        said = [place.need(kind, read, f"{kind} = [1, 4.2]")] * len(cases)
    for case, figure in zip(cases, said, strict=True):
        of = "peak" if peak else "" if case is None else str(case)
        parts = (metric if kind == "values" else "", of, place.read("what", text, ""))
        row = Published(
            source=source,
            benchmark=benchmark,
            what=", ".join(part for part in parts if part),
            arm=arm,
            reference=reference,
            said=figure,
            scale="speed" if kind == "advantage" else "cost" if kind == "overhead" else "value",
            note=place.read("note", text, ""),
        )
        yield Figure(row, place.read("factor", text, factor), metric, case, peak, hosts)


def _metric(place: Place, benchmark: str, *, printed: bool) -> tuple[str, str]:
    """Return name and unit of the metric: those of the benchmark where Paribus has it."""
    known = BENCHMARKS[benchmark].metrics if benchmark in BENCHMARKS else ()
    name = place.read("metric", text, known[0].name if known else "")
    mine = next((metric for metric in known if metric.name == name), None)
    unit = place.read("unit", text, mine.unit if mine else "")
    better = place.read("better", one_of("lower", "higher"), mine.better if mine else "")
    if known and mine is None:
        names = ", ".join(metric.name for metric in known)
        place.refuse("metric", name, f"is none of {benchmark}", f"it has {names}")
    if mine and (unit, better) != (mine.unit, mine.better):
        cause = f"{name} of {benchmark} is in {mine.unit}, {mine.better} is better"
        place.refuse("unit", unit, cause, "convert the figures")
    if printed and not (name and unit):
        place.refuse("metric", None, "metric or unit is missing", 'metric = "bandwidth"')
    return name, unit


def _printed(values: tuple[float, ...], unit: str) -> str:
    """Return values as they were printed, of two with the change."""
    reported = f"{' -> '.join(f'{value:,.15g}' for value in values)} {unit}"
    return (
        f"{reported} ({(values[1] / values[0] - 1) * 100:+.1f} %)" if len(values) == 2 else reported
    )


# --- values of keys --------------------------------------------------------------------------


def _some(value: Any) -> list[Any]:
    if not items(value):
        raise ValueError("write [[figures]] tables")
    return list(value)


def _arms(value: Any) -> dict[str, str]:
    if not table(value):
        raise ValueError('write a table of names: host = "bare metal"')
    return {name: text(reported) for name, reported in value.items()}


def _cases(value: Any) -> list[Case | None]:
    """Return the cases of a figure; one parameter may be a list of points."""
    lists = [key for key, one in table(value).items() if isinstance(one, list)]
    if not value or len(lists) > 1:
        raise ValueError("write { bytes = 8 }, or one list: { bytes = [8, 16] }")
    points: list[dict[str, Scalar]] = [value]
    if lists:
        points = [{**value, lists[0]: one} for one in value[lists[0]]]
    if not all(isinstance(one, str | int | float) for point in points for one in point.values()):
        raise ValueError("a parameter is a text or a number")
    if len({str(point) for point in points}) < len(points):
        raise ValueError("a point is there twice")
    return [Case(tuple(sorted(point.items()))) for point in points]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _values(value: Any, points: int, arms: Mapping[str, str]) -> dict[str, list[float]]:
    """Return the values of each arm, one for each of `points` cases."""
    if not table(value):
        raise ValueError("write a table of arms: { host = 6694, container = 5887 }")
    found = {}
    for arm, one in value.items():
        column = [_number(v) for v in (one if isinstance(one, list) else [one])]
        if len(column) != points:
            raise ValueError(f"{arm} has {count(len(column), 'value')} for {count(points, 'case')}")
        if min(column) <= 0:
            raise ValueError(f"{min(column):g} of {arm} is not above zero")
        found[one_of(*arms)(arm)] = column
    return found


def _range(value: Any) -> str:
    """Return a change in percent as it was printed, the ends in order: "+14.9 to +16.1 %"."""
    if isinstance(value, dict) and list(value) == ["at_most"]:
        return f"at most {_number(value['at_most']):+.4g} %"
    ends = sorted(_number(one) for one in (value if isinstance(value, list) else [value]))
    if len(ends) not in (1, 2) or ends[0] <= -100:
        raise ValueError("write percent: 4.2, or [1, 4.2], or { at_most = 8 }")
    return f"{' to '.join(dict.fromkeys(f'{end:+.4g}' for end in ends))} %"
