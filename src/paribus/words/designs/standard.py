"""The sentences of reports on the standard design, and the base class of those on others."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import SHUFFLED, Judgement, Study, count, format_seconds, percent
from paribus.words.lists import listed

SEVERAL = 8
"""From so many cases on, stats/family.py controls the false discovery rate."""


class Words:
    """The sentences of a standard study. Other designs override those that differ."""

    narrowed = "Times as slow, after each look; shaded: margin"
    blocks_key = "blocks"
    left_out = "after the last look"
    spent = "in launches"
    share = ""
    failed = (
        "A block with a failed launch was rerun once, and gives no ratio if one failed again;"
        " reliability is judged by first attempts."
    )
    value = (
        "A launch is one start of the program; its value is the median of its samples{which}. A"
        " block holds one launch of every arm, {nearness}; the ratio compares launches of the same"
        " block only, so drift of the machine cancels."
    )
    nearness = "close in time and in random order"
    shuffles = False

    def __init__(self, study: Study) -> None:
        self.study = study
        self.settings = study.settings

    @property
    def shuffled(self) -> int:
        """The first blocks, whose launches are in one random order; usually none."""
        return min(SHUFFLED, self.settings.blocks) if self.shuffles else 0

    # --- in every report ---

    def sentence(self) -> str:
        """Return one sentence on how the figures of a study came about, and what is controlled."""
        several = len(self.study.arms) > 2
        kind = "Blocks" if several else "Pairs"
        return (
            f"{kind} of neighbouring launches, {self.at_random()}; the launch is the experimental"
            " unit."
        )

    def at_random(self) -> str:
        several = len(self.study.arms) > 2
        return "in the order of random Latin squares" if several else "in random order"

    def state(self, *, complete: bool) -> str:
        """Return the state of a study in a word, "" for one that is over."""
        return "" if complete else "unfinished"

    def counted(self, blocks: int) -> str:
        """Return a number of blocks with its noun: "8 blocks"."""
        return count(blocks, "block")

    def launched_in(self, blocks: int) -> str:
        """Return what follows a number of launches: "" here, " in 8 pairs of sessions"."""
        return ""

    def compared(self) -> str:
        """Return which launches a ratio compares, as the end of a sentence."""
        return "launch by launch within each block"

    def promise(self, *, several_looks: bool) -> str:
        """Return the sentence on the confidence of intervals, and over what it holds."""
        looks = ["all looks"] if several_looks else []
        arms = ["all arms"] if len(self.study.arms) > 2 else []
        over = f" over {' and '.join(looks + arms)}" if looks + arms else ""
        return f"Intervals: {percent(self.settings.confidence)} confidence{over}."

    def of_cases(self) -> str:
        """Return sentences on how verdicts on cases are corrected for their number."""
        arms = len(self.study.arms) - 1
        share = percent((1 - self.settings.confidence) / arms)
        share += " for each arm" if arms > 1 else ""
        return (
            f"Per-case verdicts are corrected for multiple comparisons (Benjamini-Hochberg at"
            f" {share}; fewer than 8 cases: closed test). A case without enough support stays"
            " undecided."
        )

    def continues(self, command: str, waits: str) -> str:
        """Return how an unfinished study goes on; `waits` is a sentence on what it waits for."""
        return f"Unfinished: {command} continues the same schedule.{waits}"

    # --- of the plan ---

    def rows(self, looks: Sequence[int], level: float) -> dict[str, str]:
        """Return the rows of a table on the plan; each of `looks` has the confidence `level`."""
        each = f", {percent(level)} at each" if looks else ""
        return {
            "Design": "",
            "Order": "each arm once per block, in random order",
            "Seed": str(self.settings.seed),
            "Most blocks": str(self.settings.blocks),
            "Looks": f"after {', '.join(map(str, looks))} blocks" if looks else "",
            "Confidence": f"{percent(self.settings.confidence)} over all looks{each}",
        }

    def at_any(self, *, several_looks: bool) -> str:
        """Return when the confidence of intervals holds, to follow it in a sentence."""
        return ", over all looks at the data" if several_looks else ""

    def to_come(self, looks: Sequence[int], level: float) -> list[str]:
        """Return lines on the looks of a study that is only planned, and on its unit."""
        at = ", ".join(map(str, looks))
        return [f"looks after {at} blocks, at {percent(level)} confidence each"]

    def takes(self, best_s: float, worst_s: float) -> str:
        """Return the sentence on how long a study that is only planned will take."""
        return (
            f"the study takes {format_seconds(best_s)} if every benchmark is decided at its first"
            f" look, {format_seconds(worst_s)} if all need their last block"
        )

    def affords(self, budget_s: float, blocks: int, looks: Sequence[int]) -> str:
        """Return the sentence on what a budget suffices for: `blocks`, and some of `looks`."""
        known = [look for look in looks if look <= blocks]
        return (
            f"the budget of {format_seconds(budget_s)} suffices for"
            f" about {count(blocks, 'block')} of all benchmarks"
            + (f": looks after {', '.join(map(str, known))}" if known else ", too few for a look")
            + f"; set {self.blocks_key} = {blocks} for a look after that block"
            * (blocks >= looks[0] and blocks not in known)
        )

    # --- the paragraph of a paper ---

    def launched(self) -> str:
        """Return sentences on what a block is, and how its order was drawn."""
        said = self.in_blocks()
        if len(self.study.benchmarks) > 1:
            said += (
                " In each round every benchmark that was still open had one block, in random order."
            )
        if self.settings.every_s:
            said += f" A round started every {format_seconds(self.settings.every_s)}."
        return f"{said} The first block of a benchmark was a warm-up and does not count."

    def in_blocks(self) -> str:
        return (
            f"Launches of {self.arms()} were randomised in blocks: each block held one launch of"
            f" each arm, {self.placed()}."
        )

    def placed(self) -> str:
        return f"one directly after the other, {self.drawn()} {self.seed()}"

    def arms(self) -> str:
        return listed([arm.name for arm in self.study.arms], last=" and ")

    def seed(self) -> str:
        return f"(seed {self.settings.seed})"

    def drawn(self) -> str:
        if len(self.study.arms) > 2:
            return "in the order of the rows of random Latin squares"
        return "in an order drawn at random for each block"

    def estimated(self, judgement: Judgement) -> str:
        """Return the sentence on how the ratio and its interval are estimated."""
        return (
            f"{self.against()} is the Hodges-Lehmann estimate from the log ratios within blocks,"
            " with the interval of the signed-rank distribution."
        )

    def against(self) -> str:
        return f"The ratio of an arm to the reference ({self.study.arms[0].name})"

    def stopped(self, judgement: Judgement) -> str:
        """Return sentences on the looks, their level, and what ended a benchmark."""
        settings, looks = self.settings, judgement.looks
        if not looks:
            return ""
        when = listed([str(look) for look in looks], last=" and ")
        once = len(looks) == 1
        at = f"once, after {count(looks[0], 'block')}" if once else f"after {when} blocks"
        ends = f"its headline{' and 90 % of its cases' * (settings.decides != 'headline')}"
        said = f"The evidence was evaluated {at}, as fixed before the first launch;"
        said += f" a benchmark ended when {ends} had a verdict, or after {looks[-1]} blocks at most"
        if settings.budget_s is not None:
            said += f", or when {format_seconds(settings.budget_s)} of launches were used up"
        over = [] if once else ["all looks"]
        over += ["all comparisons with the reference"] if len(self.study.arms) > 2 else []
        sure = percent(1 - settings.confidence)
        promise = (
            f", so that {listed(over, last=' and ')} together err in at most {sure} of studies"
        )
        unfinished = "" if judgement.complete else " The study is unfinished."
        return f"{said}. {self.level(judgement.level)}{promise if over else ''}.{unfinished}"

    def level(self, level: float) -> str:
        return f"Each interval of a headline has a level of {percent(level)}"

    def corrected(self, size: int, error: str) -> str:
        """Return how verdicts on `size` cases of a benchmark are corrected at `error`."""
        if size >= SEVERAL:
            return f"Benjamini and Hochberg at {error}"
        return f"a closed test at {error}"
