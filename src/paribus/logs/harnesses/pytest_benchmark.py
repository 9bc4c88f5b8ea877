"""What pytest-benchmark writes with --benchmark-json, --benchmark-save or --benchmark-autosave."""

from __future__ import annotations

from typing import Any

from paribus.core import Case, Metric, Reading, Sample
from paribus.readers.harness import Harness, Measured, check_statistics, name_of, when
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, inner
from paribus.readers.text import refuse

METRICS = (Metric("time", "us", "lower"),)
_US = 1e6
_ROUNDED = 1e-9


def read(text: str) -> list[Measured]:
    """Return the one launch in it: the rounds of all tests are within one process of pytest."""
    tree = document(text, '"machine_info": {')
    rows = inner(tree, "benchmarks")
    if not isinstance(rows, list) or not rows:
        refuse("pytest-benchmark reports no test: was it run with --benchmark-disable?")
    samples = []
    for row in rows:
        name = name_of(row, "fullname")
        times = tuple(_US * one for one in _values(name, inner(row, "stats")))
        samples.append(Sample("time", Case.of(test=name), times))
    version = str(inner(tree, "version"))
    reading = Reading("pytest_benchmark", version, {}, None, tuple(samples))
    return [Measured(reading, when(inner(tree, "datetime")), METRICS)]


def _values(name: str, stats: Any) -> tuple[float, ...]:
    """Return the time of every round in s; the median alone of a file that has no rounds."""
    rounds = amount(stats, "rounds")
    middle = amount(stats, "median")
    if "data" not in stats:
        return (middle,)
    values = [amount(stats, "data", at) for at in range(len(stats["data"]))]
    if len(values) != rounds:
        refuse(f"{name!r} has {len(values)} times, of {rounds:g} rounds")
    check_statistics(stats, values, _ROUNDED, f"the rounds of {name!r}")
    return tuple(values)


HARNESS = Harness(
    "pytest_benchmark",
    read,
    marks=('"machine_info": {',),
    heads=(Head("{", r'"machine_info"\s*:'),),
    launches="a file is one launch, for pytest runs all rounds in one process: a round is a sample",
    versions="5.3.1",
    proof=(
        "every round with its time, and mean, median, smallest and largest are those of the rounds;"
        " a saved file without times counts with its median"
    ),
)
