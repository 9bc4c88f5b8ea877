"""What an output must show to be of what was asked for: one check for all benchmarks.

A reader knows what is written, not what was asked for; `parse` checks the one against the other,
for Paribus' own kernels and for the tools of others alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from paribus.core import Case, Parsed, Reading, Request, Sample, Scalar, of_case
from paribus.readers.reader import Reader
from paribus.readers.text import refuse

Cases = Callable[[Request], Iterable[tuple[str, Case]]]
"""Metric and case of all that must be there, exactly once."""

Printed = Callable[[Reading], Iterable[tuple[str, Case]]]
"""The same, where only the head of an output says which program of a family it is of."""


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
    """Return what was read, if it is what was asked for; raises ParseError if not.

    `version` is the fact that holds the version of the program. `printed`, where there is one, says
    what must be there in place of `cases`. `optional` metrics may be missing,
    but not at some cases only; `spare` cases too. Those that the program only `passed` on its way
    to what was asked for must be there, and are no samples. Parameters that are set and `echoed`
    must be in the output; others are compared where it names them.
    """
    reading = reader.read(stdout)
    if reading.benchmark != benchmark:
        refuse(f"{benchmark} was asked for, the output is of {reading.benchmark}")
    if reading.ranks is not None and reading.ranks != request.ranks:
        cause = f"{request.ranks} ranks were asked for, the output says {reading.ranks}"
        refuse(cause, alone=reading.ranks == 1)
    for key, asked in request.parameters.items():
        said = reading.parameters.get(key)
        if asked is None or (said is None and key not in echoed):
            continue
        if said is None or not _equal(asked, said):
            refuse(f"{key} = {asked!r} was asked for, the output says {said!r}")
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


def _equal(asked: Any, said: Scalar) -> bool:
    if isinstance(asked, float) and isinstance(said, int | float):
        return math.isclose(asked, said, rel_tol=1e-6)
    return bool(asked == said) or (
        not isinstance(asked, bool) and str(asked).lower() == str(said).lower()
    )
