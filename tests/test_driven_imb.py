"""IMB-MPI1, really launched with Intel MPI and read: every part, in groups, with more processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpis import installations
from paribus.benchmarks import BENCHMARKS
from paribus.core import Arm, Case, Parsed, ParseError, Request, Selection, UserError
from paribus.launch.arms import Ready, compose
from paribus.launch.local import LocalStation
from paribus.readers.imb_parts import MODES, PARTS

PROGRAM = {name: part.program for name, part in PARTS.items()}


def driven(folder: Path, name: str, ranks: int, **own: Any) -> tuple[Parsed, str, Request]:
    """Return what a launch of `name` gave, what it printed, and what was asked for."""
    mpi = next((m for m in installations() if m.family == "intelmpi"), None)
    program = Path(mpi.mpirun).with_name(PROGRAM[name]) if mpi else None
    if mpi is None or program is None or not program.exists():
        pytest.skip(f"no {PROGRAM[name]} beside Intel MPI: `pip install impi-devel` brings both")
    benchmark = BENCHMARKS[name]
    defaults = {key: p.default for key, p in benchmark.parameters.items()}
    parameters = {**defaults, "path": str(program), **own}
    out, err = folder / "out", folder / "err"
    with LocalStation() as host:
        scratch = f"{host.scratch}/launch"
        command = compose(
            Ready(Arm("a", transport="shm"), mpi, ()),
            Selection(name, name, ranks, parameters),
            benchmark,
            seed=1,
            scratch=scratch,
        )
        done = host.run(command, stdout=str(out), stderr=str(err), timeout_s=60, scratch=scratch)
    assert done.exit_code == 0, err.read_text() + out.read_text()
    request = Request(parameters, ranks)
    return benchmark.parse(out.read_text(), request), out.read_text(), request


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_each_part_measures_what_is_asked_for(tmp_path: Path, name: str) -> None:
    sized = "bytes" in BENCHMARKS[name].parameters
    own = {"bytes": [8, 1000, 4096]} if sized else {}
    found, printed, request = driven(tmp_path, name, 2, iterations=20, **own)
    cases = {Case.of(bytes=size) for size in own["bytes"]} if sized else {Case()}
    if PARTS[name].modes:
        cases = cases if sized else {Case.of(bytes=4)}  # an int, which is printed as a size
        cases = {Case.of(**dict(case.items), mode=mode) for case in cases for mode in MODES}
    assert {sample.case for sample in found.samples} == cases
    with pytest.raises(ParseError, match="iterations = 21 was asked for, the output says 20"):
        BENCHMARKS[name].parse(printed, Request({**request.parameters, "iterations": 21}, 2))
    with pytest.raises(ParseError, match="4 ranks were asked for"):
        BENCHMARKS[name].parse(printed, Request(request.parameters, 4))


def test_growing_numbers_of_processes_are_cases(tmp_path: Path) -> None:
    found, _, _ = driven(tmp_path, "imb_bcast", 3, bytes=[8], iterations=5, growing=True)
    assert {s.case for s in found.samples} == {Case.of(ranks=n, bytes=8) for n in (2, 3)}


def test_groups_at_once_are_cases(tmp_path: Path) -> None:
    found, _, _ = driven(tmp_path, "imb_pingpong", 4, bytes=[8], iterations=5, multi=1)
    assert {s.case for s in found.samples} == {Case.of(group=n, bytes=8) for n in (0, 1)}


def test_what_cannot_be_measured_is_refused_before_it_starts(tmp_path: Path) -> None:
    """With one rank the program prints its titles, measures nothing, and ends with exit code 0."""
    with pytest.raises(UserError, match="cannot be started with 1 rank"):
        driven(tmp_path, "imb_pingpong", 1, bytes=[8])
