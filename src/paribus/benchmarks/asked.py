"""Checking that an output is of what was asked for: the same check for all benchmarks.

A reader knows what an output says, not what was asked for. `parse` compares the Reading with the
Request: benchmark, ranks, parameters, and exactly the cases that must be there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from paribus.core import Case, Parsed, Reading, Request, Sample, Scalar, of_case
from paribus.readers.reader import Reader
from paribus.readers.text import refuse

Cases = Callable[[Request], Iterable[tuple[str, Case]]]
"""Returns the pairs of metric and case that must be there exactly once."""

Printed = Callable[[Reading], Iterable[tuple[str, Case]]]
"""The same, if only the head of an output says which program of a family it is of."""


def parse(
    reader: Reader,
    stdout: str,
    request: Request,
    *,
    benchmark: str,
    version: str,
    cases: Cases,
    printed: Printed | None = None,
    optional: Collection[str] = (),
    spare: Collection[tuple[str, Case]] = (),
    passed: Callable[[Request], Collection[Case]] | None = None,
    echoed: Collection[str] = (),
) -> Parsed:
    """Return what `reader` reads in `stdout`; raises ParseError unless it is what was asked for.

    `version` is the key of the fact with the version of the program. The other arguments are those
    of tool.tool. Parameters that are set and `echoed` must be in the output; others are compared if
    it names them.
    """
    reading = reader.read(stdout)
    if reading.benchmark != benchmark:
        refuse(f"{benchmark} was asked for, the output is of {reading.benchmark}")
    if reading.ranks is not None and reading.ranks != request.ranks:
        cause = f"{request.ranks} ranks were asked for, the output says {reading.ranks}"
        refuse(cause, alone=reading.ranks == 1)
    for key, asked in request.parameters.items():
        read = reading.parameters.get(key)
        if asked is None or (read is None and key not in echoed):
            continue
        if read is None or not _equal(asked, read):
            refuse(f"{key} = {asked!r} was asked for, the output says {read!r}")
    wanted = printed(reading) if printed else cases(request)
    _check_cases(reading.samples, list(wanted), optional, spare)
    facts: dict[str, Any] = {version: reading.version}
    if reading.guards:
        facts["guard.said"] = list(reading.guards)
    left_out = passed(request) if passed else ()
    samples = tuple(sample for sample in reading.samples if sample.case not in left_out)
    return Parsed(samples, {**facts, **reading.facts})


def _check_cases(
    samples: Sequence[Sample],
    asked: list[tuple[str, Case]],
    optional: Collection[str],
    spare: Collection[tuple[str, Case]],
) -> None:
    found = {(sample.metric, sample.case) for sample in samples}
    asked = [pair for pair in asked if pair in found or pair not in spare]
    wanted = set(asked)
    for name in {sample.metric for sample in samples}.intersection(optional):
        wanted |= {(name, case) for _, case in asked}
    for metric, case in asked:
        if (metric, case) not in found:
            refuse(f"{metric}{of_case(case)} is missing")
    for metric, case in sorted(wanted - found):
        refuse(f"{metric}{of_case(case)} is missing")
    for metric, case in sorted(found - wanted, key=str):
        refuse(f"{metric}{of_case(case)} is there but was not asked for")


def _equal(asked: Any, read: Scalar) -> bool:
    """Return whether a parameter in the output is the one asked for, up to case and rounding."""
    if isinstance(asked, float) and isinstance(read, int | float):
        return math.isclose(asked, read, rel_tol=1e-6)
    return bool(asked == read) or (
        not isinstance(asked, bool) and str(asked).lower() == str(read).lower()
    )
