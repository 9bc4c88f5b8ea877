"""The sentences of reports on blocks that are divided among allocations of a scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.words.designs.standard import Words
from paribus.words.lists import listed


class LentWords(Words):
    """The sentences of a study whose nodes are asked for anew between shares of its blocks."""

    def _anew(self) -> str:
        number, blocks = self.settings.allocations, self.settings.blocks
        # The first block of share k is the first b with (b - 1) * number >= k * blocks.
        ends = [str(-(-share * blocks // number)) for share in range(1, number)]
        return f"after {'block' if len(ends) == 1 else 'blocks'} {listed(ends, last=' and ')}"

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        said = f"{self.settings.allocations} of each arm, anew {self._anew()}"
        return super().rows(looks, level) | {"Allocations": said}

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        each = f"{self.settings.allocations} allocations of each arm, asked for anew"
        return [*super().to_come(looks, level), f"{each} {self._anew()}"]

    def too_few(self, fewest: int) -> list[str]:
        """Return a note if there are too few allocations for a verdict about other nodes."""
        note = f"a verdict about other nodes takes {fewest} allocations"
        return [note] if self.settings.allocations < fewest else []

    def launched(self) -> str:
        return f"{super().launched()} The nodes were given back and allocated anew {self._anew()}."
