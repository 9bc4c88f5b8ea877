"""Benchmarks around other people's tools: how each is started, and what must have been read.

Such a benchmark is a reader (paribus/readers) and a command line. `tool` makes a Benchmark of them
whose `parse` is that reader plus the check of what it read against what was asked for, so that
`paribus run` and `paribus compare` read with the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from paribus.model import (
    Benchmark,
    Case,
    Metric,
    Parameter,
    Parsed,
    Program,
    Reading,
    Request,
    Sample,
    Scalar,
)
from paribus.readers.reader import Reader
from paribus.readers.text import refuse

Cases = Callable[[Request], Iterable[tuple[str, Case]]]


def tool(
    reader: Reader,
    *,
    layer: str,
    summary: str,
    metrics: tuple[Metric, ...],
    command: Callable[[Request], Program],
    program: str,
    get: str,
    parameters: Mapping[str, Parameter] | None = None,
    cases: Cases | None = None,
    optional: Sequence[str] = (),
    spare: Collection[tuple[str, Case]] = (),
    ranks: int = 2,
) -> Benchmark:
    """Return the benchmark of a tool that others made, with the name of its reader.

    `cases(request)` returns the (metric, case) pairs that must be there exactly once; without it
    that is every metric at every size of a parameter "bytes", or at the empty case. `optional`
    metrics may be missing, but not at some cases only; `spare` cases too, for not every version of
    the tool has them, and the reader knows which. A parameter "path" says where the program is and
    is not checked.
    """
    required = tuple(m.name for m in metrics if m.name not in optional)
    return Benchmark(
        name=reader.name,
        layer=layer,
        summary=summary,
        metrics=metrics,
        command=command,
        parse=partial(
            _parse,
            reader.read,
            cases or partial(_by_size, required),
            tuple(optional),
            frozenset(spare),
        ),
        parameters={
            "path": Parameter(None, _path, "path of the program, if it is not on the PATH"),
            **(parameters or {}),
        },
        ranks=ranks,
        read=reader.read,
        recognise=reader.recognise,
        marks=reader.marks,
        program=program,
        get=get,
        versions=reader.versions,
        proof=reader.proof,
        means=reader.means,
    )


def path_or(request: Request, program: str) -> str:
    """Return where the program is: the parameter "path", or its name, to be found on the PATH."""
    return str(request.parameters.get("path") or program)


def _path(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("write the path of the program in quotes")
    return value


def _parse(
    read: Callable[[str], Reading],
    cases: Cases,
    optional: tuple[str, ...],
    spare: frozenset[tuple[str, Case]],
    stdout: str,
    request: Request,
) -> Parsed:
    """Return what was read, if it is what was asked for."""
    reading = read(stdout)
    if reading.ranks is not None and reading.ranks != request.ranks:
        cause = f"{request.ranks} ranks were asked for, the output says {reading.ranks}"
        refuse(cause, alone=reading.ranks == 1)
    for key, said in reading.parameters.items():
        asked = request.parameters.get(key)
        if asked is not None and not _equal(asked, said):
            refuse(f"{key} = {asked!r} was asked for, the output says {said!r}")
    _check_cases(reading.samples, list(cases(request)), optional, spare)
    facts: dict[str, Any] = {f"{reading.benchmark}.version": reading.version}
    if reading.guards:
        facts["guard.said"] = list(reading.guards)
    return Parsed(reading.samples, {**facts, **reading.facts})


def _check_cases(
    samples: Sequence[Sample],
    asked: list[tuple[str, Case]],
    optional: tuple[str, ...],
    spare: frozenset[tuple[str, Case]],
) -> None:
    found = {(sample.metric, sample.case) for sample in samples}
    asked = [pair for pair in asked if pair in found or pair not in spare]
    wanted = set(asked)
    for name in {sample.metric for sample in samples}.intersection(optional):
        wanted |= {(name, case) for _, case in asked}
    for metric, case in asked:
        if (metric, case) not in found:
            refuse(f"{metric} at {case} is missing")
    for metric, case in sorted(wanted - found):
        refuse(f"{metric} at {case} is missing")
    for metric, case in sorted(found - wanted, key=str):
        refuse(f"{metric} at {case} is there but was not asked for")


def _by_size(metrics: tuple[str, ...], request: Request) -> list[tuple[str, Case]]:
    sizes = request.parameters.get("bytes")
    every = [Case()] if sizes is None else [Case.of(bytes=size) for size in sizes]
    return [(metric, case) for metric in metrics for case in every]


def _equal(asked: Any, said: Scalar) -> bool:
    if isinstance(asked, float) and isinstance(said, int | float):
        return math.isclose(asked, said, rel_tol=1e-6)
    return bool(asked == said) or (
        not isinstance(asked, bool) and str(asked).lower() == str(said).lower()
    )
