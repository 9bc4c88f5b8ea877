"""Blocks divided among several allocations, so that verdicts are about more than one set of nodes.

The only look is after the last allocation: an earlier one would be about fewer nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from paribus.designs.standard import Design
from paribus.stats.estimate import fewest_pairs
from paribus.stats.looks import Looks
from paribus.words.designs.lent import LentWords


class Lent(LentWords, Design):
    """Equal shares of the blocks, one after the other; nodes are given back in between."""

    @property
    def allocations(self) -> int:
        return self.settings.allocations

    def allocation(self, block: int) -> int:
        """Return the share of a block; the warm-up belongs to the first."""
        return max(0, block - 1) * self.allocations // self.settings.blocks

    def refusal(self) -> tuple[str, object, str, str] | None:
        settings, number = self.settings, self.allocations
        if not number:
            fix = "say how many: allocations = 8"
            return "design", "allocations", "divides the blocks over allocations", fix
        if number > settings.blocks:
            cause = f"is more than there are blocks ({settings.blocks}), and each has one at least"
            return "allocations", number, cause, f"set blocks = {number} or more"
        if settings.unit != "launch" or settings.monitor:
            fix = "remove unit, builds and monitor, or allocations"
            return "allocations", number, "is of launches with an end", fix
        if settings.same_nodes:
            fix = "remove one of the two"
            return "allocations", number, "asks for other nodes, same_nodes for the same", fix
        for arm in self.study.arms:
            if not (arm.hosts and arm.hosts.scheduler):
                cause = f"arm {arm.name} asks no scheduler for nodes"
                fix = 'give each arm a `scheduler`: scheduler = { name = "slurm", ... }'
                return "allocations", number, cause, fix
        return super().refusal()

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        return super().to_come(looks, level) + self.too_few(fewest_pairs(round(1 - level, 12)))

    def looks(self) -> Looks:
        """Return the only look, at the error that the arms share."""
        return Looks((self.settings.blocks,), round(self.error, 12))
