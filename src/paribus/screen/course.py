"""The course of a screen: rounds of all units nominate what may be slow, later rounds prove it.

A round gives each unit (a node, a GPU, a pair of nodes) a log speed; its value is that less the
median of the units which it is compared with in the same round, so that what is common to a round
cancels. Example: of four nodes with 100, 101, 99 and 80 GB/s the last has log(80 / 99.5) = -0.22.
The first rounds, of all units, nominate causes, each a Question. In the rounds after that its units
are launched beside others drawn anew, whose median is the reference; these *fresh* values alone are
tested, so nomination biases nothing. nodes.py and links.py say what the causes are, and who is
launched.

Null hypothesis of a question: at least half of its fresh values are above the margin, and they lie
evenly about their middle. Its test is the exact one-sided signed-rank test (stats/estimate.py). The
first look is after the least n with 2^-n <= ERROR / (2 x hypotheses), and has half of the error;
the two `later` ones have a quarter each. At each look Holm's step-down goes over all hypotheses,
those named before included as rejected: S. Holm, Scand. J. Stat. 6 (1979) 65; over looks as in W.
Maurer & F. Bretz, Stat. Biopharm. Res. 5 (2013) 311. So the chance that anything healthy is named
is at most ERROR, over all metrics and looks, if disturbances change from round to round. Figures in
steps that are coarse for the margin show a difference larger by up to a step than it is: there a
cause is named only below the margin and a step.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median
from typing import Literal, NamedTuple

from paribus.core import grouped
from paribus.stats.estimate import hodges_lehmann, signed_rank_cdf

ERROR = 0.05
SHARES = (1 / 2, 1 / 4, 1 / 4)
"""Parts of ERROR, one for each look."""

BELOW = 0.5
"""Part of the margin below which units are nominated, and above which they are released."""

LATER = (0, 6, 14)
"""Rounds from the first look to each look."""

PARTNERS = 8
"""Others that are launched beside nominated units at least, if there are as many."""

RELEASE_FROM = 5
"""Fresh rounds after which what is clearly above the margin is released: 2^-5 < 5 %."""

GIVEN_UP = 2
"""Failures in a row after which a unit is launched no more."""

POWER = 0.95
TRIES = 400
MOST_SLOW = 0.6
"""The greatest slowness that `detectable` tries."""

_SLACK = 1 + 1e-12
"""A level may be exactly 2^-n: rounding must not put the chance 2^-n above it."""

BAR = "|"
"""Between the two nodes of a pair: "n1|n2" is launched from n1."""

_GPU = re.compile(r"(.*):gpu(\d+)")  # n1:gpu3

Row = Mapping[str, float]
"""Log speeds of a round by unit, higher is better; NaN for a launch that failed."""

Word = Literal["slow", "undecided", "released", "open", "failed"]


def nodes_of(unit: str) -> tuple[str, ...]:
    """Return the nodes of a unit: two of a pair, one of a node or a GPU.

    >>> nodes_of("n1"), nodes_of("n1:gpu3"), nodes_of("n1|n2")
    (('n1',), ('n1',), ('n1', 'n2'))
    """
    found = _GPU.fullmatch(unit)
    return (found[1],) if found else tuple(unit.split(BAR))


def gpu_of(unit: str) -> str:
    """Return the number of a unit that is a GPU, "3" of "n1:gpu3"; "" for other units."""
    found = _GPU.fullmatch(unit)
    return found[2] if found else ""


@dataclass(frozen=True, slots=True)
class Cause:
    """What may be slow; its `name` is its own.

    `kind`: a *unit* is a node or a GPU, a *half* the slower of two groups that a fleet falls into.
    Of links a cause is all pairs between two `sides`: an *end*, a *group* or a *path* (links.py).
    """

    kind: Literal["unit", "half", "end", "group", "path"]
    name: str
    sides: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    def covers(self, pair: tuple[str, str]) -> bool:
        """Return whether a pair of nodes has one on each of the sides."""
        (one, other), (left, right) = pair, self.sides
        return (one in left and other in right) or (other in left and one in right)


@dataclass(slots=True)
class Question:
    """Whether a `cause` is slow by `metric`, a label, and the answer so far, its `word`.

    `fresh`: its values in the rounds of the proof, log ratios to the reference. `rounds`: in how
    many it was launched; `at`: after how many of these each look is. `look`: after how many it was
    called slow, 0 if it was not. `missed`: how many of its last launches in a row failed.
    """

    metric: str
    cause: Cause
    word: Word = "open"
    fresh: list[float] = field(default_factory=list)
    rounds: int = 0
    at: tuple[int, ...] = ()
    look: int = 0
    missed: int = 0

    @property
    def unit(self) -> str:
        """The name of its cause."""
        return self.cause.name

    @property
    def effect(self) -> tuple[float, float, float]:
        """Its speed over that of the others, low and high, as ratios: a 95 % interval for it alone.

        NaN for all without a value, for low and high with fewer than 6.
        """
        return _effect(tuple(self.fresh))

    @property
    def to_go(self) -> int | None:
        """Rounds until the next look; None if there is none."""
        later = (n - self.rounds for n in self.at if n > self.rounds)
        return next(later, None) if self.word == "open" else None


@lru_cache(maxsize=4096)
def _effect(fresh: tuple[float, ...]) -> tuple[float, float, float]:
    import numpy as np

    if not fresh:
        return math.nan, math.nan, math.nan
    ratio, low, high = (float(np.exp(x)) for x in hodges_lehmann(np.array(fresh), ERROR))
    return (ratio, low, high) if len(fresh) > RELEASE_FROM else (ratio, math.nan, math.nan)


def looks(hypotheses: float, later: Sequence[int] = LATER) -> tuple[int, ...]:
    """Return after how many fresh rounds the looks are.

    The first is as early as so many hypotheses allow to call one slow; then those of `later`.

    >>> looks(1), looks(50), looks(300)
    ((6, 12, 20), (11, 17, 25), (14, 20, 28))
    """
    first = math.ceil(math.log2(max(1, hypotheses) / (ERROR * SHARES[0])) - 1e-9)
    return tuple(first + more for more in later)


def chance(values: Sequence[float], bound: float) -> float:
    """Return the p-value of the exact one-sided signed-rank test that `values` lie below `bound`.

    Ties, and values at the bound, make it greater. 1 without values.

    >>> chance([-0.3, -0.2, -0.4, -0.25, -0.31], -0.04)  # all five below: 2^-5
    0.03125
    """
    shifted = sorted((abs(v - bound), v >= bound) for v in values)
    above = sum(rank for rank, (_, over) in enumerate(shifted, 1) if over)
    return float(signed_rank_cdf(len(shifted))[above]) if shifted else 1.0


Drawn = list[tuple[str, Question | None, int]]
"""The units of a round. Each with the question that it is launched for, None for a reference, and
a number: a question's unit is compared with the references of the same number."""


class Course:
    """Where a screen stands after the rounds that it has taken; a metric is a label of its plan.

    It is given `margins` by metric, log ratios above 0; `families`: its hypotheses share 1/families
    of the error; `first`: how many rounds are of all units. What is drawn follows from `seed` and
    the rounds taken, so that a screen read from its store goes on in the same way.

    `round`: the number of rounds taken. `questions`: all that were nominated. `wanted`: by metric,
    the units to launch in the next round; none when it is `done`. `at`: after how many fresh rounds
    the looks are, of paths (True) and of other causes (False). `noise`: by metric, how far single
    launches lie from the middle of their unit, as log ratios. `coarse`: by metric, the step of its
    figures as a share, where it is coarse for the margin; it is set after the `first` rounds, and
    not changed, for what was called slow stays so. `gone`: by metric, units, and nodes of pairs,
    that are launched no more. `seen`: by metric, the rows of the first rounds.
    """

    later = LATER
    below = BELOW
    counts_failures = True
    """Whether a fresh round whose launch failed counts in a question's `rounds`."""

    def __init__(
        self, margins: Mapping[str, float], seed: int, families: float, first: int
    ) -> None:
        self.margins, self.seed, self.families, self.first = margins, seed, families, first
        self.round = 0
        self.questions: list[Question] = []
        self.at: dict[bool, tuple[int, ...]] = {}
        self.noise: dict[str, Sequence[float]] = {}
        self.coarse: Mapping[str, float] = {}
        self.gone: dict[str, set[str]] = {m: set() for m in margins}
        self.seen: dict[str, list[Row]] = {m: [] for m in margins}
        self._history: dict[tuple[str, str], list[tuple[object, bool]]] = {}
        self._next()

    def speeds(self, metric: str) -> dict[str, float]:
        """Return the median log speed of each unit, or each end of links, over that of all.

        It is that of the first rounds.
        """
        raise NotImplementedError

    def _nominate(self, metric: str) -> list[Cause]:
        """Return what may be slow by the first rounds, and set the metric's `noise`."""
        raise NotImplementedError

    def _draw(self, metric: str) -> Drawn:
        """Return who is in the next round: all, or the units of open questions and references."""
        raise NotImplementedError

    def _launched(self, metric: str, units: list[str]) -> list[str]:
        """Return the launches for the units of a round: of a pair they may be two, one each way."""
        return units

    @property
    def done(self) -> bool:
        """Whether nothing is left to launch."""
        return not any(self.wanted.values())

    @property
    def steps(self) -> dict[str, float]:
        """By metric, the log ratio by which a coarse step can enlarge a difference."""
        return {m: -math.log1p(-s) if s < 1 else math.inf for m, s in self.coarse.items()}

    def of(self, metric: str) -> list[Question]:
        """Return the questions of a metric."""
        return [one for one in self.questions if one.metric == metric]

    def take(self, rows: Mapping[str, Row]) -> None:
        """Take the log speeds of the next round, by metric: the first nominate, later ones prove.

        After it `questions` are decided where a look is due, and `wanted` is the round after it.
        """
        self.round += 1
        for metric in self.margins:
            row = rows.get(metric, {})
            self._give_up(metric, row)
            if self.round <= self.first:
                self.seen[metric].append(row)
            else:
                self._prove(metric, row)
        if self.round == self.first:
            for metric in self.margins:
                self.questions += [Question(metric, one) for one in self._nominate(metric)]
        for are_paths in (False, True) if self.round >= self.first else ():
            family = [one for one in self.questions if (one.cause.kind == "path") is are_paths]
            at = self.at.setdefault(are_paths, looks(self.families * len(family), self.later))
            for one in family:
                one.at = at
                if one.word == "open" and one.unit in self.gone[one.metric]:
                    one.word = "failed"
            self._decide(family)
        self._next()

    def _give_up(self, metric: str, row: Row) -> None:
        """Put into `gone` each node or GPU whose last GIVEN_UP launches failed.

        Of pairs these must be with different partners that are not gone themselves: the node whose
        launches failed most often goes first, and the failures of its partners with it count no
        more.
        """
        bad, gone, history = set[str](), self.gone[metric], self._history
        for unit, value in row.items():
            names = unit.split(BAR)
            partners = names[::-1] if names[1:] else [self.round]
            for name, partner in zip(names, partners, strict=True):
                history.setdefault((metric, name), []).append((partner, math.isnan(value)))
                bad |= {name} if math.isnan(value) else set()
        for name in sorted(bad, key=lambda n: (-sum(b for _, b in history[metric, n]), n)):
            last = [one for one in history[metric, name] if one[0] not in gone][-GIVEN_UP:]
            if len({partner for partner, is_bad in last if is_bad}) == GIVEN_UP:
                gone.add(name)

    def _prove(self, metric: str, row: Row) -> dict[int, float]:
        """Give each question its fresh value; return the median of the references, by number."""
        drawn = self._drawn[metric]
        values = [(number, row.get(unit, math.nan)) for unit, one, number in drawn if one is None]
        known = grouped((number, value) for number, value in values if not math.isnan(value))
        middles = {number: median(several) for number, several in known.items()}
        for unit, question, number in drawn:
            if question is not None:
                self._add(question, row.get(unit, math.nan) - middles.get(number, math.nan))
        return middles

    def _add(self, question: Question, value: float) -> None:
        """Give a question the value of a fresh round: NaN if it, or all references, failed."""
        is_bad = math.isnan(value)
        question.missed = question.missed + 1 if is_bad else 0
        question.fresh += [] if is_bad else [value]
        question.rounds += self.counts_failures or not is_bad
        if question.missed == GIVEN_UP and not self.counts_failures:
            question.word = "failed"

    def _decide(self, questions: Sequence[Question]) -> None:
        """Where a look is due, call slow what Holm's step-down proves, and release the fit."""
        left = self.families * sum(one.word != "slow" for one in questions)
        chances = [
            (chance(one.fresh, bound) / SHARES[one.at.index(one.rounds)], n)
            for n, one in enumerate(questions)
            if one.word in ("open", "undecided") and one.rounds in one.at
            for bound in [-self.margins[one.metric] - self.steps.get(one.metric, 0.0)]
        ]
        for by_chance, n in sorted(chances):
            if by_chance > ERROR / left * _SLACK:
                break
            questions[n].word, questions[n].look = "slow", questions[n].rounds
            left -= self.families
        for one in questions:
            if one.word == "open" and len(one.fresh) >= RELEASE_FROM:
                margin, ended = self.margins[one.metric], one.rounds == one.at[-1]
                fit = chance([-value for value in one.fresh], margin) <= ERROR
                # After the last look the rule that nominates decides, now on many more rounds.
                if fit or (ended and median(one.fresh) >= -BELOW * margin):
                    one.word = "released"
            if one.word == "open" and one.rounds >= one.at[-1]:
                one.word = "undecided"

    def _next(self) -> None:
        """Draw the next round into `wanted`; where it is empty, open questions are undecided."""
        self._drawn = {metric: self._draw(metric) for metric in self.margins}
        self.wanted = {
            metric: tuple(self._launched(metric, [unit for unit, *_ in drawn]))
            for metric, drawn in self._drawn.items()
        }
        for one in self.questions if self.done else ():
            one.word = "undecided" if one.word == "open" else one.word

    def detectable(self, metric: str) -> float | None:
        """Return by how much slower a unit, or an end, would have been found; see `detectable`."""
        number = 1 + sum(one.cause.kind != "path" for one in self.questions)
        rules = Rules(self.first, self.later, self.below, self.steps.get(metric, 0.0))
        hypotheses, margin = self.families * number, self.margins[metric]
        return detectable(self.noise[metric], margin, hypotheses, self.seed, rules)


class Rules(NamedTuple):
    """How a course finds a slow unit.

    `first`: the rounds of all units. `later`: rounds from the first look to each look. `below`: the
    part of the margin below which a unit is nominated. `step`: the log ratio of a coarse step.
    """

    first: int
    later: Sequence[int]
    below: float
    step: float


def detectable(
    noise: Sequence[float], margin: float, hypotheses: float, seed: int, rules: Rules
) -> float | None:
    """Return the least slowness, as a share, at which a unit is called slow with chance POWER.

    Launches of one more unit are simulated from `noise`, that of the launches made (log ratios);
    `margin` is a log ratio, and `hypotheses` counts that unit's own. None where even a unit slower
    by MOST_SLOW is found less often.
    """
    import numpy as np

    if not noise:
        return None
    rounds, later, below, step = rules
    at = looks(hypotheses, later)
    rows = np.random.default_rng(seed).choice(np.array(noise), (TRIES, rounds + at[-1]))

    def found(slow: float) -> float:
        """Return the share of the tries in which a unit slower by `slow` is called slow."""
        shifted = rows + math.log1p(-slow) + step
        suspected = np.median(shifted[:, :rounds], axis=1) < -below * margin
        named = np.zeros(TRIES, dtype=bool)
        for n, share in zip(at, SHARES, strict=True):
            fresh = shifted[:, rounds : rounds + n] + margin + step
            ranks = np.abs(fresh).argsort(axis=1).argsort(axis=1) + 1
            above = (ranks * (fresh >= 0)).sum(axis=1)
            named |= signed_rank_cdf(n)[above] <= ERROR * share / hypotheses * _SLACK
        return float((suspected & named).mean())

    sizes = [n / 200 for n in range(1, round(MOST_SLOW * 200) + 1)]
    if found(sizes[-1]) < POWER:
        return None
    return sizes[bisect_left(sizes, POWER, 0, len(sizes) - 1, key=found)]
