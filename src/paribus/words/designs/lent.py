"""What reports say of blocks that are divided over several allocations of a scheduler."""

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
        each = f"{self.settings.allocations} allocations of each arm, asked for anew {self._anew()}"
        if self.settings.allocations < (fewest := self.fewest(level)):
            each += f"; a verdict about other nodes takes {fewest}"
        return [*super().to_come(looks, level), each]

    def fewest(self, level: float) -> int:
        """Return how many allocations a verdict about other nodes takes at least."""
        raise NotImplementedError

    def launched(self) -> str:
        return f"{super().launched()} The nodes were given back and allocated anew {self._anew()}."
