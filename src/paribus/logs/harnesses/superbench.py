"""What SuperBench writes of a run: results-summary.jsonl, with a line of JSON for each node.

Each figure is a key, such as "nccl-bw/allreduce_8_busbw:0", the bus bandwidth of 8 bytes on rank 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from paribus.core import Case, Direction, Metric, Reading, Sample, Scalar
from paribus.readers.harness import NOT_WRITTEN, Failed, Harness, Measured, name_of
from paribus.readers.heads import Head
from paribus.readers.json import amount, rows
from paribus.readers.text import line_of, refuse

CODE = "return_code"

_INFERENCE = r".*matmul|.*overlap|kernel-launch|model-benchmarks.*|.*_models.*|.*-inference"
_COPIES = r"ib-(loopback|traffic|validation)|mem-bw|gpu-copy-bw|gpu-stream|nvbandwidth"
UNITS = {
    r"[nr]ccl-bw": {"busbw": "GB/s", "algbw": "GB/s", "time": "us"},
    _INFERENCE: {"time": "ms", "throughput": "samples/s"},
    _COPIES: {"bw": "GB/s", "lat": "us"},
    r"gemm-flops": {"flops": "Gflop/s", "iops": "Giop/s"},
    r"(cublaslt|hipblaslt)-gemm": {"flops": "Tflop/s"},
    r"(cublas|cudnn)-function": {"time": "us"},
    r"cpu-memory-bw-latency": {"bw": "MB/s", "lat": "ns"},
    r"cpu-stream": {"throughput": "MB/s", "time": "s"},
    r"cpu-hpl": {"throughput": "Gflop/s", "time": "s"},
    r"disk-benchmark": {"iops": "1/s", "lat_ns": "ns"},
}
"""Units by benchmark and kind of metric, as in the tables "Metrics" of SuperBench's user tutorial
(0.12): the file has none."""

LOWER = {"time", "lat", "lat_ns"}
"""Kinds of metrics of which less is better."""

_KINDS = "busbw|algbw|bw|flops|iops|throughput|time|lat_ns|lat"
_METRIC = re.compile(rf"(?:(.+?)_)?({_KINDS})((?:_(?:\d[\d.]*|mean|avg|min|max))?)", re.I)
"""What is measured ("allreduce"), the kind ("busbw"), and the size or statistic behind it."""

_KEY = re.compile(r"(.+?)(?:/(\d+))?/([^/:]+)(?::([\w.]+))?")
"""Benchmark, number of the repetition, metric and rank."""


def read(text: str) -> list[Measured | Failed]:
    """Return each benchmark of each node: SuperBench starts every one once on a node."""
    found: list[Measured | Failed] = []
    seen: set[str] = set()
    end = 0
    for start, stop, figures in rows(text):
        _check_other(text, end, start)
        end = stop
        if text[start:stop] in seen:
            refuse("a node is there twice", line_of(text, start))
        seen.add(text[start:stop])
        if not isinstance(figures.get("node"), str):
            refuse("a line names no node: is it of SuperBench 0.3 or newer?", line_of(text, start))
        found += _of_node(figures)
    _check_other(text, end, len(text))
    if not any(isinstance(one, Measured) for one in found):
        refuse("no figure of a benchmark with a known unit is in it")
    return found


def _check_other(text: str, begin: int, end: int) -> None:
    """Refuse figures of a node in lines that are no JSON."""
    if (at := text.find(f'/{CODE}":', begin, end)) >= 0:
        refuse("the line of a node does not begin with '{'", line_of(text, at))


def _of_node(figures: dict[str, Any]) -> Iterator[Measured | Failed]:
    """Yield the benchmarks of one node's line; by return code each has failed or has figures."""
    values: dict[str, dict[tuple[str, str, Case], list[float]]] = {}
    failed: dict[str, int] = {}
    for key, value in figures.items():
        if key == "node":
            continue
        parts = _KEY.fullmatch(key)
        if parts is None:
            refuse(f"{key[:60]!r} is no name of a figure")
        benchmark, _, metric, rank = parts.groups()
        if metric == CODE:
            if type(value) is not int:
                refuse(f"{key[:60]!r} is {str(value)[:20]!r}")
            failed[benchmark] = failed.get(benchmark, 0) or value
        elif known := _known(benchmark, metric):
            kind, unit, point = known
            case: dict[str, Scalar] = {"figure": name_of(point)} if point else {}
            case |= {"rank": int(rank) if rank.isdecimal() else rank} if rank else {}
            cell = kind, unit, Case.of(**case)
            figure = amount(figures, key, zero=kind not in LOWER)
            values.setdefault(benchmark, {}).setdefault(cell, []).append(figure)
    for benchmark in dict.fromkeys((*failed, *values)):
        name = name_of(benchmark)
        if code := failed.get(benchmark):
            yield Failed(f"{name!r} ended with return code {code}", {"benchmark": name})
        elif benchmark in values:
            yield from _measured(name, values[benchmark])


def _known(benchmark: str, metric: str) -> tuple[str, str, str] | None:
    """Return kind, unit and the rest of a metric's name, None if its unit is not documented."""
    parts = _METRIC.fullmatch(metric)
    plain = re.sub(r":[^/]*", "", benchmark)
    units = next((of for name, of in UNITS.items() if re.fullmatch(name, plain)), {})
    if parts is None or (kind := parts[2].lower()) not in units:
        return None
    return kind, units[kind], f"{parts[1] or ''}{parts[3]}"


def _measured(name: str, values: dict[tuple[str, str, Case], list[float]]) -> Iterator[Measured]:
    """Yield one benchmark on one node; bandwidths that were rounded to 0.0 are left out."""
    metrics: dict[str, Metric] = {}
    samples = []
    for (kind, unit, case), figures in values.items():
        better: Direction = "lower" if kind in LOWER else "higher"
        if min(figures) > 0:
            metrics[kind] = Metric(kind, unit, better)
            samples.append(Sample(kind, case, tuple(figures)))
    if samples:
        reading = Reading("superbench", NOT_WRITTEN, {"benchmark": name}, None, tuple(samples))
        yield Measured(reading, None, tuple(metrics.values()))


HARNESS = Harness(
    "superbench",
    read,
    marks=(f'/{CODE}": ', f'/{CODE}:0": '),
    heads=(
        Head(
            "{",
            rf'"[^{{}}]*/{CODE}(?::0)?"\s*:',
            block=r'\{[^{}]*"node"\s*:\s*"([^"\n]*)"(?:[^{}]*\}|[^\n]*)[ \t]*(?:\n|\Z)',
        ),
    ),
    launches=(
        "every benchmark on every node is a launch, and its repetitions are samples; ranks and"
        " parameters are cases; figures without a documented unit are left out"
    ),
    versions="results-summary.jsonl, names of 0.3 to 0.12",
    proof=(
        "whole JSON in every line, a node in each, return code 0 or that launch failed; a bandwidth"
        " that was rounded to 0.0 is left out"
    ),
)
