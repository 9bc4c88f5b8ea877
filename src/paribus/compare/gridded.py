"""Evidence that lies in arrays: what tables from elsewhere give, by block, arm and cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.judge.evidence import Cell, Entry
from paribus.model import Case, Launch, Metric, State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """One benchmark: `values[arm, block, cell]`, and `times[arm, block]` in seconds, if known.

    The `blocks` are numbered from 1; every value is finite and above zero.
    """

    arms: tuple[str, ...]
    blocks: tuple[int, ...]
    cells: tuple[Cell, ...]
    values: Floats
    times: Floats | None = None


class GriddedEvidence:
    """Evidence of launches that are all whole: series come from arrays, not from entries.

    A table has no failed attempts and no state probes: `failed` and `probes` are None, not empty.
    A table may have 10^6 cells; an entry holds only their geometric mean over the figure of
    merit, which is what the time axis shows.
    """

    def __init__(
        self,
        metrics: Mapping[str, Sequence[Metric]],
        grids: Mapping[str, Grid],
        *,
        before: int = 0,
    ) -> None:
        """Make the evidence of `grids`; its launches are numbered from `before` + 1 on."""
        import numpy as np

        self.session = 0
        self.probes = None
        self.failed = None
        self._grids = grids
        self._by_cell = {
            label: grid.values.transpose(0, 2, 1).copy() for label, grid in grids.items()
        }
        self._logs = {label: np.log(values) for label, values in self._by_cell.items()}
        self._columns = {
            label: {cell: i for i, cell in enumerate(grid.cells)} for label, grid in grids.items()
        }
        self.blocks: dict[str, dict[int, dict[str, Entry]]] = {}
        for label, grid in grids.items():
            blocks = self.blocks.setdefault(label, {})
            for entry in _entries(label, grid, metrics[label][0].name, before):
                blocks.setdefault(entry.launch.block, {})[entry.launch.arm] = entry
                before += 1

    @property
    def launches(self) -> dict[str, dict[int, dict[str, list[Entry]]]]:
        return {
            label: {block: {arm: [one] for arm, one in of.items()} for block, of in blocks.items()}
            for label, blocks in self.blocks.items()
        }

    def entries(self, benchmark: str) -> list[Entry]:
        blocks = self.blocks.get(benchmark, {})
        return [entry for block in sorted(blocks) for entry in blocks[block].values()]

    def counted(self, launch: Launch) -> bool:
        return launch.block > 0

    def complete(self, benchmark: str, arms: Iterable[str]) -> list[int]:
        return list(self._grids[benchmark].blocks)

    def cells(self, benchmark: str) -> list[Cell]:
        return list(self._grids[benchmark].cells)

    def cells_of(self, benchmark: str, metric: str) -> list[Cell]:
        return [cell for cell in self._grids[benchmark].cells if cell[0] == metric]

    def series(self, benchmark: str, arm: str, cell: Cell) -> dict[int, float]:
        grid = self._grids[benchmark]
        column = self._columns[benchmark][cell]
        values = self._by_cell[benchmark][grid.arms.index(arm), column]
        return dict(zip(grid.blocks, values.tolist(), strict=True))

    def log_ratios(self, benchmark: str, reference: str, arm: str, cell: Cell) -> dict[int, float]:
        grid = self._grids[benchmark]
        column = self._columns[benchmark][cell]
        logs = self._logs[benchmark]
        ratios = logs[grid.arms.index(arm), column] - logs[grid.arms.index(reference), column]
        return dict(zip(grid.blocks, ratios.tolist(), strict=True))

    def cut_off(self, benchmark: str, arm: str) -> list[int]:
        return []


def _entries(label: str, grid: Grid, merit: str, number: int) -> Iterable[Entry]:
    """Yield the launches of a benchmark; the time of one without any is the number of its block."""
    import numpy as np

    columns = [i for i, cell in enumerate(grid.cells) if cell[0] == merit]
    levels = np.exp(np.log(grid.values[:, :, columns]).mean(axis=2)).tolist()
    for i, arm in enumerate(grid.arms):
        for j, block in enumerate(grid.blocks):
            number += 1
            yield Entry(
                launch=Launch(number, block, label, arm, seed=0),
                state=State.OK,
                started=float(block) if grid.times is None else float(grid.times[i, j]),
                wall_s=0.0,
                error="",
                medians={(merit, Case()): levels[i][j]},
            )
