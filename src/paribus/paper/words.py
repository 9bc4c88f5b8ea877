"""What stands in and below the tables of a paper."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Metric
from paribus.words.lists import listed

BENCHMARK, CASE, ARM, UNIT, BETTER = "benchmark", "case", "arm", "unit", "better"
VALUES = ("reference value", "arm value")
RATIO, NUMBER, VERDICT = "times as slow [interval]", "n", "verdict"
NONE = "none"
METHODS = "Methods"
SO_FAR = "so far: further blocks may change it."


def mark(index: int) -> str:
    """Return the mark of a footnote, counted from 0.

    >>> mark(0), mark(25), mark(26)
    ('a', 'z', 'aa')
    """
    letter = chr(ord("a") + index % 26)
    return letter if index < 26 else mark(index // 26 - 1) + letter


def cases(label: str, metric: Metric, levels: str) -> str:
    """Return the caption of the cases of a benchmark; `levels` says those of their intervals."""
    unit = f"{metric.unit}, " if metric.unit else ""
    said = f"{label} by case: {metric.name} ({unit}{metric.better} is better)"
    return f"{said}; intervals {levels}" if levels else said


def number(*unpaired: bool) -> str:
    """Return what n is in a table with paired rows (False), `unpaired` ones (True), or both."""
    launches = "launches of the reference and of the arm, which nothing pairs"
    if not any(unpaired):
        return "n: blocks."
    return f"n: {launches}." if all(unpaired) else f"n: blocks; as a sum: {launches}."


def warning(name: str, text: str) -> str:
    return f"Warning, {name}: {text}"


def left_out(labels: Sequence[str]) -> str:
    """Return which benchmarks have more cases than a table of a paper."""
    return f"The cases of {listed(labels, 8, last=' and ')} are in cases.csv."
