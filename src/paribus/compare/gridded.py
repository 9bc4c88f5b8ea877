"""Evidence that lies in arrays: what tables from elsewhere give, by block, arm and cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paribus.judge.evidence import Cell, Entry, Evidence
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


class GriddedEvidence(Evidence):
    """Evidence of launches that are all whole: series come from arrays, not from entries.

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

        super().__init__(metrics)
        self._grids = grids
        self._by_cell = {
            label: grid.values.transpose(0, 2, 1).copy() for label, grid in grids.items()
        }
        self._logs = {label: np.log(values) for label, values in self._by_cell.items()}
        self._columns = {
            label: {cell: i for i, cell in enumerate(grid.cells)} for label, grid in grids.items()
        }
        number = before
        for label, grid in grids.items():
            for entry in _entries(label, grid, metrics[label][0].name, number):
                self.add_entry(entry)
                number += 1

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
