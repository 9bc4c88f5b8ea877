"""What the order of launches is known to be: blocks in theirs, and neighbours in time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from paribus.tables.groups import least, number
from paribus.tables.table import Labels, Table

if TYPE_CHECKING:
    from paribus.tables.groups import Ints

LEAST_PAIRED = 0.5
"""Share of all launches that must stand beside one of every other arm to count as paired.

A coin for each launch would pair two thirds, ABAB and ABBA all; all A, then all B pair none.
"""


def columns(table: Table, *names: str) -> list[tuple[Any, int]]:
    """Return codes and their bound for those of the columns that the table has."""
    found: list[Labels | None] = [getattr(table, name) for name in names]
    return [(column.codes, len(column.names)) for column in found if column is not None]


def launch_identity(table: Table) -> list[tuple[Any, int]]:
    """Return what tells the launches of an arm apart in a table without blocks, if anything."""
    import numpy as np

    if table.launch is not None or table.times is None:
        return columns(table, "launch")
    unique, codes = np.unique(table.times, return_inverse=True)
    return [(codes.ravel(), len(unique))]


def ordered_blocks(table: Table, blocks: Labels) -> Labels:
    """Return the blocks numbered by their first time, or else by their names, 9 before 10."""
    import numpy as np

    groups, first = number([(blocks.codes, len(blocks.names))])
    names = [blocks.names[code] for code in blocks.codes[first].tolist()]
    parts = [re.split(r"([0-9]+)", name) for name in names]
    keys: list[Any] = [[int(p) if i % 2 else p for i, p in enumerate(key)] for key in parts]
    if table.times is not None:
        starts = least(groups, len(first), table.times)
        keys = list(zip(starts.tolist(), keys, strict=True))
    order = sorted(range(len(names)), key=keys.__getitem__)
    position = np.empty(len(names), dtype=np.int32)
    position[order] = np.arange(len(names), dtype=np.int32)
    return Labels(position[groups], tuple(names[i] for i in order))


@dataclass(frozen=True, slots=True)
class Paired:
    """The rows of launches that have neighbours, the blocks they make, and how many have none."""

    table: Table
    blocks: Labels
    unpaired: int
    gap_s: float


def pair_neighbours(table: Table, arms: int) -> Paired | None:
    """Return the launches in blocks of neighbours in time, each arm once; None if most have none.

    In order of time, as many launches as there are arms make a block if they are of different
    arms; otherwise the earliest is passed over. That looks at times and arms only, never at
    values, so it cannot favour an arm.
    """
    import numpy as np

    if table.times is None:
        return None
    benchmark = (table.benchmark.codes, len(table.benchmark.names))
    arm = (table.arm.codes, arms)
    launches, first = number([benchmark, arm, *launch_identity(table)])
    starts = least(launches, len(first), table.times)
    of = table.benchmark.codes[first]
    arm_of = table.arm.codes[first]
    order = np.lexsort((arm_of, starts, of))
    blocks = np.full(len(first), -1, dtype=np.int32)
    most = 0
    for code in np.unique(of).tolist():
        mine = order[of[order] == code]
        paired = _greedy(arm_of[mine].tolist(), arms)
        if len(paired) * arms < LEAST_PAIRED * len(mine):
            return None
        for number_of, begin in enumerate(paired):
            blocks[mine[begin : begin + arms]] = number_of
        most = max(most, len(paired))
    kept = blocks >= 0
    rows = np.flatnonzero(kept[launches])
    labels = Labels(blocks[launches][rows], tuple(str(i + 1) for i in range(most)))
    gaps = _gaps(of[kept].astype(np.int64) * most + blocks[kept], starts[kept], arms)
    unpaired = len(first) - int(kept.sum())
    return Paired(_only(table, rows), labels, unpaired, float(np.median(gaps)))


def _greedy(arms: Sequence[int], count: int) -> list[int]:
    """Return where each block begins: `count` launches in a row, of as many arms."""
    begins, at = [], 0
    while at + count <= len(arms):
        if len(set(arms[at : at + count])) == count:
            begins.append(at)
            at += count
        else:
            at += 1
    return begins


def _gaps(block: Ints, starts: Any, arms: int) -> Any:
    """Return the mean time from launch to launch inside each block, in seconds."""
    import numpy as np

    order = np.lexsort((starts, block))
    inside = starts[order].reshape(-1, arms)
    return (inside[:, -1] - inside[:, 0]) / max(1, arms - 1)


def _only(table: Table, rows: Ints) -> Table:
    """Return a table of some rows; their launches are in blocks now, so they need no name."""

    columns = {field.name: getattr(table, field.name) for field in fields(table)}
    kept: dict[str, Any] = {
        name: Labels(column.codes[rows], column.names)
        for name, column in columns.items()
        if isinstance(column, Labels)
    }
    kept |= {
        "values": table.values[rows],
        "launch": None,
        "place": lambda r: table.place(int(rows[r])),
    }
    if table.times is not None:
        kept["times"] = table.times[rows]
    return replace(table, **kept)
