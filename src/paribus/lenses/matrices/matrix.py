"""Matrices of the benchmarks that measure all pairs of nodes, and the slow nodes and pairs in them.

A launch gives a figure for each pair, a case such as from=0 to=1 bytes=8; the figures of all
launches for one metric and size are one Matrix.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paribus.core import Case, Facts, Metric, Seen, State, count, format_value
from paribus.judge.evidence import Cell
from paribus.stats.matrix import Examined, Outlier, examine
from paribus.words.lists import listed

if TYPE_CHECKING:
    from paribus.stats.matrix import Floats

HOSTS = "rank.hosts"
"""The fact with the host of each rank."""

CROWDED = "kernel.crowded."
"""How the facts begin with the first figures of pairs that the kernel measured twice."""

WAY = ("from", "to")
"""The parameters of a case that are the ranks of a pair."""

LEAST = "3 launches and 4 nodes are the fewest"
MOST = 8
"""Slow nodes, or pairs, that a sentence names."""


@dataclass(frozen=True, slots=True)
class Slow:
    """A slow node, or with `to` a slow pair; with a `ratio` of 1.2 it takes 20 % too long."""

    ratio: float
    node: str
    to: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A figure of all pairs of `nodes` in one arm: rows are from, columns are to.

    `median` is that of `launches`, and `low` and `high` are their extremes, an interval at
    `level`; None where there is no figure (a latency stands above the diagonal only). `judged`:
    launches and nodes were enough to name slow ones. `apart`: the slow nodes are slow to the
    others, not among themselves. `crowded`: pairs that were slow only while others were measured at
    the same time, the slowest first.
    """

    benchmark: str
    arm: str
    metric: Metric
    case: Case
    nodes: tuple[str, ...]
    launches: int
    median: tuple[tuple[float | None, ...], ...]
    low: tuple[tuple[float | None, ...], ...]
    high: tuple[tuple[float | None, ...], ...]
    level: float
    judged: bool
    slow_nodes: tuple[Slow, ...] = ()
    slow_pairs: tuple[Slow, ...] = ()
    apart: bool = False
    crowded: tuple[Slow, ...] = ()

    @property
    def figures(self) -> list[float]:
        """The medians of all pairs, ascending."""
        return sorted(value for row in self.median for value in row if value is not None)

    @property
    def sentences(self) -> list[str]:
        """The range of the figures, then slow nodes and pairs: a sentence each."""
        figures = self.figures
        middle = format_value(figures[len(figures) // 2])
        ends = f"{format_value(figures[0])} to {format_value(figures[-1])} {self.metric.unit}"
        found = [f"Median pair {middle} {self.metric.unit}, all pairs {ends}."]
        if self.crowded:  # the worst first
            pairs = f"{count(len(self.crowded), 'pair')} {_were(self.crowded)} slow"
            worst = _longer(self.crowded[0].ratio)
            found.append(f"{pairs} only while others were measured (up to {worst}): congestion.")
        if not self.judged:
            made = f"{count(self.launches, 'launch')} of {count(len(self.nodes), 'node')}"
            return [*found, f"{made}: too few to name slow ones ({LEAST})."]
        if self.slow_nodes:
            names = listed([f"{o.node} ({_longer(o.ratio)})" for o in self.slow_nodes], MOST)
            of = f"{len(self.slow_nodes)} of {len(self.nodes)} nodes {_are(self.slow_nodes)} slow"
            found.append(f"{of}: {names}.")
        if self.apart:
            found.append("They are slow to the others, not among themselves: another switch?")
        if self.slow_pairs:
            way = " - " if self.median[-1][0] is None else " to "  # a figure of both, or of one
            each = [f"{o.node}{way}{o.to} ({_longer(o.ratio)})" for o in self.slow_pairs]
            pairs = f"{count(len(each), 'pair')} {_are(self.slow_pairs)} slow"
            found.append(f"{pairs}: {listed(each, MOST)}.")
        if not self.slow_nodes and not self.slow_pairs:
            found.append("No node and no pair stands out.")
        return found


def _are(several: Sequence[Slow]) -> str:
    return "is" if len(several) == 1 else "are"


def _were(several: Sequence[Slow]) -> str:
    return "was" if len(several) == 1 else "were"


def _longer(ratio: float) -> str:
    """Return by how much it takes longer: "20 % longer", "2.1 x as long"."""
    if ratio >= 1.995:
        return f"{ratio:.2g} x as long"
    return f"{100 * (ratio - 1):.0f} % longer"


def matrices(seen: Seen) -> tuple[Matrix, ...] | None:
    """Return the matrices of a study's good launches; None without any.

    They are ordered by benchmark, then by metric and size, then by arm.
    """
    plan, evidence = seen.plan, seen.evidence
    facts: dict[tuple[str, str], list[Facts]] = {}
    for one in seen.launches:
        if one.void is None and one.outcome.state is State.OK:
            key = one.launch.benchmark, one.launch.arm
            facts.setdefault(key, []).append(one.outcome.facts)
    found: list[Matrix] = []
    for selection in plan.study.benchmarks:
        label = selection.label
        metrics = [m for m in plan.metrics[label] if m.endpoint == "median"]
        mine: list[Matrix] = []
        for arm in plan.study.arms:
            launches = [
                entry.medians
                for entry in evidence.entries(label)
                if entry.launch.arm == arm.name
                and entry.state is State.OK
                and evidence.counted(entry.launch)
            ]
            its = facts.get((label, arm.name), ())
            mine += of_launches(launches, metrics, its, benchmark=label, arm=arm.name)
        for case in dict.fromkeys((m.metric, m.case) for m in mine):
            found += [m for m in mine if (m.metric, m.case) == case]
    return tuple(found) or None


def names_of(hosts: object) -> tuple[str, ...]:
    """Return a name for each rank: its host's, and its number where the host has several.

    >>> names_of(["a", "b"]), names_of(["a", "a"])
    (('a', 'b'), ('a:0', 'a:1'))
    """
    listed = [str(host) for host in hosts] if isinstance(hosts, list) else []
    return tuple(
        f"{host}:{rank}" if listed.count(host) > 1 else host for rank, host in enumerate(listed)
    )


def of_launches(
    launches: Sequence[Mapping[Cell, float]],
    metrics: Sequence[Metric],
    facts: Sequence[Facts] = (),
    *,
    benchmark: str = "pairs",
    arm: str = "",
) -> list[Matrix]:
    """Return a matrix for each metric and size that all `launches` have; each is its figures.

    `facts` are those of the launches; without hosts in them nodes are named by their ranks. Cells
    that are not of a pair are skipped.
    """
    known = {metric.name: metric for metric in metrics}
    cells: dict[tuple[str, Case], dict[tuple[int, int], Cell]] = {}
    for cell in launches[0] if launches else ():
        name, case = cell
        items = dict(case.items)
        if name in known and all(isinstance(items.get(key), int) for key in WAY):
            rest = Case(tuple(item for item in case.items if item[0] not in WAY))
            places = cells.setdefault((name, rest), {})
            places[int(items["from"]), int(items["to"])] = cell
    found = []
    names = names_of(facts[0].get(HOSTS) if facts else None)
    for (name, rest), places in cells.items():
        size = 1 + max(max(place) for place in places)
        if not all(cell in launch for launch in launches for cell in places.values()):
            continue
        seen = examine([_square(one, places, size) for one in launches], better=known[name].better)
        nodes = names if len(names) == size else tuple(map(str, range(size)))
        made = _matrix(seen, nodes, known[name], rest, len(launches), benchmark, arm)
        found.append(replace(made, crowded=_crowded(made, places, facts)))
    return found


def _crowded(
    matrix: Matrix, places: Mapping[tuple[int, int], Cell], facts: Sequence[Facts]
) -> tuple[Slow, ...]:
    """Return the pairs that were slow only while others were measured, the slowest first.

    In most launches the kernel measured them again, with fewer pairs at once, and they then
    exceeded the median pair by less than half of what they had exceeded it by before.
    """
    usual = statistics.median(matrix.figures)
    found = []
    for (a, b), cell in places.items():
        key = f"{CROWDED}{cell[0]}.{cell[1]}"
        before = [float(one[key]) for one in facts if key in one]
        after = matrix.median[a][b]
        if 2 * len(before) <= len(facts) or after is None:
            continue
        crowded = statistics.median(before)
        lower = matrix.metric.better == "lower"
        was, now = (crowded / usual, after / usual) if lower else (usual / crowded, usual / after)
        if was > 1.05 and now - 1 < (was - 1) / 2:
            found.append(Slow(was / now, matrix.nodes[a], matrix.nodes[b]))
    return tuple(sorted(found, key=lambda one: -one.ratio))


def _square(
    figures: Mapping[Cell, float], places: Mapping[tuple[int, int], Cell], size: int
) -> Floats:
    """Return a matrix of one launch's figures, NaN where there is none."""
    import numpy as np

    square = np.full((size, size), np.nan)
    for place, cell in places.items():
        square[place] = figures[cell]
    return square


def _matrix(
    seen: Examined,
    nodes: tuple[str, ...],
    metric: Metric,
    case: Case,
    launches: int,
    benchmark: str,
    arm: str,
) -> Matrix:
    """Return the matrix of what was examined, with the names of nodes for their numbers."""

    def named(one: Outlier) -> Slow:
        return Slow(one.ratio, nodes[one.first], "" if one.second is None else nodes[one.second])

    return Matrix(
        benchmark=benchmark,
        arm=arm,
        metric=metric,
        case=case,
        nodes=nodes,
        launches=launches,
        median=_rows(seen.median),
        low=_rows(seen.low),
        high=_rows(seen.high),
        level=seen.level,
        judged=seen.judged,
        slow_nodes=tuple(map(named, seen.nodes)),
        slow_pairs=tuple(map(named, seen.pairs)),
        apart=seen.apart,
    )


def _rows(square: Floats) -> tuple[tuple[float | None, ...], ...]:
    """Return a matrix as tuples, None for NaN."""
    return tuple(
        tuple(None if value != value else value for value in row) for row in square.tolist()
    )
