"""Published figures as data: a small TOML file, checked, of what somebody printed.

The format is described in docs/compare.md. A published figure carries no interval, so nothing is
judged by it: it is laid beside one's own (study/beside.py) or, where it is a value, is an arm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from paribus.benchmarks import BENCHMARKS
from paribus.errors import StudyError
from paribus.fields import Place
from paribus.inputs import read_toml
from paribus.model import Case, Direction, Metric, Scalar
from paribus.units import count

Kind = Literal["values", "advantage", "overhead", "word"]
WORDS = ("faster", "slower", "alike")

_KEYS = ("title", "year", "url", "doi", "factor", "missing", "arms", "figures")
_FIGURE_KEYS = (
    *("benchmark", "metric", "unit", "better", "case", "peak", "what", "arm", "reference", "note"),
    *("values", "advantage", "overhead", "word"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure as printed.

    `kind` says which of the following it is. "values": in `values`, for one arm or more.
    "advantage": by what share the arm is faster than the reference, "overhead": by what share it
    takes longer; both from `low` to `high` (0.042 is 4.2 %), `low` -inf for "at most".
    "word": faster, slower or alike. With `peak` the best case is meant, whichever it is.
    """

    benchmark: str
    metric: Metric | None
    case: Case | None
    peak: bool
    what: str
    note: str
    kind: Kind
    arm: str
    reference: str
    values: Mapping[str, float]
    low: float = 0.0
    high: float = 0.0
    word: str = ""


@dataclass(frozen=True, slots=True)
class Publication:
    """The figures of one publication; `arms` maps names to what they were, `missing` is what is
    not known of them."""

    path: Path
    title: str
    year: str
    link: str
    factor: str
    missing: tuple[str, ...]
    arms: Mapping[str, str]
    figures: tuple[Figure, ...]

    @property
    def source(self) -> str:
        link = f", {self.link}" if self.link else ""
        return f"{self.title} ({self.year}{link})"


def load_publication(path: Path) -> Publication:
    """Return the figures in the file at `path`; raises StudyError with file, key and fix."""
    try:
        table = read_toml(path, "a file of figures")
    except OSError as error:
        raise StudyError(
            f"cannot be read: {error.strerror}",
            place=str(path),
            fix="give a TOML file of figures",
        ) from error
    except ValueError as error:
        raise StudyError(
            str(error), place=str(path), fix="docs/compare.md shows the format"
        ) from error
    place = Place(str(path), "", table)
    if "question" in table and "benchmarks" in table:
        place.refuse("benchmarks", None, "is a study, not figures", f"paribus run {path}")
    place.only(_KEYS)
    arms = place.need("arms", _arms, '[arms]\nhost = "bare metal"')
    figures = place.need("figures", _tables, "[[figures]]")
    found = tuple(
        figure
        for number, one in enumerate(figures, 1)
        for figure in _figures(Place(str(path), f"figures[{number}]", one), arms)
    )
    return Publication(
        path=path,
        title=place.need("title", _text, 'title = "Containers against bare metal"'),
        year=str(place.need("year", _year, "year = 2021")),
        link=place.read("url", _text, "") or place.read("doi", _text, ""),
        factor=place.read("factor", _text, ""),
        missing=tuple(place.read("missing", _texts, [])),
        arms=arms,
        figures=found,
    )


def _figures(place: Place, arms: Mapping[str, str]) -> list[Figure]:
    """Return the figures of one table: one for each point of a sweep."""
    place.only(_FIGURE_KEYS)
    kinds: list[Kind] = [k for k in ("values", "advantage", "overhead", "word") if k in place.table]
    if len(kinds) != 1:
        place.refuse("", None, "says not one of values, advantage, overhead, word", "give one")
    benchmark = place.need("benchmark", _text, 'benchmark = "osu_latency"')
    metric = _metric(place, benchmark, kinds[0])
    none: list[Case | None] = [None]
    cases = place.read("case", _cases, none)
    figure = Figure(
        benchmark=benchmark,
        metric=metric,
        case=None,
        peak=place.read("peak", _flag, False),
        what=place.read("what", _text, ""),
        note=place.read("note", _text, ""),
        kind=kinds[0],
        arm="",
        reference="",
        values={},
    )
    if kinds[0] == "values":
        values = place.need("values", lambda v: _values(v, len(cases), arms), "values = { a = 1 }")
        names = list(values)
        return [
            replace(
                figure,
                case=case,
                arm=names[-1],
                reference=names[0] if len(names) > 1 else "",
                values={arm: column[i] for arm, column in values.items()},
            )
            for i, case in enumerate(cases)
        ]
    arm, reference = (place.need(k, lambda v: _arm(v, arms), f'{k} = "a"') for k in _PAIR)
    figure = replace(figure, arm=arm, reference=reference)
    if kinds[0] == "word":
        word = place.need("word", _word, 'word = "slower"')
        return [replace(figure, case=case, word=word) for case in cases]
    low, high = place.need(kinds[0], _range, f"{kinds[0]} = [1, 4.2]")
    return [replace(figure, case=case, low=low, high=high) for case in cases]


_PAIR = ("arm", "reference")


def _metric(place: Place, benchmark: str, kind: Kind) -> Metric | None:
    """Return the metric, that of the benchmark where Paribus has it; None if a word suffices."""
    known = BENCHMARKS[benchmark].metrics if benchmark in BENCHMARKS else ()
    name = place.read("metric", _text, known[0].name if known else "")
    mine = next((metric for metric in known if metric.name == name), None)
    unit = place.read("unit", _text, mine.unit if mine else "")
    better = place.read("better", _direction, mine.better if mine else "")
    if known and name and mine is None:
        names = ", ".join(metric.name for metric in known)
        place.refuse("metric", name, f"is none of {benchmark}", f"it has {names}")
    if mine and (unit, better) != (mine.unit, mine.better):
        place.refuse(
            "unit",
            unit,
            f"{name} of {benchmark} is in {mine.unit}, {mine.better} is better",
            "convert the figures",
        )
    if not (name and unit and better):
        if kind != "values":
            return None
        place.refuse("metric", None, "metric, unit or better is missing", 'metric = "bandwidth"')
    direction: Direction = "lower" if better == "lower" else "higher"
    return mine or Metric(name, unit, direction)


# --- values of keys --------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("write a text in quotes")
    return value


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise ValueError('write a list of texts: ["authors"]')
    return [_text(one) for one in value]


def _year(value: Any) -> int | str:
    return value if type(value) is int else _text(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false")
    return value


def _direction(value: Any) -> str:
    if value not in ("lower", "higher"):
        raise ValueError("write lower or higher")
    return str(value)


def _word(value: Any) -> str:
    if value not in WORDS:
        raise ValueError(f"write one of {', '.join(WORDS)}")
    return str(value)


def _arms(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not value:
        raise ValueError('write a table of names: host = "bare metal"')
    return {name: _text(told) for name, told in value.items()}


def _arm(value: Any, arms: Mapping[str, str]) -> str:
    if value not in arms:
        raise ValueError(f"name one of the arms: {', '.join(arms)}")
    return str(value)


def _tables(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ValueError("write [[figures]] tables")
    return value


def _cases(value: Any) -> list[Case | None]:
    """Return the cases of a figure; one parameter may be a list of points."""
    if not isinstance(value, dict) or not value:
        raise ValueError("write a table: { bytes = 8 } or { bytes = [8, 16] }")
    lists = [key for key, one in value.items() if isinstance(one, list)]
    if len(lists) > 1:
        raise ValueError(f"only one of {', '.join(lists)} can be a list")
    points: list[dict[str, Scalar]] = [value]
    if lists:
        points = [{**value, lists[0]: one} for one in value[lists[0]]]
    for point in points:
        if not all(isinstance(one, str | int | float) for one in point.values()):
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
    if not isinstance(value, dict) or not value:
        raise ValueError("write a table of arms: { host = 6694, container = 5887 }")
    found = {}
    for arm, one in value.items():
        column = [_number(v) for v in (one if isinstance(one, list) else [one])]
        if len(column) != points:
            raise ValueError(f"{arm} has {count(len(column), 'value')} for {count(points, 'case')}")
        if min(column) <= 0:
            raise ValueError(f"{min(column):g} of {arm} is not above zero")
        found[_arm(arm, arms)] = column
    return found


def _range(value: Any) -> tuple[float, float]:
    """Return a change in percent as shares, from low to high."""
    if isinstance(value, dict) and list(value) == ["at_most"]:
        return -math.inf, _number(value["at_most"]) / 100
    ends = [_number(one) for one in (value if isinstance(value, list) else [value])]
    if len(ends) not in (1, 2) or min(ends) <= -100:
        raise ValueError("write percent: 4.2, or [1, 4.2], or { at_most = 8 }")
    return min(ends) / 100, max(ends) / 100
