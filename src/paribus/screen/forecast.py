"""How many rounds and minutes a screen takes: from one launch of each benchmark, not kept."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

from paribus.benchmarks import benchmark_of
from paribus.core import Launch, LaunchError, Selection, State, count, format_seconds
from paribus.launch.execute import prepare
from paribus.launch.launching import Ended, outcome_of, start
from paribus.launch.local import LocalStation
from paribus.screen.fleet import Fleet
from paribus.screen.plan import Screen
from paribus.screen.rounds import FIRST_S
from paribus.stats.screen import PARTNERS, ROUNDS, looks

OFTEN = 0.05
"""The share of nodes nominated that is forecast beside a single one."""


def show(screen: Screen, fleet: Fleet, local: LocalStation) -> int:
    """Print rounds and minutes for no nominated node and for a twentieth; return the exit code."""
    walls = {one.label: _wall_s(one, fleet, local) for one in screen.selections}
    nodes = len(screen.nodes)
    most = screen.at_once or nodes
    print(f"{count(nodes, 'node')}, {count(most, 'node')} at once")
    for label, wall_s in walls.items():
        print(f"  {label}: {format_seconds(wall_s)} a launch")
    for name, why in screen.absent.items():
        print(f"  not screened: {name}: {why}")
    all_s = ROUNDS * sum(walls.values()) * math.ceil(nodes / most)
    print(f"no node is nominated: {count(ROUNDS, 'round')}, {format_seconds(all_s)}")
    for some in sorted({1, max(1, round(OFTEN * nodes))}):
        at = looks(some * len(walls))
        beside = min(nodes, some + max(PARTNERS, some))
        each_s = sum(walls.values()) * math.ceil(beside / most)
        first, last = (count(ROUNDS + n, "round") for n in (at[0], at[-1]))
        first_s, last_s = (format_seconds(all_s + n * each_s) for n in (at[0], at[-1]))
        print(f"{count(some, 'node')} nominated: {first} and {first_s}, to {last} and {last_s}")
    return 0


def _wall_s(selection: Selection, fleet: Fleet, local: LocalStation) -> float:
    """Return the seconds of a launch on the first node; raises LaunchError where it fails."""
    name, station = next(iter(fleet.stations.items()))
    with tempfile.TemporaryDirectory(dir=local.here) as folder:
        logs = Path(folder, "out"), Path(folder, "err")
        what = selection, benchmark_of(selection)
        launch = Launch(1, 1, selection.label, name, 1)
        prepared = prepare(fleet.ready[name], what, launch, station, logs, {}, FIRST_S)
        ended = Ended()
        start(station, prepared, ended)
        outcome = outcome_of(prepared, ended)
    if outcome.state is not State.OK:
        raise LaunchError(
            f"a launch of {selection.label} failed: {outcome.error}",
            place=name,
            fix="see that the benchmark works on this node, or choose another --with",
        )
    return outcome.wall_s
