"""The first table of a cluster: latency and bandwidth of all pairs of nodes, in few launches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from paribus.benchmarks import benchmark_of
from paribus.core import Arm, Facts, LaunchError, Selection, Settings, State, Study, count
from paribus.judge.evidence import Cell, figures
from paribus.launch.arms import Ready
from paribus.launch.launching import launched, prepare
from paribus.launch.station import Station
from paribus.lenses.matrices.matrix import Matrix, of_launches

LAUNCHES = 5
"""Two more than the fewest that name slow nodes: one may be disturbed."""

LIMIT_S = 300.0
"""Seconds that a launch may take."""

SIZES = (8, 1 << 20)
"""Bytes of a message: of latency, and of bandwidth."""


def asked(arm: Arm, ranks: int, sizes: tuple[int, ...] = SIZES) -> Study:
    """Return the study, for `make_ready`, whose launches give the table: one arm, no factor."""
    return Study(
        question="How fast is each pair of nodes?",
        factor="nothing",
        arms=(arm,),
        benchmarks=(Selection("pairs", "pairs", ranks, {"bytes": list(sizes)}),),
        settings=Settings(bind="none"),
        path="first table",
    )


def first_table(
    station: Station,
    ready: Ready,
    study: Study,
    folder: Path,
    notify: Callable[[str], None],
    *,
    launches: int = LAUNCHES,
) -> list[Matrix]:
    """Return the matrices of so many `launches` of `study`, which is that of `asked`, on `station`.

    The outputs stay in `folder`; `notify` shows a line before each launch. Raises LaunchError, with
    the output's path, for a launch that fails.
    """
    [selection] = study.benchmarks
    benchmark = benchmark_of(selection)
    found: list[dict[Cell, float]] = []
    facts: list[Facts] = []
    for number in range(1, launches + 1):
        notify(f"launch {number} of {launches}: all pairs of {count(selection.ranks, 'node')}")
        scratch = f"{station.scratch}/pairs{number}"
        logs = folder / f"pairs-{number}.out", folder / f"pairs-{number}.err"
        # Another seed, another order of rounds: no pair meets the same neighbours each time.
        outcome = launched(
            station, prepare(ready, (selection, benchmark), number, scratch, logs, LIMIT_S)
        )
        if outcome.state is not State.OK:
            raise LaunchError(
                f"launch {number} of {launches} failed: {outcome.error}",
                place=str(logs[1]),
                fix="read the output, and check MPI and the network between the nodes",
            )
        found.append(figures(outcome.samples, benchmark.metrics)[0])
        facts.append(outcome.facts)
    return of_launches(found, benchmark.metrics, facts, arm=ready.arm.name)
