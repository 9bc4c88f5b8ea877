"""Reading a verdict.json back into a Judgement: of a study, or of compared results.

The file may come from anybody: everything is checked, so that no report fails on it later.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from paribus.border import is_directory, of_json, printable, read_json
from paribus.core import (
    Case,
    Comparison,
    Finding,
    Judgement,
    Open,
    Scalar,
    Spread,
    StoreError,
    Study,
    lens,
)
from paribus.report import export
from paribus.report.advice import next_steps
from paribus.words.study import summary

NAME = "verdict.json"
MOST_BYTES = 256 << 20
"""The most bytes of a verdict; one of 10,000 launches and 1,000 cases has about 4 MB."""

LARGEST = 1e31
"""A bound above every figure of a launch, with which quotients and drawings stay finite."""

OPEN = frozenset({"ratio", "low", "high", "quantum"})
"""Figures of a verdict that are null in JSON if they are infinite."""


def is_report(path: Path) -> bool:
    """Return whether `path` is a verdict, or a directory with one that is no study directory."""
    if is_directory(path):
        judged, planned = (os.path.lexists(path / name) for name in (NAME, "plan.json"))
        return judged and not planned
    return path.suffix == ".json"


def read_report(path: Path) -> Judgement:
    """Return the judgement at `path`, a verdict.json or a directory with one.

    Raises StoreError.
    """
    file = path / NAME if is_directory(path) else path
    place = printable(str(file))
    fix = "give what `paribus compare PATH --out DIR` or `paribus report` wrote, whole"
    try:
        table = read_json(file, MOST_BYTES, "a verdict", constant=_refuse)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "it is not JSON"
        raise StoreError(f"cannot be read: {cause}", place=place, fix=fix) from error
    if not isinstance(table, dict) or table.get("schema") != export.SCHEMA:
        raise StoreError(f"is not a verdict of schema {export.SCHEMA}", place=place, fix=fix)
    try:
        judgement = _judgement(table)
        export.to_json(judgement)  # so that no sentence fails later
        summary(judgement.sentence, judgement.headlines)
        next_steps(judgement)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        cause = printable(f"is not a verdict: {type(error).__name__}: {error}")[:300]
        raise StoreError(cause, place=place, fix=fix) from error
    return judgement


def _refuse(constant: str) -> float:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{constant} is not JSON")


def _judgement(table: Mapping[str, Any]) -> Judgement:
    study = _study(table["study"])
    known: dict[str, Any] = {key: findings(table, key, study) for key in FINDINGS}
    heads = known["headlines"]
    known["headlines"] = tuple(one for one in heads if one.decides)
    known["others"] = tuple(one for one in heads if not one.decides)
    known |= {"study": study, "lenses": {}}
    # Verdicts of older versions have none.
    known |= {key: table.get(key, ()) for key in ("voided", "distributions")}
    keys = {"points": "launches", "carriers": "transports"}
    rest = (name for name in _hints(Judgement) if name not in (*known, "figures"))
    known |= {name: table[keys.get(name, name)] for name in rest}
    judgement: Judgement = read_as(Judgement, known)
    # Raises for a time that no date can have.
    datetime.fromtimestamp((judgement.started or 0) + judgement.wall_s, UTC)
    return replace(judgement, lenses=lens.stored(table, judgement))


FINDINGS = ("headlines", "layers", "endpoints", "pairs", "cases")
"""Keys of a verdict with findings."""


def findings(table: Mapping[str, Any], key: str, study: Study) -> tuple[Finding, ...]:
    """Return the findings under a key of a verdict; raises ValueError for an unknown arm."""
    found = tuple(finding(one, key) for one in table[key])
    if strange := {f.arm for f in found} - {arm.name for arm in study.arms[1:]}:
        raise ValueError(f"{strange.pop()!r:.40} is no arm")
    return found


def finding(table: Mapping[str, Any], key: str) -> Finding:
    """Return a finding; only those of pairs of arms name their reference."""
    if not 0 < table["margin"] < 1:
        raise ValueError(f"a margin of {table['margin']!r:.40}")
    verdict = table["verdict"]
    verdict = {**verdict, "figures": _open_ends(_mapping(verdict["figures"]))}
    reference = table["reference"] if key == "pairs" else ""
    found: Finding = read_as(Finding, {**table, "verdict": verdict, "reference": reference})
    return found


def _comparison(value: Any) -> Comparison:
    """Return a comparison from JSON, where open ends are null.

    The ratio is null if half of the launches of an arm, or of the reference, were cut off: then it
    is infinite, or 0.
    """
    table = _mapping(value)
    cut_off = math.inf if table["high"] is None else 0.0
    ends = {"ratio": cut_off, "low": 0.0, "high": math.inf}
    known = {k: ends.get(k) if v is None else v for k, v in table.items()}
    found: Comparison = of_json(Comparison, known, rules={float: _figure}, later=True)
    check_interval(found.ratio, found.low, found.high)
    return found


def check_interval(ratio: float, low: float, high: float) -> None:
    """Raise ValueError unless low <= ratio <= high is an interval of positive ratios."""
    if not 0 <= low <= ratio <= high or high == 0:
        raise ValueError(f"{ratio} does not lie in an interval from {low} to {high}")


def _open_ends(figures: Any) -> Any:
    """Return figures with infinity in place of null under the keys OPEN, at all depths."""
    if isinstance(figures, Mapping):
        return {
            k: math.inf if v is None and k in OPEN else _open_ends(v) for k, v in figures.items()
        }
    return [_open_ends(one) for one in figures] if isinstance(figures, list) else figures


def _study(table: Mapping[str, Any]) -> Study:
    if not all(one["endpoints"] for one in table["benchmarks"]):
        raise ValueError("a benchmark has no endpoint")
    known = {key: table.get(key, {}) for key in ("asked", "hosts")}
    rest = (name for name in _hints(Study) if name not in known)
    known |= {name: table["plan" if name == "settings" else name] for name in rest}
    study: Study = read_as(Study, known)
    return study


_hints = cache(get_type_hints)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.40} is not an object")
    return value


def read_as(kind: Any, value: Any) -> Any:
    """Return a value of JSON as `kind`; see border/values.py.

    Keys that a dataclass does not have, texts for people or of a later version, are ignored. Raises
    TypeError, ValueError or LookupError for what does not fit, and for a missing field.
    """
    return of_json(kind, value, rules=_RULES, later=True)


def _case(value: Any) -> Case:
    if not all(isinstance(one, str | int | float) for one in _mapping(value).values()):
        raise TypeError(f"{value!r:.40} is not a case")
    return Case(tuple(value.items()))


def _spread(value: Any) -> Spread:
    """Return a spread from JSON, where null stands for the figure of a launch that was cut off."""
    ends = {k: math.inf if one is None else one for k, one in _mapping(value).items()}
    spread: Spread = of_json(Spread, ends, rules={float: _figure})
    return spread


def _figure(value: Any) -> float:
    figure: float = of_json(float, value)
    if not (0 <= figure < LARGEST or figure == math.inf):
        raise ValueError(f"{figure} is negative, or larger than any figure")
    return figure


def _open(value: Any) -> float:
    return math.inf if value is None else _figure(value)


def _setting(value: Any) -> Scalar:
    scalar: Scalar = of_json(Scalar, value)  # not `_figure`: settings may be negative
    return scalar


_RULES = {
    Case: _case,
    Comparison: _comparison,
    Spread: _spread,
    float: _figure,
    Open: _open,
    Scalar: _setting,
}
