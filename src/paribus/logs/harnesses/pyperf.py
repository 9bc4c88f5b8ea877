"""What pyperf writes with -o: suites of benchmarks, each with the processes that measured it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paribus.core import Case, Metric, Reading, Sample
from paribus.readers.harness import NOT_WRITTEN, Harness, Measured, name_of, when
from paribus.readers.heads import Head
from paribus.readers.json import amount, document, inner
from paribus.readers.text import refuse

UNITS = {"second": ("time", 1e6, "us"), "byte": ("memory", 1.0, "B")}
"""By pyperf's name of a unit: metric, factor to our unit, and our unit."""

FORMAT = "1.0"


def read(text: str) -> list[Measured]:
    """Return every worker process: its values are samples. Processes that calibrate have none."""
    tree = document(text, '"benchmarks":[{')
    if (version := inner(tree, "version")) != FORMAT:
        refuse(f"is of format {str(version)[:20]!r}, not {FORMAT}: `pyperf convert` writes that")
    shared = tree.get("metadata", {})
    found: list[Measured] = []
    names = []
    for benchmark in inner(tree, "benchmarks"):
        metadata = {**shared, **benchmark.get("metadata", {})}
        names.append(name_of(metadata, "name"))
        found += _workers(names[-1], metadata, inner(benchmark, "runs"))
    if twice := {name for name in names if names.count(name) > 1}:
        refuse(f"the benchmark {min(twice)!r} is there twice")
    return found


def _workers(name: str, metadata: dict[str, Any], runs: list[Any]) -> Iterator[Measured]:
    """Yield a launch for each process of a benchmark that measured."""
    their_unit = str(metadata.get("unit", "second"))
    if their_unit not in UNITS:
        refuse(f"{name!r} is in {their_unit[:20]!r}, of which less need not be better")
    metric, factor, unit = UNITS[their_unit]
    metrics = (Metric(metric, unit, "lower"),)
    measured = 0
    for run in runs:
        of_run = {**metadata, **run.get("metadata", {})}
        values = run.get("values")
        if values is None:
            if not {"warmups", "metadata"} & run.keys():
                refuse(f"a process of {name!r} has neither values nor warm-ups")
            continue
        several = tuple(factor * amount(values, at) for at in range(len(values)))
        if not several:
            refuse(f"a process of {name!r} has no value")
        measured += 1
        samples = (Sample(metric, Case(), several),)
        version = str(of_run.get("perf_version", NOT_WRITTEN))
        reading = Reading("pyperf", version, {"benchmark": name}, None, samples)
        yield Measured(reading, when(of_run.get("date")), metrics)
    if not measured:
        refuse(f"no process of {name!r} has values: it was only calibrated")


HARNESS = Harness(
    "pyperf",
    read,
    marks=('{"benchmarks":[{',),
    heads=(Head("{", r'"benchmarks"\s*:\s*\[\s*\{\s*"(?:runs|metadata)"\s*:'),),
    launches="every worker process is a launch, and its values are samples; warm-ups do not count",
    versions="2.10, format 1.0",
    proof="whole JSON of format 1.0, every process with values above zero; bytes or seconds",
)
