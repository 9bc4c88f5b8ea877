"""The standard design, and the base of all others: blocks of launches, judged at planned looks."""

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
"""A verdict and the interval that it rests on."""


@dataclass(frozen=True, slots=True)
class Series:
    """Log ratios by block, in order, and what they are judged by.

    `at` are the looks, as the blocks let them be; `cut` holds by arm the blocks whose launches the
    time limit cut off, and `logs` what a design takes of the evidence beside all that.
    """

    plan: Plan
    at: Sequence[int]
    ratios: Mapping[int, float]
    better: Direction
    margin: float
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
    """Blocks of one launch of every arm, looks planned beforehand, signed-rank intervals.

    `unit` is what counts once. A study that `has_end` has looks and a last block. Arms that are
    launched `at_once` share the cores and have no order. `is_open`: the warm-up decides on the rest
    of the design. It `ranks` more than two arms. `least_blocks` and `most_blocks` are those a plan
    may have.
    """

    unit: Literal["launch", "session", "build"] = "launch"
    has_end = True
    at_once = False
    is_open = False
    ranks = True
    least_blocks = LOOKS[0]
    most_blocks = LONGER[-1]

    # --- before the first launch ---

    def settled(self, study: Study) -> Study:
        """Return `study`, as its file has it, with what this design leaves no choice of.

        Raises StudyError for what the design cannot be of.
        """
        return study

    def refusal(self) -> tuple[str, object, str, str] | None:
        """Return the key and value of [plan] that cannot be, why, and what to do; None if all can.

        The standard design can be of any study.
        """
        return None

    def stages(self) -> tuple[Arm, ...]:
        """Return what launches are made in: the arms, the reference first.

        A design may add others, such as an arm with one key of the other. Only the arms are
        audited, compared and shown; a series between two stages is one like any other.
        """
        return self.study.arms

    def staged(self) -> Study:
        """Return the study as its launches are made: with every stage for an arm."""
        return replace(self.study, arms=self.stages())

    def holds(self, label: str, block: int) -> tuple[str, ...]:
        """Return the names of the stages that a block of a benchmark is made of: all of them."""
        return tuple(one.name for one in self.stages())

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
        """The allocations of a scheduler that the blocks are divided over, 0 where they are not."""
        return 0

    def allocation(self, block: int) -> int:
        """Return which of them, from 0 on, a block is launched in."""
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
        """Yield block, benchmark, stage and place in its session of every launch."""
        blocks = self.settings.blocks
        return rounds(stages, labels, blocks, seed, start=self.shuffled, even=even)

    def looks(self) -> Looks:
        """Return the looks; the error is shared by all arms against the reference."""
        settings = self.settings
        comparisons = len(self.study.arms) - 1
        return schedule(settings.blocks, settings.confidence, comparisons=comparisons)

    def looks_of(self, at: Sequence[int], level: float) -> Looks:
        """Return the looks that a plan holds as these figures."""
        return Looks(tuple(at), level)

    def duration(self, each: Cost, looks: Looks) -> list[str]:
        """Return in sentences how long the study will take, where blocks cost so much."""
        best, worst = duration(each, looks.at[0], looks.at[-1])
        said, budget_s = [self.takes(best, worst)], self.settings.budget_s
        if budget_s is not None and worst > budget_s:
            said.append(self.affords(budget_s, blocks_affordable(each, budget_s), looks.at))
        return said

    def rounds(self, looks: Looks) -> tuple[int, ...]:
        """Return how many rounds, the warm-up included, a study has at best and at worst."""
        return 1 + looks.at[0], 1 + looks.at[-1]

    # --- after the warm-up ---

    def chosen(self, frozen: Plan, evidence: Evidence) -> Plan:
        """Return the plan that a study follows once its warm-up is over: what was frozen.

        The same for the same stored warm-up, so nothing is to be kept.
        """
        return frozen

    def after(self, frozen: Plan, longest_s: float) -> Plan:
        """Return the plan that follows a warm-up whose longest launch took so many seconds."""
        return frozen

    # --- the verdict ---

    def logs(
        self, evidence: Evidence, arms: tuple[str, str], of: Sequence[tuple[str, Metric]]
    ) -> Any:
        """Return what a verdict on figures of benchmarks takes beside log ratios: nothing."""
        return None

    def levels(self, evidence: Evidence, label: str, name: str, metric: Metric) -> dict[int, float]:
        """Return the mean log of the cases of each launch of a stage, by block."""
        slow = math.inf if metric.better == "lower" else -math.inf
        cut = dict.fromkeys(evidence.cut_off(label, name), slow)
        cells = evidence.cells_of(label, metric.name)
        series = (evidence.series(label, name, cell) for cell in cells)
        return headline_log_ratios(
            [{block: math.log(one) for block, one in of.items()} | cut for of in series]
        )

    def replay(self, series: Series, *, over: bool) -> tuple[Verdict, list[Comparison]]:
        """Replay the looks over the blocks in order; the first final verdict stands.

        Returned beside it is what each look said, and what all blocks say where they are between
        two looks. A study that ends between two looks stands by the last one that it reached.
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
        """Return what the latest of `looks` says after the others."""
        comparison = compare(series.values[: looks[-1]], series.level)
        return judge(comparison, **self.terms(series, looks[-1], last=last)), comparison

    def terms(self, series: Series, look: int, *, last: bool) -> dict[str, Any]:
        """Return what `judge` takes at a look beside the interval."""
        return {
            "better": series.better,
            "margin": series.margin,
            "last": last,
            # A forecast, not a verdict: it may rest on what came after the last look. What an
            # earlier look left open, a later one says.
            "needed": self.needed(series, look) if last else None,
            "size_known": self.size_known(series.blocks[:look], series.cut),
        }

    def now(self, series: Series) -> Comparison:
        """Return what all blocks say, between two looks."""
        return compare(series.values, series.level)

    def needed(self, series: Series, blocks: int) -> int | None:
        """Return about how many blocks settle a study, as it is after `blocks` of them."""
        return blocks_needed(series.values, series.margin, series.level)

    def history(self, series: Series, looks: Sequence[Comparison]) -> tuple[Comparison, ...]:
        """Return how an interval narrowed, where `replay` returned `looks`."""
        return tuple(looks)

    def stands_on(self, blocks: Sequence[int], comparison: Comparison) -> list[int]:
        """Return those of `blocks`, in order, that a comparison is of."""
        return list(blocks[: comparison.blocks])

    def size_known(self, blocks: Sequence[int], cut: Mapping[str, Sequence[int]]) -> bool:
        """Return whether few enough launches of `blocks` were cut off for "by how much".

        Blocks without a ratio, because both arms were cut off, count as well.
        """
        so_far = [{block for block in cuts if block <= blocks[-1]} for cuts in cut.values()]
        shares = [censored_share(len(own), len(own.union(blocks))) for own in so_far]
        return max(shares) <= MOST_CENSORED

    def family(self, several: Sequence[Series], members: Literal["cases", "figures"]) -> list[Said]:
        """Return verdict and interval of each member of a family, as all of them support it."""
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
        """The share of the study's error that an arm has."""
        return (1 - self.settings.confidence) / (len(self.study.arms) - 1)

    def lone_case(self, headline: Finding) -> Said | None:
        """Return what the only case of a headline says, None where a family of one says it."""
        return None

    def fewest_blocks(self, level: float, looks: Sequence[int]) -> int:
        """Return from how many blocks on there can be a verdict.

        Signed ranks have an interval once all blocks on one side are rarer than its error. A study
        is weighed only at its `looks`, a table, which has none, whenever.
        """
        interval = fewest_pairs(round(1 - level, 12))
        return next((look for look in looks if look >= interval), interval)

    def notices(self, plan: Plan, evidence: Evidence) -> Iterable[Notice]:
        """Return what the reader must know of a study because of its design."""
        return ()
