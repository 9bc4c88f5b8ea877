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
from paribus.logs.tables.cases import case_key
from paribus.logs.tables.table import Row, Table, shown

LEAST_PAIRED = 0.5
"""Share of all launches that must stand beside one of every other arm to count as paired.

A coin for each launch would pair two thirds, ABAB and ABBA all; all A, then all B pair none.
"""

Launch = tuple[str, str, str | float | None]
"""Benchmark, arm, and the launch's name or time."""

Placed = Sequence[tuple[Row, int]]
"""Rows, each with the place of its block in the order of blocks, from 1."""


def launch_of(row: Row) -> Launch:
    """Return the launch of a row in a table without blocks, by its name, or else by its time."""
    return row.benchmark, row.arm, row.launch or row.time


def ordered_blocks(table: Table) -> tuple[tuple[str, ...], Placed]:
    """Return the names of the blocks in order, and the rows with the place of their block.

    The order is that of their first times, or else of their names, 9 before 10.
    """
    starts: dict[str, float] = {}
    for row in table.rows:
        starts[row.block] = min(starts.get(row.block, inf), 0.0 if row.time is None else row.time)
    names = tuple(sorted(starts, key=lambda name: (starts[name], natural(name))))
    position = {name: i for i, name in enumerate(names, 1)}
    return names, [(row, position[row.block]) for row in table.rows]


@dataclass(frozen=True, slots=True)
class Paired:
    """Launches in blocks of neighbours in time.

    `benchmarks` are those whose arms alternate. `blocks` are the names of their blocks, `placed`
    the rows of launches that have neighbours; `unpaired` is how many launches have none. `gap_s`
    is the median time from launch to launch within a block, in seconds.
    """

    benchmarks: frozenset[str]
    blocks: tuple[str, ...]
    placed: Placed
    unpaired: int
    gap_s: float


def pair_neighbours(table: Table, arms: Sequence[str]) -> Paired | None:
    """Return the launches in blocks of neighbours in time, each arm once; None if there are none.

    In order of time, as many launches as there are arms make a block if they are of different
    arms; otherwise the earliest is skipped. That looks at times and arms only, never at
    values, so it cannot favour an arm. Benchmarks most of whose launches have no neighbours are
    left out.
    """
    starts: dict[Launch, float] = {}
    for row in table.rows:
        launch = launch_of(row)
        starts[launch] = min(starts.get(launch, inf), inf if row.time is None else row.time)
    # Of launches at one time none is known to be the first, so it may not be the reference's.
    in_time = sorted(starts, key=lambda one: (starts[one], one[1], str(one[2])))
    block_of: dict[Launch, int] = {}
    gaps = []
    benchmarks: dict[str, int] = {}
    for benchmark, mine in grouped((launch[0], launch) for launch in in_time).items():
        begins = neighbours([arm for _, arm, _ in mine], len(arms))
        if not alternating(len(begins), len(arms), len(mine)):
            continue
        benchmarks[benchmark] = len(mine)
        for number, begin in enumerate(begins, 1):
            block = mine[begin : begin + len(arms)]
            block_of |= dict.fromkeys(block, number)
            gaps.append((starts[block[-1]] - starts[block[0]]) / max(1, len(arms) - 1))
    if not benchmarks:
        return None
    placed = [(row, block_of[i]) for row in table.rows if (i := launch_of(row)) in block_of]
    names = tuple(str(i + 1) for i in range(max(block_of.values())))
    left = sum(benchmarks.values()) - len(block_of)
    return Paired(frozenset(benchmarks), names, placed, left, median(gaps))


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


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Benchmarks of a table whose launches are paired in one way, or not at all.

    `kind`: "blocks" if the table has them; "neighbours" if launches next to each other in time are
    paired; "apart" if the table has times, but the arms do not alternate; otherwise "unordered".
    `several`: whether a value is the median of the launches of one arm in a block.
    `sampled`: whether a launch is the median of its samples. Without both, it is one row.
    `unpaired`: how many launches have no neighbour; `gap_s`: the median time between neighbours.
    """

    kind: Kind
    arms: tuple[str, ...]
    groups: tuple[Group, ...]
    several: bool = False
    sampled: bool = False
    unpaired: int = 0
    gap_s: float = 0.0


def without_lacking(table: Table) -> tuple[Table, list[tuple[str, str, str]]]:
    """Return a table without the metrics that some arm has nowhere, and a list of these.

    Each is its benchmark, an arm that has it, and its name. So a p99 that one arm lacks does not
    keep the rest from being compared. The first metric of a benchmark, which decides, is kept:
    `arrange` refuses the table if an arm lacks it.
    """
    arms = {row.arm for row in table.rows}
    having: dict[tuple[str, str], dict[str, None]] = {}
    for row in table.rows:
        having.setdefault((row.benchmark, row.metric), {})[row.arm] = None
    first: dict[str, str] = {}
    for benchmark, metric in having:
        first.setdefault(benchmark, metric)
    lacking = {
        cell: next(iter(mine))
        for cell, mine in having.items()
        if len(mine) < len(arms) and first[cell[0]] != cell[1]
    }
    if not lacking:
        return table, []
    rows = [row for row in table.rows if (row.benchmark, row.metric) not in lacking]
    return replace(table, rows=rows), [(one, arm, name) for (one, name), arm in lacking.items()]


def arrange(table: Table, reference: str = "", *, paired: bool = True) -> tuple[Arrangement, ...]:
    """Return the launches of `table`, the arm `reference` (or the first to appear) first.

    Benchmarks whose arms alternate in time are apart from those whose arms do not: what pairs the
    launches of one says nothing of another. The figure of a launch is the median of its samples,
    that of an arm in a block the median of its launches. Without `paired` neighbours in time are
    not paired, and it is one arrangement. Raises UserError for fewer than two arms, two rows of
    the same sample, and a benchmark or case that an arm has nowhere.
    """
    arms = _arms(table, reference)
    _check_whole(table.rows, arms)
    sampled = "sample" in table.columns
    if "block" in table.columns:
        names, placed = ordered_blocks(table)
        groups = tuple(_blocks(table, arms, names, placed))
        return (Arrangement("blocks", arms, groups, "launch" in table.columns, sampled),)
    found = []
    if paired and table.timed and (pairs := pair_neighbours(table, arms)):
        groups = tuple(_blocks(table, arms, pairs.blocks, pairs.placed))
        how = (False, sampled, pairs.unpaired, pairs.gap_s)
        found.append(Arrangement("neighbours", arms, groups, *how))
        rows = [row for row in table.rows if row.benchmark not in pairs.benchmarks]
        table = replace(table, rows=rows)
    if table.rows:
        # A row is a launch unless columns say which rows are samples of one.
        each = not {"launch", "time", "sample"} & table.columns
        launches = _numbered(table) if each else [(row, launch_of(row)) for row in table.rows]
        files = _files(table, launches)
        groups = tuple(
            Group(benchmark, _ordered(figures), files=files[benchmark])
            for benchmark, figures in _figures(table, launches).items()
        )
        kind: Kind = "apart" if table.timed else "unordered"
        found.append(Arrangement(kind, arms, groups, False, sampled))
    return tuple(found)


def _numbered(table: Table) -> list[tuple[Row, int]]:
    """Return rows with the number of their launch: the n-th value of each arm and cell is of n."""
    seen: Counter[tuple[str, str, str, Case]] = Counter()
    found = []
    for row in table.rows:
        seen[cell := (row.benchmark, row.arm, row.metric, row.case)] += 1
        found.append((row, seen[cell]))
    return found


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


def _figures(table: Table, placed: Iterable[tuple[Row, Any]]) -> dict[str, Figures]:
    """Return the figures of each benchmark by cell, arm and block (or launch), as they appear.

    Raises UserError for two rows of one launch and cell that have no sample, or the same.
    """
    together = grouped(
        ((row.benchmark, (row.metric, row.case), row.arm, block), row) for row, block in placed
    )
    found: dict[str, dict[Cell, dict[str, dict[Any, float]]]] = {}
    for (benchmark, cell, arm, block), rows in together.items():
        of_arm = found.setdefault(benchmark, {}).setdefault(cell, {}).setdefault(arm, {})
        of_arm[block] = rows[0].value if len(rows) == 1 else _figure(table, rows)
    return dict(found)


def _files(table: Table, placed: Iterable[tuple[Row, Any]]) -> dict[str, dict[str, dict[Any, str]]]:
    """Return by benchmark, arm, and block (or launch) the file in which its first row is."""
    found: dict[str, dict[str, dict[Any, str]]] = {}
    for row, block in placed:
        of_arm = found.setdefault(row.benchmark, {}).setdefault(row.arm, {})
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


def _ordered(figures: Figures) -> Figures:
    """Return figures with their metrics as they appear, and cases in order."""
    rank = {metric: i for i, metric in enumerate(dict.fromkeys(metric for metric, _ in figures))}
    cells = sorted(figures, key=lambda cell: (rank[cell[0]], case_key(cell[1])))
    return {cell: figures[cell] for cell in cells}


# --- blocks ---


def _blocks(
    table: Table, arms: Sequence[str], names: Sequence[str], placed: Placed
) -> Iterable[Group]:
    """Yield every benchmark with its launches in blocks; `names` are those of all blocks."""
    starts: dict[tuple[str, str, int], float] = {}
    for row, block in placed if table.timed else ():
        key = row.benchmark, row.arm, block
        starts[key] = min(starts.get(key, inf), inf if row.time is None else row.time)
    files = _files(table, placed)
    for benchmark, figures in _figures(table, placed).items():
        group = _group(benchmark, _ordered(figures), arms, names, starts)
        group = replace(group, files=files[benchmark])
        if not group.numbers:
            lack = "; ".join(f"block {shown(b)} lacks {what}" for b, what in group.left_out[:3])
            raise UserError(
                f"no block of benchmark {shown(benchmark)} is complete in all arms: {lack}",
                place=", ".join(table.sources),
                fix="give the rows that belong to one block the same name in the column block",
            )
        yield group


def _group(
    benchmark: str,
    figures: Figures,
    arms: Sequence[str],
    names: Sequence[str],
    starts: Mapping[tuple[str, str, int], float],
) -> Group:
    """Return one benchmark with the figures of the blocks that every arm has complete.

    `starts` are the times of launches by benchmark, arm and block, empty without times.
    """
    counts: dict[int, dict[str, int]] = {}
    for of_arms in figures.values():
        for arm, of_blocks in of_arms.items():
            for block in of_blocks:
                of = counts.setdefault(block, dict.fromkeys(arms, 0))
                of[arm] += 1
    attempted = sorted(counts)
    kept = [block for block in attempted if min(counts[block].values()) == len(figures)]
    return Group(
        benchmark=benchmark,
        figures={
            cell: {arm: {block: of[arm][block] for block in kept} for arm in arms}
            for cell, of in figures.items()
        },
        names=tuple(names[block - 1] for block in kept),
        numbers=tuple(kept),
        times={arm: {block: starts[benchmark, arm, block] for block in kept} for arm in arms}
        if starts
        else None,
        left_out=tuple(
            (names[block - 1], _what_lacks(counts[block], len(figures)))
            for block in attempted
            if min(counts[block].values()) < len(figures)
        ),
        lacking=tuple(
            tuple(block for block in attempted if counts[block][arm] < len(figures)) for arm in arms
        ),
        attempted=len(attempted),
    )


def _what_lacks(counts: Mapping[str, int], cells: int) -> str:
    """Return what a block lacks: "3 of 4 cases of 'new'", "arm 'new'"; `counts` are its cells."""
    return ", ".join(
        f"{cells - found} of {cells} cases of {shown(arm)}" if found else f"arm {shown(arm)}"
        for arm, found in counts.items()
        if found < cells
    )
