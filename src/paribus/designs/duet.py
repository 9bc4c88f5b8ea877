"""Duets: the arms of a block are launched at the same time, each on its share of the cores."""

from __future__ import annotations

from paribus.designs.standard import Design
from paribus.words.designs.duet import DuetWords


class Duet(DuetWords, Design):
    """What disturbs both arms at the same time cancels; they have no order to randomise."""

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
