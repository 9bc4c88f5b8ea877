"""From rows to launches: one value per launch and cell, in blocks where the table allows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from paribus.errors import UserError
from paribus.model import Case
from paribus.tables.cases import case_key
from paribus.tables.groups import medians, number, repeated, split
from paribus.tables.order import columns, launch_identity, ordered_blocks, pair_neighbours
from paribus.tables.table import Labels, Table, shown

if TYPE_CHECKING:
    from paribus.tables.groups import Floats, Ints

Kind = Literal["blocks", "neighbours", "apart", "unordered"]
Cell = tuple[str, Case]

MOST_ARMS = 50
"""Arms beyond which the column surely means something else."""


@dataclass(frozen=True, slots=True)
class Group:
    """The launches of one benchmark.

    In blocks: `values[arm, block, cell]`, NaN for a launch that the table does not have whole;
    the `names` of the blocks and their `numbers` from 1 in the order of the table;
    `times[arm, block]` in seconds if the table has times; `left_out`, the name of each block
    that an arm lacks, with what it lacks; `lacking[arm]` such blocks, among `attempted`.
    Not in blocks: `piles[cell][arm]`, the values of the launches in ascending order.
    """

    benchmark: str
    cells: tuple[Cell, ...]
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    values: Floats | None = None
    times: Floats | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    lacking: tuple[tuple[int, ...], ...] = ()
    attempted: int = 0
    piles: Sequence[Sequence[Floats]] = ()


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The launches of a table, and what pairs them.

    "blocks": the table says so; "neighbours": launches next to each other in time; "apart": the
    table has times, but the arms do not alternate in them; "unordered": neither blocks nor
    times. With `several` a value is the median of the launches of one arm in a block, with
    `sampled` a launch is the median of its samples; otherwise each is one row of the table.
    `unpaired` launches have no neighbour; `gap_s` is the usual time between two neighbours.
    """

    kind: Kind
    arms: tuple[str, ...]
    groups: tuple[Group, ...]
    several: bool = False
    sampled: bool = False
    unpaired: int = 0
    gap_s: float = 0.0


def arrange(table: Table, reference: str = "") -> Arrangement:
    """Return the launches of `table`, the arm `reference` (or the first to appear) first.

    Samples of a launch become their median, launches of one arm in a block the median of theirs.
    Raises UserError for fewer than two arms, rows that say the same twice, and a benchmark or a
    case that an arm has nowhere.
    """
    table, arms = _with_arms(table, reference)
    _check_whole(table, arms)
    sampled = table.sample is not None
    if table.block is not None:
        groups = _in_blocks(table, arms, ordered_blocks(table, table.block))
        return Arrangement("blocks", arms, groups, table.launch is not None, sampled)
    if table.times is not None:
        paired = pair_neighbours(table, len(arms))
        if paired is not None:
            groups = _in_blocks(paired.table, arms, paired.blocks)
            return Arrangement(
                "neighbours", arms, groups, False, sampled, paired.unpaired, paired.gap_s
            )
        return Arrangement("apart", arms, _piles(table, arms), False, sampled)
    return Arrangement("unordered", arms, _piles(table, arms), False, sampled)


def _with_arms(table: Table, reference: str) -> tuple[Table, tuple[str, ...]]:
    """Return the table with its arms numbered in order, the reference first, and their names."""
    import numpy as np

    _, first = number([(table.arm.codes, len(table.arm.names))])
    arms = [table.arm.names[code] for code in table.arm.codes[np.sort(first)].tolist()]
    if reference and reference not in arms:
        raise UserError(
            f"has no arm {shown(reference)}",
            place=table.sources[0],
            fix=f"give one of these: {', '.join(map(shown, arms[:20]))}",
        )
    if len(arms) < 2:
        raise UserError(
            f"has one arm only, {shown(arms[0])}",
            place=", ".join(table.sources),
            fix="a comparison needs two: check the column arm, or give the other arm's file too",
        )
    if len(arms) > MOST_ARMS:
        raise UserError(
            f"has {len(arms):,} arms, the first {', '.join(map(shown, arms[:3]))}",
            place=table.sources[0],
            fix=f"at most {MOST_ARMS} are compared: is the column arm what you meant?",
        )
    if reference:
        arms.sort(key=lambda name: name != reference)
    position = {name: index for index, name in enumerate(arms)}
    codes = np.array([position.get(name, -1) for name in table.arm.names], dtype=np.int32)
    labels = Labels(codes[table.arm.codes], tuple(arms))
    return replace(table, arm=labels), tuple(arms)


def _cells(table: Table) -> tuple[Ints, Ints]:
    """Return the cell of every row, cells of one benchmark together, and the first row of each."""
    return number(columns(table, "benchmark", "metric", "case"))


def _check_whole(table: Table, arms: Sequence[str]) -> None:
    """Raise UserError for a benchmark or a cell that an arm has nowhere."""
    import numpy as np

    cells, first = _cells(table)
    present = np.zeros((len(first), len(arms)), dtype=bool)
    present[cells, table.arm.codes] = True
    missing = np.argwhere(~present)
    if not len(missing):
        return
    cell, arm = missing[np.argmin(first[missing[:, 0]])].tolist()
    row = int(first[cell])
    of_benchmark = table.benchmark.codes[first] == table.benchmark.codes[row]
    of_metric = of_benchmark & (table.metric.codes[first] == table.metric.codes[row])
    what, column = (
        f"benchmark {shown(table.benchmark.names[table.benchmark.codes[row]])}",
        "benchmark",
    )
    if present[of_benchmark, arm].any():
        of = what.removeprefix("benchmark ")
        what, column = f"{shown(table.metric.names[table.metric.codes[row]])} of {of}", "metric"
    if present[of_metric, arm].any():
        case = table.case.names[table.case.codes[row]]
        what, column = f"{what} at {shown(case)}", "case"
    other = shown(arms[int(np.argmax(present[cell]))])
    raise UserError(
        f"{what} is in arm {other}, but nowhere in arm {shown(arms[arm])}",
        place=f"{table.place(row)}, column {column}",
        fix="give both arms the same benchmarks, metrics and cases; take out what one lacks",
    )


def _check_repeated(table: Table, key: Sequence[tuple[Any, int]], launch: str) -> None:
    """Raise UserError for two rows of one key, which `launch` names: block, launch or time."""
    groups, first = number(key)
    twice = repeated(groups, len(first))
    if twice is None:
        return
    names = ["arm", launch, "benchmark", "case", "metric"]
    names += ["launch"] if table.launch is not None and launch != "launch" else []
    names += ["sample"] if table.sample is not None else []
    row, before = twice
    raise UserError(
        f"has the same {', '.join(n for n in names if n)} as {table.place(before)}",
        place=table.place(row),
        fix="take one out; number samples of one launch in a column `sample`,"
        " and launches of one arm in a block in a column `launch`",
    )


# --- blocks ---


def _in_blocks(table: Table, arms: Sequence[str], blocks: Labels) -> tuple[Group, ...]:
    """Return every benchmark with its launches in `blocks`, which are numbered in their order."""
    cells, cell_first = _cells(table)
    cell, block = (cells, len(cell_first)), (blocks.codes, len(blocks.names))
    arm = (table.arm.codes, len(arms))
    _check_repeated(table, [cell, arm, block, *columns(table, "launch", "sample")], "block")
    groups, first = number([cell, arm, block, *columns(table, "launch")])
    values = medians(groups, len(first), table.values)
    if table.launch is not None:
        groups, again = number([(codes[first], bound) for codes, bound in (cell, arm, block)])
        values, first = medians(groups, len(again), values), first[again]
    found = []
    for benchmark in _benchmarks(table):
        named, position = _named_cells(table, cell_first, benchmark)
        mine = table.benchmark.codes[first] == benchmark
        rows = first[mine]
        places = (table.arm.codes[rows], blocks.codes[rows], position[cells[rows]])
        times = _times(table, blocks, benchmark, len(arms))
        name = table.benchmark.names[benchmark]
        group = _group(name, named, arms, blocks.names, places, values[mine], times)
        if not group.names:
            lack = "; ".join(f"block {shown(b)} lacks {what}" for b, what in group.left_out[:3])
            raise UserError(
                f"no block of benchmark {shown(name)} is whole in two arms: {lack}",
                place=", ".join(table.sources),
                fix="give the rows that belong to one block the same name in the column block",
            )
        found.append(group)
    return tuple(found)


def _group(
    benchmark: str,
    cells: tuple[Cell, ...],
    arms: Sequence[str],
    blocks: Sequence[str],
    places: tuple[Any, Any, Any],
    values: Floats,
    times: Floats | None,
) -> Group:
    """Return one benchmark from its `values` and their `places`: arm, block and cell of each."""
    import numpy as np

    arm, block, cell = places
    shape = (len(arms), len(blocks))
    launch = arm.astype(np.int64) * shape[1] + block
    counts = np.bincount(launch, minlength=shape[0] * shape[1]).reshape(shape)
    whole = counts == len(cells)
    kept = np.flatnonzero(whole.all(axis=0))
    column = np.full(shape[1], -1)
    column[kept] = np.arange(len(kept))
    take = whole[arm, block] & (column[block] >= 0)
    grid = np.full((len(arms), len(kept), len(cells)), np.nan)
    grid[arm[take], column[block[take]], cell[take]] = values[take]
    attempted = np.flatnonzero(counts.any(axis=0))
    lacking = [attempted[~row[attempted]] for row in whole]
    incomplete = np.flatnonzero(counts.any(axis=0) & ~whole.all(axis=0))
    return Group(
        benchmark=benchmark,
        cells=cells,
        names=tuple(blocks[i] for i in kept.tolist()),
        numbers=tuple((kept + 1).tolist()),
        values=grid,
        times=None if times is None else times[:, kept],
        left_out=tuple(
            (blocks[i], _what_lacks(arms, counts[:, i].tolist(), len(cells)))
            for i in incomplete.tolist()
        ),
        lacking=tuple(tuple((row + 1).tolist()) for row in lacking),
        attempted=len(attempted),
    )


def _what_lacks(arms: Sequence[str], counts: Sequence[int], cells: int) -> str:
    return ", ".join(
        f"arm {shown(arm)}" if not count else f"{cells - count} of {cells} cases of {shown(arm)}"
        for arm, count in zip(arms, counts, strict=True)
        if count < cells
    )


def _named_cells(table: Table, first: Ints, benchmark: int) -> tuple[tuple[Cell, ...], Any]:
    """Return the cells of a benchmark, metrics as they appear and cases in order.

    Beside them, for the number of each cell of the table, its position among them.
    """
    import numpy as np

    mine = np.flatnonzero(table.benchmark.codes[first] == benchmark).tolist()
    appeared: dict[int, int] = {}
    for cell in mine:
        metric = int(table.metric.codes[first[cell]])
        appeared[metric] = min(appeared.get(metric, table.rows), int(first[cell]))
    keys = []
    for cell in mine:
        metric, case = (int(column.codes[first[cell]]) for column in (table.metric, table.case))
        keys.append((appeared[metric], case_key(table.cases[case]), metric, case, cell))
    keys.sort(key=lambda key: key[:2])
    position = np.full(len(first), -1)
    position[[key[4] for key in keys]] = np.arange(len(keys))
    return tuple((table.metric.names[key[2]], table.cases[key[3]]) for key in keys), position


def _benchmarks(table: Table) -> list[int]:
    """Return the codes of the benchmarks in the order in which they appear."""
    import numpy as np

    _, first = number(columns(table, "benchmark"))
    return [int(code) for code in table.benchmark.codes[np.sort(first)]]


def _times(table: Table, blocks: Labels, benchmark: int, arms: int) -> Floats | None:
    """Return when each arm began each block of a benchmark, inf where it did not."""
    import numpy as np

    if table.times is None:
        return None
    mine = table.benchmark.codes == benchmark
    found = np.full((arms, len(blocks.names)), np.inf)
    np.minimum.at(found, (table.arm.codes[mine], blocks.codes[mine]), table.times[mine])
    return found


# --- no blocks ---


def _piles(table: Table, arms: Sequence[str]) -> tuple[Group, ...]:
    """Return every benchmark with the launches of each cell and arm, in no order.

    A row is a launch unless columns say which rows are samples of one.
    """
    import numpy as np

    cells, cell_first = _cells(table)
    pile: list[tuple[Any, int]] = [(cells, len(cell_first)), (table.arm.codes, len(arms))]
    identity = launch_identity(table)
    values, first = table.values, np.arange(table.rows)
    if identity or table.sample is not None:
        said = "launch" if table.launch is not None else "time" if identity else ""
        _check_repeated(table, [*pile, *identity, *columns(table, "sample")], said)
        groups, first = number([*pile, *identity])
        values = medians(groups, len(first), values)
    groups, pile_first = number([(codes[first], bound) for codes, bound in pile])
    split_up = split(groups, len(pile_first), values)
    of = {
        (int(cells[row]), int(table.arm.codes[row])): split_up[i]
        for i, row in enumerate(first[pile_first].tolist())
    }
    found = []
    for benchmark in _benchmarks(table):
        named, position = _named_cells(table, cell_first, benchmark)
        order = np.argsort(position[position >= 0])
        numbers = np.flatnonzero(position >= 0)[order].tolist()
        piles = tuple(tuple(of[cell, arm] for arm in range(len(arms))) for cell in numbers)
        found.append(Group(table.benchmark.names[benchmark], named, piles=piles))
    return tuple(found)
