"""Published figures from a TOML file that somebody typed from a paper; docs/compare.md.

`values = { host = 6694, container = 5887 }` in a table of `figures` becomes the row
"6,694 -> 5,887 MB/s (-12.1 %)". It has no interval, so no verdict rests on it: it is a row of a
table, beside one's own figure (beside.py, lens.py).
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
"""The most hosts of a published figure."""

_KEYS = ("title", "year", "url", "doi", "factor", "missing", "arms", "figures")
_KINDS = ("values", "advantage", "overhead", "word")
_FIGURE_KEYS = (
    *("benchmark", "metric", "unit", "better", "case", "peak", "what", "factor", "hosts"),
    *("arm", "reference", "note", *_KINDS),
)


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that somebody published, beside one's own `finding` (None: not measured here).

    `said`: the figure as printed, of `arm` against `reference`, or of `arm` alone where `reference`
    is "". `scale`: what changes by it, the value itself, or the speed or the cost, whose sign means
    the same for times and rates. `what`: metric, case and further words. `turned`: one's own
    reference is the published arm, and the other way round.
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
    """A published figure, its `row`, and what one's own must share to stand beside it.

    `factor`; `metric` ("": any); `case` (None: the headline), or with `peak` the best case,
    whichever it is; `hosts`: how many (0: any), where that is known here.
    """

    row: Published
    factor: str
    metric: str
    case: Case | None
    peak: bool
    hosts: int


@dataclass(frozen=True, slots=True)
class Publication:
    """The figures of one publication, the file at `path`; `source`: title, year and link.

    `arms`: the description of each arm by its name; `missing`: what was not published of them.
    """

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
    """Yield the figures of one [[figures]] table: one for each point of a sweep."""
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
        printed = [_printed(row, unit) for row in zip(*columns.values(), strict=True)]
    else:
        arm, reference = (
            place.need(key, one_of(*arms), f'{key} = "NAME"') for key in ("arm", "reference")
        )
        read = one_of("faster", "slower", "alike") if kind == "word" else _range
        printed = [place.need(kind, read, f"{kind} = [1, 4.2]")] * len(cases)
    for case, figure in zip(cases, printed, strict=True):
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
    """Return name and unit of the metric; if Paribus has the benchmark they must be of it.

    Both must be given, or known, where values are `printed`.
    """
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
    """Return the values of the arms, with their change if there are two: "4 -> 5 us (+25.0 %)"."""
    text = f"{' -> '.join(f'{value:,.15g}' for value in values)} {unit}"
    return f"{text} ({(values[1] / values[0] - 1) * 100:+.1f} %)" if len(values) == 2 else text


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
    """Return the cases of a figure, several where one parameter is a list of points."""
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
    """Return a change in percent, or the least and the most, as text: "+14.9 to +16.1 %"."""
    if isinstance(value, dict) and list(value) == ["at_most"]:
        return f"at most {_number(value['at_most']):+.4g} %"
    ends = sorted(_number(one) for one in (value if isinstance(value, list) else [value]))
    if len(ends) not in (1, 2) or ends[0] <= -100:
        raise ValueError("write percent: 4.2, or [1, 4.2], or { at_most = 8 }")
    return f"{' to '.join(dict.fromkeys(f'{end:+.4g}' for end in ends))} %"
