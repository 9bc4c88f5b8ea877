"""Evidence that tables from elsewhere give: the figures of whole blocks, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from paribus.core import Launch, Metric, State
from paribus.judge.evidence import Cell, Entry
from paribus.logs.tables.launches import Group
from paribus.stats.pairs import block_log_ratios


class GriddedEvidence:
    """Evidence of launches that are all whole.

    A table has no failed attempts and no state probes: `first` and `probes` are None, not empty.
    """

    def __init__(
        self, metrics: Mapping[str, Sequence[Metric]], groups: Sequence[Group], before: int
    ) -> None:
        """Make the evidence of `groups`; its launches are numbered from `before` + 1 on."""
        self.session = 0
        self.probes = None
        self.first = None
        self.voided: Sequence[Entry] = ()
        self._groups = {group.benchmark: group for group in groups}
        self.blocks: dict[str, dict[int, dict[str, Entry]]] = {}
        for group in groups:
            blocks = self.blocks.setdefault(group.benchmark, {n: {} for n in group.numbers})
            merit = [cell for cell in group.figures if cell[0] == metrics[group.benchmark][0].name]
            for entry in _entries(group, merit, before):
                blocks[entry.launch.block][entry.launch.arm] = entry
                before += 1

    @property
    def launches(self) -> dict[str, dict[int, dict[str, list[Entry]]]]:
        return {
            label: {block: {arm: [one] for arm, one in of.items()} for block, of in blocks.items()}
            for label, blocks in self.blocks.items()
        }

    def entries(self, benchmark: str) -> list[Entry]:
        return [e for units in self.blocks.get(benchmark, {}).values() for e in units.values()]

    def counted(self, launch: Launch) -> bool:
        return launch.block > 0

    def complete(self, benchmark: str, arms: Iterable[str]) -> list[int]:
        return list(self._groups[benchmark].numbers)

    def cells(self, benchmark: str) -> list[Cell]:
        return list(self._groups[benchmark].figures)

    def cells_of(self, benchmark: str, metric: str) -> list[Cell]:
        return [cell for cell in self._groups[benchmark].figures if cell[0] == metric]

    def series(self, benchmark: str, arm: str, cell: Cell) -> dict[int, float]:
        return dict(self._groups[benchmark].figures[cell][arm])

    def log_ratios(self, benchmark: str, reference: str, arm: str, cell: Cell) -> dict[int, float]:
        figures = self._groups[benchmark].figures[cell]
        return block_log_ratios(figures[reference], figures[arm])

    def cut_off(self, benchmark: str, arm: str) -> list[int]:
        return []


def _entries(group: Group, merit: Sequence[Cell], before: int) -> Iterable[Entry]:
    """Yield the launches, with their figures of merit alone: those are what the time axis shows.

    The time of a launch without any is the number of its block.
    """
    for arm in group.figures[merit[0]]:
        for block in group.numbers:
            before += 1
            yield Entry(
                launch=Launch(before, block, group.benchmark, arm, seed=0),
                state=State.OK,
                started=group.times[arm][block] if group.times else float(block),
                wall_s=0.0,
                error="",
                medians={cell: group.figures[cell][arm][block] for cell in merit},
            )
