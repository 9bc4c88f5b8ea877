"""What the stored launches say so far: one median per launch and case, by block and arm."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from paribus.model import Case, Launch, Outcome, State
from paribus.stats.summary import launch_median
from paribus.store import Store

Cell = tuple[str, Case]
"""A metric's name and a case."""


@dataclass(slots=True)
class Entry:
    """One counting launch: what came of it, its place on the time axis, its medians by cell."""

    launch: Launch
    state: State
    started: float
    wall_s: float
    error: str
    medians: dict[Cell, float]


@dataclass(slots=True)
class Evidence:
    """The counting launches of a study: benchmark -> block -> arm -> launch."""

    blocks: dict[str, dict[int, dict[str, Entry]]] = field(default_factory=dict)

    def add(self, launch: Launch, outcome: Outcome) -> None:
        """Take in a launch that has been stored."""
        medians = {(s.metric, s.case): launch_median(s.values) for s in outcome.samples}
        entry = Entry(
            launch, outcome.state, outcome.started, outcome.wall_s, outcome.error, medians
        )
        block = self.blocks.setdefault(launch.benchmark, {}).setdefault(launch.block, {})
        block[launch.arm] = entry

    def drop(self, launches: Iterable[Launch]) -> None:
        """Forget launches whose stored attempts no longer count."""
        for launch in launches:
            self.blocks.get(launch.benchmark, {}).get(launch.block, {}).pop(launch.arm, None)

    def entries(self, benchmark: str) -> list[Entry]:
        """Return the launches of `benchmark` by block, warm-up included."""
        blocks = self.blocks.get(benchmark, {})
        return [entry for block in sorted(blocks) for entry in blocks[block].values()]

    def complete(self, benchmark: str, arms: Iterable[str]) -> list[int]:
        """Return the counted blocks of `benchmark` in which each of `arms` has a good launch."""
        names = list(arms)
        return sorted(
            block
            for block, entries in self.blocks.get(benchmark, {}).items()
            if block > 0
            and all(name in entries and entries[name].state is State.OK for name in names)
        )

    def cells(self, benchmark: str) -> list[Cell]:
        """Return the cells that any good launch of `benchmark` has, in the order they appeared."""
        found: dict[Cell, None] = {}
        for entry in self.entries(benchmark):
            found.update(dict.fromkeys(entry.medians))
        return list(found)

    def series(self, benchmark: str, arm: str, cell: Cell) -> dict[int, float]:
        """Return the launch medians of one cell by block, warm-up (block 0) included."""
        blocks = self.blocks.get(benchmark, {})
        return {
            block: blocks[block][arm].medians[cell]
            for block in sorted(blocks)
            if arm in blocks[block] and cell in blocks[block][arm].medians
        }


def collect(store: Store) -> Evidence:
    """Return the evidence of everything that `store` holds and that counts."""
    evidence = Evidence()
    for stored in store.launches():
        evidence.add(stored.launch, stored.outcome)
    return evidence
