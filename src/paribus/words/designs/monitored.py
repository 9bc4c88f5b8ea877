"""The sentences of reports on a monitored study: without an end, judged at any time."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import Judgement, format_seconds, percent
from paribus.words.designs.standard import Words


class MonitoredWords(Words):
    """The sentences of a study that goes on until it is stopped."""

    narrowed = "Times as slow, as more blocks came; shaded: margin"
    left_out = "before a change"
    spent = "in a round"

    def state(self, *, complete: bool) -> str:
        return "monitoring, verdicts so far"

    def promise(self, *, several_looks: bool) -> str:
        sure = percent(self.settings.confidence)
        return f"Intervals: {sure} confidence, valid at any time; the verdicts are provisional."

    def of_cases(self) -> str:
        return "Per-case intervals are widened for multiple comparisons (Bonferroni)."

    def continues(self, command: str, waits: str) -> str:
        return f"Monitoring: {command} continues at any time; the interval stays valid."

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        return super().rows(looks, level) | {
            "Most blocks": "no limit",
            "Looks": "at any time (confidence sequence)",
            "Confidence": percent(self.settings.confidence),
        }

    def at_any(self, *, several_looks: bool) -> str:
        return ", at any time"

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        return ["monitoring: no last block; the interval is valid at any time"]

    def takes(self, best_s: float, worst_s: float) -> str:
        every = self.settings.every_s
        pause = f", a round every {format_seconds(every)}" if every else ""
        return (
            f"a round takes {format_seconds(best_s)}{pause}; the study continues until you stop it"
        )

    def estimated(self, judgement: Judgement) -> str:
        return (
            f"{self.against()} was estimated from the log ratios within blocks, with a confidence"
            f" sequence (betting) that is valid at {percent(self.settings.confidence)} at any time."
        )

    def stopped(self, judgement: Judgement) -> str:
        return "The study has no planned end, so every verdict is one so far."

    def corrected(self, size: int, error: str) -> str:
        return "intervals widened for their number (Bonferroni)"
