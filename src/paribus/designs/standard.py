"""The standard design, and the base of all others: blocks of launches, judged at planned looks.

A look is a planned number of complete blocks at which a verdict may fall. A stage is an arm, or
what a design launches between arms.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from paribus.core import (
    Arm,
    Comparison,
    Direction,
    Finding,
    Launch,
    Metric,
    Notice,
    Reason,
    Study,
    StudyError,
    Verdict,
    Word,
)
from paribus.stats.estimate import compare, fewest_pairs
from paribus.stats.family import claims
from paribus.stats.forecast import Cost, blocks_affordable, duration
from paribus.stats.looks import LONGER, LOOKS, Looks, schedule
from paribus.stats.pairs import headline_log_ratios
from paribus.stats.reliability import MOST_CENSORED, censored_share
from paribus.stats.schedule import Place, rounds
from paribus.stats.verdict import blocks_needed, judge
from paribus.words.designs.standard import Words

if TYPE_CHECKING:
    from paribus.judge.evidence import Evidence
    from paribus.plan import Plan

Said = tuple[Verdict, Comparison]
"""A verdict, and the comparison that it rests on."""


@dataclass(frozen=True, slots=True)
class Series:
    """Log ratios of an arm to the reference, and what they are judged by."""

    plan: Plan
    at: Sequence[int]  # the looks, as evidence.looks_at gives them
    ratios: Mapping[int, float]  # by block, in order
    better: Direction
    margin: float  # a share
    # The blocks whose launches the time limit cut off, by arm; and the result of Design.logs.
    cut: Mapping[str, Sequence[int]] = field(default_factory=dict)
    logs: Any = None

    @property
    def blocks(self) -> list[int]:
        return list(self.ratios)

    @property
    def values(self) -> list[float]:
        return list(self.ratios.values())

    @property
    def level(self) -> float:
        """The confidence of the interval at a look."""
        return self.plan.looks.confidence


class Design(Words):
    """Blocks of one launch of every arm, looks planned beforehand, signed-rank intervals."""

    unit: Literal["launch", "session", "build"] = "launch"  # what counts once
    has_end = True  # it has looks and a last block
    at_once = False  # the arms of a block are launched at the same time, on shares of the cores
    is_open = False  # the warm-up decides on the rest of the design
    ranks = True  # more than two arms are ranked
    least_blocks = LOOKS[0]  # the fewest and the most blocks of a plan
    most_blocks = LONGER[-1]

    # --- before the first launch ---

    def settled(self, study: Study) -> Study:
        """Return `study`, as read from its file, with the settings that this design dictates.

        Raises StudyError for a study that cannot have this design.
        """
        return study

    def refusal(self) -> tuple[str, object, str, str] | None:
        """Return key and value of [plan] that this design refuses, the cause and the fix, or None.

        The standard design refuses nothing.
        """
        return None

    def stages(self) -> tuple[Arm, ...]:
        """Return the arms, the reference first, and what else this design launches.

        That may be an arm with one key of the other. Only the arms of the study are audited,
        compared and shown.
        """
        return self.study.arms

    def staged(self) -> Study:
        """Return the study with every stage as an arm, as it is launched."""
        return replace(self.study, arms=self.stages())

    def holds(self, label: str, block: int) -> tuple[str, ...]:
        """Return the names of the stages in a block of a benchmark: here all of them."""
        return tuple(one.name for one in self.stages())

    def switched(self, name: str) -> tuple[str, ...]:
        """Return the changes of the arm that launches of this name have switched, if it says so."""
        return ()

    @property
    def session(self) -> int:
        """The launches that make a session, 0 where the launch itself is the unit."""
        return 0

    @property
    def builds(self) -> int:
        """The builds that an arm has, one for each block; 0 for one that all blocks share."""
        return 0

    @property
    def allocations(self) -> int:
        """The allocations of a scheduler among which the blocks are divided, 0 if they are not."""
        return 0

    def allocation(self, block: int) -> int:
        """Return the index, from 0, of the allocation in which a block is launched."""
        return 0

    def launches(self, even: int) -> Iterator[Launch]:
        """Yield every launch in order, equal for equal seeds; `even` is that of stats/schedule.py.

        Raises StudyError without a seed.
        """
        seed = self.settings.seed
        if seed is None:
            fix = "freeze it first, or set plan.seed"
            raise StudyError("has no seed", place=self.study.path, fix=fix)
        stages = [one.name for one in self.stages()]
        labels = [selection.label for selection in self.study.benchmarks]
        places = self.places(stages, labels, seed, even)
        for number, (block, label, stage, place) in enumerate(places, 1):
            digest = hashlib.sha256(f"{seed} launch {number}".encode()).digest()
            drawn = int.from_bytes(digest[:4], "big")
            yield Launch(number, block, label, stage, drawn, place)

    def places(
        self, stages: Sequence[str], labels: Sequence[str], seed: int, even: int
    ) -> Iterator[Place]:
        """Yield (block, benchmark, stage, place in its session) of every launch in order."""
        blocks = self.settings.blocks
        return rounds(stages, labels, blocks, seed, start=self.shuffled, even=even)

    def looks(self) -> Looks:
        """Return the looks; the error is shared by all arms against the reference."""
        settings = self.settings
        comparisons = len(self.study.arms) - 1
        return schedule(settings.blocks, settings.confidence, comparisons=comparisons)

    def looks_of(self, at: Sequence[int], level: float) -> Looks:
        """Return the looks of a stored plan from its figures."""
        return Looks(tuple(at), level)

    def duration(self, each: Cost, looks: Looks) -> list[str]:
        """Return sentences on how long the study will take; `each` is the cost of a block."""
        best, worst = duration(each, looks.at[0], looks.at[-1])
        sentences, budget_s = [self.takes(best, worst)], self.settings.budget_s
        if budget_s is not None and worst > budget_s:
            sentences.append(self.affords(budget_s, blocks_affordable(each, budget_s), looks.at))
        return sentences

    def rounds(self, looks: Looks) -> tuple[int, ...]:
        """Return the fewest and the most rounds that a study may have, the warm-up included."""
        return 1 + looks.at[0], 1 + looks.at[-1]

    # --- after the warm-up ---

    def chosen(self, frozen: Plan, evidence: Evidence) -> Plan:
        """Return the plan that a study follows after its warm-up: here the frozen one.

        It follows from the stored warm-up, so it need not be stored.
        """
        return frozen

    def after(self, frozen: Plan, longest_s: float) -> Plan:
        """Return the plan after a warm-up whose longest launch took `longest_s` seconds."""
        return frozen

    # --- the verdict ---

    def logs(
        self, evidence: Evidence, arms: tuple[str, str], of: Sequence[tuple[str, Metric]]
    ) -> Any:
        """Return what this design needs of the evidence beside log ratios: here nothing.

        `arms` are the reference and an arm, `of` benchmarks by label, each with a metric.
        """
        return None

    def levels(self, evidence: Evidence, label: str, name: str, metric: Metric) -> dict[int, float]:
        """Return the mean log of the figures at all cases, for each block of a stage."""
        slow = math.inf if metric.better == "lower" else -math.inf
        cut = dict.fromkeys(evidence.cut_off(label, name), slow)
        cells = evidence.cells_of(label, metric.name)
        series = (evidence.series(label, name, cell) for cell in cells)
        return headline_log_ratios(
            [{block: math.log(figure) for block, figure in one.items()} | cut for one in series]
        )

    def replay(self, series: Series, *, over: bool) -> tuple[Verdict, list[Comparison]]:
        """Judge at each look in order, and return the first final verdict.

        The second value are the comparisons at the looks so far; between two looks, that of all
        blocks is the last. If the study is `over` there, the last look that it reached decides.
        """
        blocks, at = series.blocks, series.at
        reached = [look for look in at if look <= len(blocks)]
        history: list[Comparison] = []
        for n, look in enumerate(reached, 1):
            last = look == at[-1] or (over and look == reached[-1])
            verdict, comparison = self.look(series, reached[:n], last=last)
            history.append(comparison)
            if verdict.final:
                return verdict, history
        following = next((look for look in at if look > len(blocks)), at[-1])
        undecided = Verdict(
            Word.UNDECIDED,
            Reason.ENDED_BEFORE_FIRST_LOOK if over else Reason.BEFORE_NEXT_LOOK,
            final=over,
            blocks_needed=self.needed(series, len(blocks)),
            size_known=self.size_known(blocks, series.cut),
            figures={"blocks": len(blocks)} | ({} if over else {"next": following}),
        )
        return undecided, [*history, self.now(series)]

    def look(self, series: Series, looks: Sequence[int], *, last: bool) -> Said:
        """Return verdict and comparison at the latest of `looks`, the others having passed."""
        comparison = compare(series.values[: looks[-1]], series.level)
        return judge(comparison, **self.terms(series, looks[-1], last=last)), comparison

    def terms(self, series: Series, look: int, *, last: bool) -> dict[str, Any]:
        """Return the arguments of `judge` at a look, except the comparison."""
        return {
            "better": series.better,
            "margin": series.margin,
            "last": last,
            # This is a forecast, so it may rest on blocks after the look.
            "needed": self.needed(series, look) if last else None,
            "size_known": self.size_known(series.blocks[:look], series.cut),
        }

    def now(self, series: Series) -> Comparison:
        """Return the comparison of all blocks, between two looks."""
        return compare(series.values, series.level)

    def needed(self, series: Series, blocks: int) -> int | None:
        """Return about how many blocks a verdict needs, estimated after `blocks` of them."""
        return blocks_needed(series.values, series.margin, series.level)

    def history(self, series: Series, looks: Sequence[Comparison]) -> tuple[Comparison, ...]:
        """Return the comparisons by which reports draw how an interval narrowed.

        `looks` are those that `replay` returned.
        """
        return tuple(looks)

    def stands_on(self, blocks: Sequence[int], comparison: Comparison) -> list[int]:
        """Return those of `blocks`, in order, on which a comparison rests."""
        return list(blocks[: comparison.blocks])

    def size_known(self, blocks: Sequence[int], cut: Mapping[str, Sequence[int]]) -> bool:
        """Return whether so few launches of `blocks` were cut off that the size is known.

        Blocks without a ratio, because both arms were cut off, count as well.
        """
        so_far = [{block for block in cuts if block <= blocks[-1]} for cuts in cut.values()]
        shares = [censored_share(len(of_arm), len(of_arm.union(blocks))) for of_arm in so_far]
        return max(shares) <= MOST_CENSORED

    def family(self, several: Sequence[Series], members: Literal["cases", "figures"]) -> list[Said]:
        """Return verdict and comparison of each member of a family, corrected for their number.

        `members` is the noun of its members, for the figures of verdicts.
        """
        if not several:
            return []
        looks, seed = replace(several[0].plan.looks, at=tuple(several[0].at)), self.settings.seed
        ratios, margins = [one.ratios for one in several], [one.margin for one in several]
        found = []
        supported = claims(ratios, margins, looks, seed=seed or 0, error=self.error)
        for one, claim in zip(several, supported, strict=True):
            comparison = compare(one.values, claim.level)
            verdict = judge(comparison, better=one.better, margin=one.margin, last=True)
            if not claim.supported and verdict.word is not Word.UNDECIDED:
                figures = {**verdict.figures, "otherwise": verdict.code, members: len(several)}
                code = Reason.NOT_SUPPORTED_AMONG_CASES
                verdict = Verdict(Word.UNDECIDED, code, final=True, figures=figures)
            found.append((verdict, comparison))
        return found

    @property
    def error(self) -> float:
        """The error probability of the comparison of one arm: the study's, shared by all arms."""
        return (1 - self.settings.confidence) / (len(self.study.arms) - 1)

    def lone_case(self, headline: Finding) -> Said | None:
        """Return the verdict of the only case of a headline, None if `family` is to judge it."""
        return None

    def fewest_blocks(self, level: float, looks: Sequence[int]) -> int:
        """Return the fewest blocks with which there can be a verdict.

        Signed ranks have an interval once the chance that all blocks lie on one side is below the
        error. A study is judged only at its `looks`; a table has none, and is judged at any number.
        """
        interval = fewest_pairs(round(1 - level, 12))
        return next((look for look in looks if look >= interval), interval)

    def notices(self, plan: Plan, evidence: Evidence) -> Iterable[Notice]:
        """Return the notices on a study that follow from its design: here none."""
        return ()
