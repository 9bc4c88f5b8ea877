"""Duets: the arms of a block are launched at the same time, each on its share of the cores."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.designs.standard import Design


class Duet(Design):
    """What both arms share at one time cancels; they have no order, and no start to shuffle."""

    share = " for each arm of a duet"
    nearness = "at the same time, each on half of the cores"
    shuffles = False
    at_once = True

    def refusal(self) -> tuple[str, object, str, str] | None:
        settings = self.settings
        if self.session:
            return "layout", "duet", "sessions cannot be duets", "remove one of the two"
        if any(arm.hosts for arm in self.study.arms):
            return "layout", "duet", "is of one machine, not of hosts", "drop one of the two"
        if settings.bind == "none":
            return "bind", "none", "the arms of a duet need cores of their own", 'drop "bind"'
        return super().refusal()

    # --- words ---

    def sentence(self) -> str:
        return (
            "Duets: the arms of a block were launched at the same time, each on its own share of"
            " the cores, assigned at random."
        )

    def compared(self) -> str:
        return "between launches that ran at the same time"

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        order = "the arms of a block at the same time, each on half of the cores"
        return super().rows(looks, level) | {"Order": order}

    def placed(self) -> str:
        return (
            "started at the same time, each on its own share of the cores, which was assigned at"
            f" random {self.seed()}"
        )
