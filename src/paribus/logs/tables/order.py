"""What the order of launches is known to be: blocks in theirs, and neighbours in time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from paribus.logs.tables.table import Row, Table

LEAST_PAIRED = 0.5
"""Share of all launches that must stand beside one of every other arm to count as paired.

A coin for each launch would pair two thirds, ABAB and ABBA all; all A, then all B pair none.
"""

Launch = tuple[str, str, str | float | None]
"""Benchmark, arm, and what tells its launches apart."""

Placed = Sequence[tuple[Row, int]]
"""Rows, and where the block of each is in the order of blocks, from 0."""


def launch_of(row: Row) -> Launch:
    """Return the launch of a row in a table without blocks: its name, or else its time."""
    return row.benchmark, row.arm, row.launch or row.time


def ordered_blocks(table: Table) -> tuple[tuple[str, ...], Placed]:
    """Return the blocks in order of their first time, or else of their names, 9 before 10."""
    starts: dict[str, float] = {}
    for row in table.rows:
        starts[row.block] = min(starts.get(row.block, inf), 0.0 if row.time is None else row.time)
    names = tuple(sorted(starts, key=lambda name: (starts[name], _natural(name))))
    position = {name: i for i, name in enumerate(names)}
    return names, [(row, position[row.block]) for row in table.rows]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names by the numbers in them; of any length, so not as int."""
    parts = re.split(r"([0-9]+)", name)
    digits = [part.lstrip("0") if i % 2 else part for i, part in enumerate(parts)]
    return [(len(part) if i % 2 else 0, part) for i, part in enumerate(digits)]


@dataclass(frozen=True, slots=True)
class Paired:
    """The rows of launches that have neighbours with their blocks, and how many have none.

    `gap_s` is the usual time from launch to launch inside a block, in seconds.
    """

    blocks: tuple[str, ...]
    placed: Placed
    unpaired: int
    gap_s: float


def pair_neighbours(table: Table, arms: Sequence[str]) -> Paired | None:
    """Return the launches in blocks of neighbours in time, each arm once; None if most have none.

    In order of time, as many launches as there are arms make a block if they are of different
    arms; otherwise the earliest is passed over. That looks at times and arms only, never at
    values, so it cannot favour an arm.
    """
    starts: dict[Launch, float] = {}
    for row in table.rows:
        launch = launch_of(row)
        starts[launch] = min(starts.get(launch, inf), inf if row.time is None else row.time)
    of_benchmark: dict[str, list[Launch]] = {}
    for launch in sorted(starts, key=lambda one: (starts[one], arms.index(one[1]), str(one[2]))):
        of_benchmark.setdefault(launch[0], []).append(launch)
    block_of: dict[Launch, int] = {}
    gaps = []
    for mine in of_benchmark.values():
        begins = neighbours([arm for _, arm, _ in mine], len(arms))
        if len(begins) * len(arms) < LEAST_PAIRED * len(mine):
            return None
        for number, begin in enumerate(begins):
            block = mine[begin : begin + len(arms)]
            block_of |= dict.fromkeys(block, number)
            gaps.append((starts[block[-1]] - starts[block[0]]) / max(1, len(arms) - 1))
    placed = [(row, block_of[i]) for row in table.rows if (i := launch_of(row)) in block_of]
    names = tuple(str(i + 1) for i in range(max(block_of.values()) + 1))
    return Paired(names, placed, len(starts) - len(block_of), median(gaps))


def neighbours(arms: Sequence[str], count: int) -> list[int]:
    """Return where each block begins: `count` launches in a row, of as many arms."""
    begins, at = [], 0
    while at + count <= len(arms):
        if len(set(arms[at : at + count])) == count:
            begins.append(at)
            at += count
        else:
            at += 1
    return begins
