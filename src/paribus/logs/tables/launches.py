"""From rows to launches: one figure for each launch and cell, in blocks where the table allows it.

In goes a `Table`; out comes an `Arrangement`: `figures[cell][arm][block]` of each benchmark, where
a cell is a metric and a case. Blocks are those of the column `block`, or launches that are
neighbours in time; without either, figures are by launch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import Any, Literal

from paribus.core import Case, UserError, grouped, natural
from paribus.logs.tables.table import Row, Table, case_key, shown

LEAST_PAIRED = 0.5
"""Share of all launches that must stand beside one of every other arm to count as paired.

A coin for each launch would pair two thirds, ABAB and ABBA all; all A, then all B pair none.
"""

Launch = str | float | None
"""A launch of an arm by its name, its time, or its number."""

Placed = Sequence[tuple[Row, Any]]
"""Rows of one benchmark, each with its launch, or the number of its block, from 1."""


def neighbours(arms: Sequence[str], count: int) -> list[int]:
    """Return where each block begins: `count` launches in a row, each of another arm.

    `arms` are those of all launches in order of time.

    >>> neighbours(["a", "b", "b", "b", "a"], 2)
    [0, 3]
    """
    begins, at = [], 0
    while at + count <= len(arms):
        if len(set(arms[at : at + count])) == count:
            begins.append(at)
            at += count
        else:
            at += 1
    return begins


def alternating(blocks: int, arms: int, launches: int) -> bool:
    """Return whether so many blocks of neighbours, of all launches, show that the arms alternate.

    One block pairs nothing, and would leave all launches beside it out.
    """
    return blocks > 1 and blocks * arms >= LEAST_PAIRED * launches


Kind = Literal["blocks", "neighbours", "apart", "unordered"]
Cell = tuple[str, Case]
"""Metric and case."""

Figures = Mapping[Cell, Mapping[str, Mapping[Any, float]]]
"""Values by cell, arm, and block or launch."""

MOST_ARMS = 50
"""Arms beyond which the column surely means something else."""


@dataclass(frozen=True, slots=True)
class Group:
    """The launches of one benchmark.

    `figures`: `figures[cell][arm]`, with metrics as they appear, and cases in order. In blocks they
    are by the number of each block that every arm has complete; otherwise by launch, in no order.
    `files`: `files[arm]` says where the first row of each block or launch was read.

    In blocks only:
    `names`, `numbers`: of the complete blocks, the numbers counted from 1 in the order of all.
    `times`: `times[arm][number]` in seconds, None for a table without times.
    `left_out`: the name of each incomplete block, and what it lacks.
    `lacking`: for each arm the numbers of the blocks that it lacks.
    `attempted`: how many blocks there are, complete or not.
    """

    benchmark: str
    figures: Figures
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    times: Mapping[str, Mapping[int, float]] | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    lacking: tuple[tuple[int, ...], ...] = ()
    attempted: int = 0
    files: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)

    def launches(self, arms: Iterable[str]) -> list[int]:
        """Return how many launches, or blocks, each of `arms` has."""
        return [max(len(of[arm]) for of in self.figures.values()) for arm in arms]

    @property
    def one_each(self) -> bool:
        """Return whether no arm has a second launch."""
        return max(self.launches(next(iter(self.figures.values())))) < 2


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Benchmarks of a table whose launches are paired in one way, or not at all.

    `kind`: "blocks" if the table has them; "neighbours" if launches next to each other in time are
    paired; "apart" if the table has times, but the arms do not alternate; otherwise "unordered".
    `several`: whether a value is the median of the launches of one arm in a block.
    `sampled`: whether a launch is the median of its samples. Without both, it is one row.
    `unpaired`: how many launches have no neighbour; `gap_s`: the median time between neighbours.
    `alone`: the same benchmarks by launch, none where their blocks alone are judged.
    """

    kind: Kind
    arms: tuple[str, ...]
    groups: tuple[Group, ...]
    several: bool = False
    sampled: bool = False
    unpaired: int = 0
    gap_s: float = 0.0
    alone: tuple[Group, ...] = ()

    @property
    def paired(self) -> bool:
        """Return whether launches are in blocks."""
        return self.kind in ("blocks", "neighbours")


def without_lacking(table: Table) -> tuple[Table, dict[tuple[str, str], list[str]]]:
    """Return a table without the metrics that some arm has nowhere, and the names of these.

    They are by benchmark, and an arm that has them. So a p99 that one arm lacks does not keep the
    rest from being compared. The first metric of a benchmark, which decides, is kept: `arrange`
    refuses the table if an arm lacks it.
    """
    arms = {row.arm for row in table.rows}
    having: dict[str, dict[str, dict[str, None]]] = {}
    for row in table.rows:
        having.setdefault(row.benchmark, {}).setdefault(row.metric, {})[row.arm] = None
    left = {
        (benchmark, name): next(iter(mine))
        for benchmark, metrics in having.items()
        for name, mine in [*metrics.items()][1:]
        if len(mine) < len(arms)
    }
    rows = [row for row in table.rows if (row.benchmark, row.metric) not in left]
    lacking = grouped(((benchmark, arm), name) for (benchmark, name), arm in left.items())
    return replace(table, rows=rows), lacking


def arrange(table: Table, reference: str = "") -> tuple[Arrangement, ...]:
    """Return the launches of `table`, the arm `reference` (or the first to appear) first.

    Benchmarks whose arms alternate in time are apart from those whose arms do not: what pairs the
    launches of one says nothing of another. The figure of a launch is the median of its samples,
    that of an arm in a block the median of its launches. Raises UserError for fewer than two arms,
    a table that is repeated, two rows of the same sample, and a benchmark or case that an arm has
    nowhere.
    """
    arms = _arms(table, reference)
    _check_whole(table.rows, arms)
    if table.of == "table":
        _check_once(table.rows)
    every = grouped((row.benchmark, row) for row in table.rows)
    sampled = "sample" in table.columns
    if "block" in table.columns:
        names = _blocks_in_order(table.rows)
        numbers = {name: number for number, name in enumerate(names, 1)}
        groups = tuple(
            _in_blocks(table, [(row, numbers[row.block]) for row in rows], arms, names)
            for rows in every.values()
        )
        return (Arrangement("blocks", arms, groups, "launch" in table.columns, sampled),)
    blocks = {name: _neighbours(rows, arms) for name, rows in every.items() if table.timed}
    paired = [name for name, several in blocks.items() if several]
    groups = tuple(_by_block(table, every[name], arms, blocks[name]) for name in paired)
    alone = [_by_launch(table, rows) for rows in every.values()]
    found = []
    if paired:
        mine = tuple(group for group in alone if group.benchmark in paired)
        ends = [(one[0], one[-1]) for name in paired for one in blocks[name]]
        gap_s = median((last[0] - first[0]) / max(1, len(arms) - 1) for first, last in ends)
        launches = sum(len(of_arm) for group in mine for of_arm in group.files.values())
        left = launches - len(arms) * len(ends)
        found.append(Arrangement("neighbours", arms, groups, False, sampled, left, gap_s, mine))
    if rest := tuple(group for group in alone if group.benchmark not in paired):
        kind: Kind = "apart" if table.timed else "unordered"
        found.append(Arrangement(kind, arms, rest, False, sampled, alone=rest))
    return tuple(found)


def _arms(table: Table, reference: str) -> tuple[str, ...]:
    """Return the arms in order of appearance, but the reference first."""
    arms = list(dict.fromkeys(row.arm for row in table.rows))
    place, first = ", ".join(table.sources), ", ".join(map(shown, arms[:20]))
    if reference and reference not in arms:
        raise UserError(f"has no arm {shown(reference)}", place=place, fix=f"give one of: {first}")
    if len(arms) < 2:
        fix = "a comparison needs two: check the column arm, or give the other arm's file too"
        raise UserError(f"has one arm only, {first}", place=place, fix=fix)
    if len(arms) > MOST_ARMS:
        fix = f"give at most {MOST_ARMS}: is the column arm what you meant?"
        raise UserError(f"has {len(arms):,} arms, the first {first}", place=place, fix=fix)
    return tuple(sorted(arms, key=lambda name: bool(reference) and name != reference))


def _check_whole(rows: Iterable[Row], arms: Sequence[str]) -> None:
    """Raise UserError for a benchmark, metric or case that an arm has nowhere."""
    having: dict[tuple[str, str, Case], tuple[Row, set[str]]] = {}
    for row in rows:
        having.setdefault((row.benchmark, row.metric, row.case), (row, set()))[1].add(row.arm)
    for cell, (row, mine) in having.items():
        if len(mine) == len(arms):
            continue
        lacks = next(arm for arm in arms if arm not in mine)
        theirs = [other for other, (_, of) in having.items() if lacks in of]
        depth = next(n for n in (1, 2, 3) if all(other[:n] != cell[:n] for other in theirs))
        column = ("benchmark", "metric", "case")[depth - 1]
        what = " of ".join(shown(part) for part in reversed(cell[:depth]))
        has = next(arm for arm in arms if arm in mine)
        raise UserError(
            f"{column} {what} is in arm {shown(has)}, but not in arm {shown(lacks)}",
            place=f"{row.place}, column {column}",
            fix="give all arms the same benchmarks, metrics and cases; remove what one lacks",
        )


LEAST_REPEATED = 8
"""Different rows, at least, that show by being there as often each that a table is repeated."""

FINE = 4
"""Digits, at least, of a value that two launches hardly both give."""


def _check_once(rows: Sequence[Row]) -> None:
    """Raise UserError for a table that is repeated, as by a file given twice, or by a join.

    Not where launches are always the same: such a cell has one value.
    """
    if 2 * len({row.value for row in rows}) > len(rows):
        return
    times = Counter(row._replace(place="") for row in rows)
    cells = len({(row.arm, row.benchmark, row.metric, row.case) for row in times})
    digits = [f"{row.value:e}".partition("e")[0].replace(".", "").rstrip("0") for row in times]
    fine = sum(len(one) >= FINE for one in digits)
    often, *others = {*times.values()}
    if others or often < 2 or len(times) < max(LEAST_REPEATED, 3 * cells) or 2 * fine < len(times):
        return
    first = rows[0]._replace(place="")
    place = next(row.place for row in rows[1:] if row._replace(place="") == first)
    cause = f"repeats {rows[0].place}: each row is there {often} times"
    fix = "remove the rows that are repeated; number launches that are the same by a column launch"
    raise UserError(cause, place=place, fix=fix)


def _figures(table: Table, placed: Placed) -> Figures:
    """Return the figures of a benchmark, metrics as they appear, and cases in order.

    Raises UserError for two rows of one launch and cell that have no sample, or the same.
    """
    together = grouped((((row.metric, row.case), row.arm, block), row) for row, block in placed)
    figures: dict[Cell, dict[str, dict[Any, float]]] = {}
    for (cell, arm, block), rows in together.items():
        of_arm = figures.setdefault(cell, {}).setdefault(arm, {})
        of_arm[block] = rows[0].value if len(rows) == 1 else _figure(table, rows)
    rank = {metric: i for i, metric in enumerate(dict.fromkeys(metric for metric, _ in figures))}
    cells = sorted(figures, key=lambda cell: (rank[cell[0]], case_key(cell[1])))
    return {cell: figures[cell] for cell in cells}


def _files(table: Table, placed: Placed) -> dict[str, dict[Any, str]]:
    """Return by arm, and block or launch, the file in which its first row is."""
    found: dict[str, dict[Any, str]] = {}
    for row, block in placed:
        of_arm = found.setdefault(row.arm, {})
        if block not in of_arm:
            within = (name for name in table.sources if row.place.startswith(f"{name}, row "))
            of_arm[block] = next(within, row.place)
    return found


def _figure(table: Table, rows: Sequence[Row]) -> float:
    """Return the median over launches of the median of their samples."""
    samples: dict[tuple[str, str], Row] = {}
    launches: dict[str, list[float]] = {}
    for row in rows:
        before = samples.setdefault((row.launch, row.sample), row)
        if before is not row:
            names = ["arm", "block", "benchmark", "case", "metric", "launch", "sample"]
            if not {"block", "launch"} & table.columns:
                names.insert(1, "time")
            same = [name for name in names if getattr(row, name) not in ("", None)]
            raise UserError(
                f"has the same {', '.join(same)} as {before.place}",
                place=row.place,
                fix="remove one; number samples of one launch in a column `sample`,"
                " and launches of one arm in a block in a column `launch`",
            )
        launches.setdefault(row.launch, []).append(row.value)
    return _median([_median(values) for values in launches.values()])


def _median(values: list[float]) -> float:
    """Return the median; halves are added, because a sum may be beyond any float."""
    values.sort()
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    return low if low == high else low / 2 + high / 2


# --- launches ---


def _launch_of(row: Row) -> Launch:
    return row.launch or row.time


def _by_launch(table: Table, rows: Sequence[Row]) -> Group:
    """Return a benchmark with its figures by launch.

    A row is a launch unless columns say which rows are samples of one: the n-th value of each arm
    and cell is of launch n.
    """
    placed: list[tuple[Row, Launch]] = [(row, _launch_of(row)) for row in rows]
    if not {"launch", "time", "sample"} & table.columns:
        seen: Counter[tuple[str, str, Case]] = Counter()
        placed = []
        for row in rows:
            seen[cell := (row.arm, row.metric, row.case)] += 1
            placed.append((row, seen[cell]))
    return Group(rows[0].benchmark, _figures(table, placed), files=_files(table, placed))


# --- blocks ---


def _blocks_in_order(rows: Iterable[Row]) -> list[str]:
    """Return the names of blocks by their first times, or else by themselves, 9 before 10."""
    starts: dict[str, float] = {}
    for row in rows:
        starts[row.block] = min(starts.get(row.block, inf), 0.0 if row.time is None else row.time)
    return sorted(starts, key=lambda name: (starts[name], natural(name)))


def _neighbours(rows: Iterable[Row], arms: Sequence[str]) -> list[list[tuple[float, str, Launch]]]:
    """Return the launches of a benchmark in blocks of neighbours in time, each arm once.

    A launch has its start, its arm, and its name or time. In order of time, as many launches as
    there are arms make a block if they are of different arms; otherwise the earliest is skipped.
    That looks at times and arms only, never at values, so it cannot favour an arm. No block is
    returned if most launches have no neighbours.
    """
    starts: dict[tuple[str, Launch], float] = {}
    for row in rows:
        launch = (row.arm, _launch_of(row))
        starts[launch] = min(starts.get(launch, inf), inf if row.time is None else row.time)
    # Of launches at one time none is known to be the first, so it may not be the reference's.
    in_time = sorted(
        ((at, arm, launch) for (arm, launch), at in starts.items()),
        key=lambda one: (one[0], one[1], str(one[2])),
    )
    begins = neighbours([arm for _, arm, _ in in_time], len(arms))
    if not alternating(len(begins), len(arms), len(in_time)):
        return []
    return [in_time[begin : begin + len(arms)] for begin in begins]


def _by_block(
    table: Table,
    rows: Sequence[Row],
    arms: Sequence[str],
    blocks: Sequence[Sequence[tuple[float, str, Launch]]],
) -> Group:
    """Return a benchmark in the blocks of `_neighbours`, whose names are their numbers."""
    number = {(arm, one): n for n, block in enumerate(blocks, 1) for _, arm, one in block}
    of_rows = ((row, (row.arm, _launch_of(row))) for row in rows)
    placed = [(row, number[launch]) for row, launch in of_rows if launch in number]
    return _in_blocks(table, placed, arms, [str(n) for n in range(1, len(blocks) + 1)])


def _in_blocks(table: Table, placed: Placed, arms: Sequence[str], names: Sequence[str]) -> Group:
    """Return a benchmark with the figures of the blocks that every arm has complete.

    `names` are those of all blocks. Raises UserError if none is complete.
    """
    figures, benchmark = _figures(table, placed), placed[0][0].benchmark
    times: dict[str, dict[int, float]] = {arm: {} for arm in arms}
    for row, block in placed if table.timed else ():
        of_arm = times[row.arm]
        of_arm[block] = min(of_arm.get(block, inf), inf if row.time is None else row.time)
    counts: dict[int, dict[str, int]] = {}
    for of_arms in figures.values():
        for arm, of_blocks in of_arms.items():
            for block in of_blocks:
                counts.setdefault(block, dict.fromkeys(arms, 0))[arm] += 1
    attempted = sorted(counts)
    kept = [block for block in attempted if min(counts[block].values()) == len(figures)]
    left_out = tuple(
        (names[block - 1], _what_lacks(counts[block], len(figures)))
        for block in attempted
        if min(counts[block].values()) < len(figures)
    )
    if not kept:
        lack = "; ".join(f"block {shown(name)} lacks {what}" for name, what in left_out[:3])
        raise UserError(
            f"no block of benchmark {shown(benchmark)} is complete in all arms: {lack}",
            place=", ".join(table.sources),
            fix="give the rows that belong to one block the same name in the column block",
        )
    return Group(
        benchmark=benchmark,
        figures={
            cell: {arm: {block: of[arm][block] for block in kept} for arm in arms}
            for cell, of in figures.items()
        },
        names=tuple(names[block - 1] for block in kept),
        numbers=tuple(kept),
        times={arm: {block: of[block] for block in kept} for arm, of in times.items()}
        if table.timed
        else None,
        left_out=left_out,
        lacking=tuple(
            tuple(block for block in attempted if counts[block][arm] < len(figures)) for arm in arms
        ),
        attempted=len(attempted),
        files=_files(table, placed),
    )


def _what_lacks(counts: Mapping[str, int], cells: int) -> str:
    """Return what a block lacks: "3 of 4 cases of 'new'", "arm 'new'"; `counts` are its cells."""
    return ", ".join(
        f"{cells - found} of {cells} cases of {shown(arm)}" if found else f"arm {shown(arm)}"
        for arm, found in counts.items()
        if found < cells
    )
