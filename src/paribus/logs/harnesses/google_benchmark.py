"""What programs built with Google Benchmark write with --benchmark_out_format=json."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from typing import Any

from paribus.border import printable
from paribus.core import Case, Metric, Reading, Sample, Scalar
from paribus.readers.figures import near
from paribus.readers.harness import NOT_WRITTEN, Harness, Measured, name_of, when
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, inner
from paribus.readers.text import refuse
from paribus.readers.units import seconds_of

METRICS = (
    Metric("real_time", "ns", "lower"),
    Metric("cpu_time", "ns", "lower"),
    Metric("bytes_per_second", "MB/s", "higher"),
    Metric("items_per_second", "items/s", "higher"),
)
_KEYS = frozenset(
    (
        *("family_index", "per_family_instance_index", "repetitions", "repetition_index"),
        *("threads", "iterations", "cpu_coefficient", "real_coefficient", "rms"),
        *(one.name for one in METRICS),
    )
)
"""Keys of a row that are no counters of the user's program."""

_STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda values: math.fsum(values) / len(values),
    "median": median,
}
_ROUNDED = 1e-9
"""Relative difference, at most, of its own statistics from those of its repetitions."""


def read(text: str) -> list[Measured]:
    """Return the one launch in it: repetitions and iterations are within a process."""
    tree = document(text, '"context": {')
    context, rows = inner(tree, "context"), inner(tree, "benchmarks")
    if (schema := context.get("json_schema_version", 1)) != 1:
        refuse(f"is of schema {schema}; Paribus reads 1, which Google Benchmark 1.9 writes")
    if not isinstance(rows, list) or not rows:
        refuse("Google Benchmark reports no benchmark: does --benchmark_filter match one?")
    together: dict[str, list[dict[str, Any]]] = {}
    skipped = []
    for row in rows:
        if "run_type" not in row:
            refuse("rows do not say their run_type: repeat with Google Benchmark 1.5 or newer")
        if row.get("error_occurred"):
            refuse(f"{name_of(row, 'name')!r} failed: {str(row.get('error_message'))[:100]!r}")
        if row.get("skipped"):
            skipped.append(name_of(row, "name"))
        elif "big_o" not in row and "rms" not in row:
            together.setdefault(name_of(row, "run_name"), []).append(row)
    threads = {
        int(amount(row, "threads"))
        for name, mine in together.items()
        for row in mine
        if "threads" in row and "/threads:" not in name
    }
    parameters: dict[str, Scalar] = {"threads": threads.pop()} if len(threads) == 1 else {}
    counters = _counters(rows)
    samples = [one for name, mine in together.items() for one in _samples(name, mine, counters)]
    if not samples:
        refuse(f"every benchmark was skipped, such as {skipped[0]!r}")
    guards = _guards(context, skipped)
    version = str(context.get("library_version", NOT_WRITTEN))
    reading = Reading("google_benchmark", version, parameters, None, tuple(samples), guards=guards)
    return [Measured(reading, when(inner(context, "date")), (*METRICS, *counters))]


def _counters(rows: list[dict[str, Any]]) -> tuple[Metric, ...]:
    """Return the user counters: other numbers of a row, above zero in some and below in none.

    The file does not say what they count, nor which values are better.
    """
    found: dict[str, list[float]] = {}
    for row in rows:
        for key, value in row.items():
            of_spread = row.get("aggregate_name") in ("stddev", "cv")
            if key not in _KEYS and type(value) in (int, float) and not of_spread:
                found.setdefault(key, []).append(value)
    for key, values in found.items():
        if min(values) < 0 < max(values):
            refuse(f"the counter {printable(key)!r} is {min(values)} in one row, above 0 in others")
        if not all(map(math.isfinite, values)):
            refuse(f"the counter {printable(key)!r} is not finite")
    return tuple(
        Metric(key, "1", "higher", unsaid=True)
        for key, values in found.items()
        if max(values) > 0 and printable(key) == key
    )


def _samples(name: str, rows: list[dict[str, Any]], counters: tuple[Metric, ...]) -> list[Sample]:
    """Return a benchmark's samples with a value for each repetition.

    The median, if the file has aggregates alone.
    """
    single = [row for row in rows if row["run_type"] == "iteration"]
    aggregates = {row["aggregate_name"]: row for row in rows if row["run_type"] == "aggregate"}
    for row in rows:
        kind = f"_{row['aggregate_name']}" if row in aggregates.values() else ""
        if inner(row, "name") != f"{row['run_name']}{kind}":
            refuse(f"{name!r} has a row of another name")
    if len(single) + len(aggregates) != len(rows):
        refuse(f"{name!r} has rows that are neither iterations nor aggregates, or one twice")
    if not single and "median" not in aggregates:
        refuse(f"{name!r} has neither repetitions nor their median")
    _check_indices(name, single)
    case, samples = Case.of(benchmark=name), []
    for metric in (*METRICS, *counters):
        used = single or [aggregates["median"]]
        having = [row for row in used if metric.name in row]
        if metric.name in ("real_time", "cpu_time") and len(having) < len(used):
            refuse(f"{name!r} lacks {metric.name}")
        values = [_figure(row, metric.name) for row in having]
        if having and len(having) < len(used):
            refuse(f"{name!r} has {metric.name} in {len(having)} of {len(used)} repetitions")
        for kind, of in _STATISTICS.items() if len(values) > 1 else ():
            row = aggregates.get(kind, {})
            if row and not near(_figure(row, metric.name), of(values), _ROUNDED):
                refuse(f"the {kind} {metric.name} of {name!r} is not that of its repetitions")
        if values and min(values) > 0:  # of a benchmark that sleeps no CPU time may be left
            samples.append(Sample(metric.name, case, tuple(values)))
        elif metric.name == "real_time":
            refuse(f"{name!r} took {min(values)} ns")
    return samples


def _check_indices(name: str, rows: list[dict[str, Any]]) -> None:
    """Refuse repetitions that are not all there, once each."""
    indices = [int(amount(row, "repetition_index", zero=True)) for row in rows]
    wanted = {int(amount(row, "repetitions", zero=True)) for row in rows}
    if rows and (wanted - {0, len(rows)} or sorted(indices) != list(range(len(rows)))):
        refuse(f"{name!r} has {len(rows)} repetitions, not each once")


def _figure(row: dict[str, Any], metric: str) -> float:
    """Return a figure of a row in the unit of its metric."""
    value = amount(row, metric, zero=True)
    if metric.endswith("_time"):
        unit = str(inner(row, "time_unit"))
        if (seconds := seconds_of(unit)) is None:
            refuse(f"the unit of time {unit[:20]!r} is unknown")
        return value * (seconds / 1e-9)
    return value / 1e6 if metric == "bytes_per_second" else value


def _guards(context: dict[str, Any], skipped: list[str]) -> tuple[str, ...]:
    """Return what the file says against its own figures."""
    guards = []
    if context.get("library_build_type") == "debug":
        guards.append("the library was built as debug, so its own work is part of short times")
    if context.get("cpu_scaling_enabled") is True:
        guards.append("the clock of the cores was scaled, so times depend on the load before them")
    if skipped:
        guards.append(f"skipped by the program: {', '.join(skipped[:3])}")
    return tuple(guards)


HARNESS = Harness(
    "google_benchmark",
    read,
    marks=('"context": {\n    "date": "',),
    heads=(Head("{", r'"context"\s*:\s*\{\s*"date"\s*:'),),
    launches=(
        "a file is one launch, because the program runs all repetitions in one process: a"
        " repetition is a sample; user counters are compared where --better says their direction"
    ),
    versions="1.7.1; schema 1",
    proof=(
        "every repetition once, no error_occurred, mean and median are those of the repetitions;"
        " a debug build, scaled clocks and skipped benchmarks are warnings"
    ),
)
