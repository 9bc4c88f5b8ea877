"""Questions about a fleet: what may be slow is nominated by rounds of all, and proved afresh.

What a unit (a node, a GPU, a pair of nodes) has in a round is its log speed over the median of what
it is compared with in that round: what is common to all in a round is gone. First rounds of all
nominate causes, each a Question. In the rounds after that its units are launched beside others
drawn anew, whose median is the reference; these fresh values alone count, so nomination biases
nothing. nodes.py and links.py say what the causes are, and who is launched.

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
from typing import Literal

from paribus.core import grouped
from paribus.stats.estimate import hodges_lehmann, signed_rank_cdf

ERROR = 0.05
SHARES = (1 / 2, 1 / 4, 1 / 4)
"""Of ERROR, by look."""

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
"""Keeps 2^-n from missing the level that it is exactly."""

BAR = "|"
"""Between the two nodes of a pair, which a launch begins on the first of."""

_GPU = re.compile(r"(.*):gpu(\d+)")

Row = Mapping[str, float]
"""Log speeds of a round by unit, higher is better; NaN for a launch that failed."""

Word = Literal["slow", "undecided", "released", "open", "failed"]


def nodes_of(unit: str) -> tuple[str, ...]:
    """Return the nodes of a unit: of a pair two, else one, which may be that of a GPU.

    >>> nodes_of("n1"), nodes_of("n1:gpu3"), nodes_of("n1|n2")
    (('n1',), ('n1',), ('n1', 'n2'))
    """
    found = _GPU.fullmatch(unit)
    return (found[1],) if found else tuple(unit.split(BAR))


def gpu_of(unit: str) -> str:
    """Return the number of the GPU that a unit is, "" for others."""
    found = _GPU.fullmatch(unit)
    return found[2] if found else ""


@dataclass(frozen=True, slots=True)
class Cause:
    """What may be slow. No other has its `name`.

    A *unit*: a node, or a GPU. The lower *half* of a fleet of two groups. Of links it is all pairs
    between two `sides`: an *end*, a *group* or a *path* (links.py).
    """

    kind: Literal["unit", "half", "end", "group", "path"]
    name: str
    sides: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    def covers(self, pair: tuple[str, str]) -> bool:
        """Return whether a pair lies between its sides."""
        (one, other), (left, right) = pair, self.sides
        return (one in left and other in right) or (other in left and one in right)


@dataclass(slots=True)
class Question:
    """Whether a `cause` is slow by `metric`, and what its `fresh` values say: log ratios to others.

    `rounds` that it was launched in, and looks `at` so many; `look` at which it was named, 0 if it
    was not; `missed`: its last launches that failed.
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
        """Its speed over that of the others with a 95 % interval by itself, NaN below 6 values."""
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
    """Return after how many fresh rounds the looks are: the first that can name, and `later`.

    >>> looks(1), looks(50), looks(300)
    ((6, 12, 20), (11, 17, 25), (14, 20, 28))
    """
    first = math.ceil(math.log2(max(1, hypotheses) / (ERROR * SHARES[0])) - 1e-9)
    return tuple(first + more for more in later)


def chance(values: Sequence[float], bound: float) -> float:
    """Return P of values as low as these or lower, if they lie evenly about `bound`: exact.

    One-sided signed-rank. Ties, and values at the bound, count against it.
    """
    shifted = sorted((abs(v - bound), v >= bound) for v in values)
    above = sum(rank for rank, (_, over) in enumerate(shifted, 1) if over)
    return float(signed_rank_cdf(len(shifted))[above]) if shifted else 1.0


Drawn = list[tuple[str, Question | None, int]]
"""Units of a round, the question that each is for, None for all others, and with which of these it
is compared."""


class Course:
    """Where a screen stands after the rounds that it has taken, by one metric or more.

    `margins` by metric are log ratios above 0. What is drawn depends on `seed` and on what was
    taken. Its hypotheses have one of `families` equal shares of the error. `wanted`: by metric, who
    is to be launched in the next round, nobody when it is `done`. `at`: fresh rounds of the looks,
    of paths (True) and of all others. `noise`: by metric, by how much single launches lie off.
    `coarse`: the steps of figures, as shares, of the metrics where that matters, by the `first`
    rounds, which are of all: what was named once stays named. `gone`: units, and nodes of pairs,
    that are launched no more.
    """

    later = LATER
    below = BELOW
    counts_failures = True
    """Whether a fresh round in which its launch failed is a round of a question."""

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
        """Return the median of each unit or end over that of all, in the first rounds."""
        raise NotImplementedError

    def _nominate(self, metric: str) -> list[Cause]:
        """Return what may be slow by the first rounds, and keep the noise beside it."""
        raise NotImplementedError

    def _draw(self, metric: str) -> Drawn:
        """Return who is in the next round: all, or what is open and others drawn anew."""
        raise NotImplementedError

    def _launched(self, metric: str, units: list[str]) -> list[str]:
        """Return what is launched for the units of a round."""
        return units

    @property
    def done(self) -> bool:
        """Whether nothing is left to launch."""
        return not any(self.wanted.values())

    @property
    def steps(self) -> dict[str, float]:
        """Coarse steps as the log ratios by which they enlarge a difference."""
        return {m: -math.log1p(-s) if s < 1 else math.inf for m, s in self.coarse.items()}

    def of(self, metric: str) -> list[Question]:
        """Return the questions by a metric."""
        return [one for one in self.questions if one.metric == metric]

    def take(self, rows: Mapping[str, Row]) -> None:
        """Take what a round gave by metric: nominate after the first rounds, then prove."""
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
            own = [one for one in self.questions if (one.cause.kind == "path") is are_paths]
            at = self.at.setdefault(are_paths, looks(self.families * len(own), self.later))
            for one in own:
                one.at = at
                if one.word == "open" and one.unit in self.gone[one.metric]:
                    one.word = "failed"
            self._decide(own)
        self._next()

    def _give_up(self, metric: str, row: Row) -> None:
        """Launch no more on whom the last launches failed: of links with others that have not."""
        bad, gone, history = set[str](), self.gone[metric], self._history
        for unit, value in row.items():
            names = unit.split(BAR)
            others = names[::-1] if names[1:] else [self.round]
            for name, beside in zip(names, others, strict=True):
                history.setdefault((metric, name), []).append((beside, math.isnan(value)))
                bad |= {name} if math.isnan(value) else set()
        for name in sorted(bad, key=lambda n: (-sum(b for _, b in history[metric, n]), n)):
            own = [one for one in history[metric, name] if one[0] not in gone][-GIVEN_UP:]
            if len({beside for beside, is_bad in own if is_bad}) == GIVEN_UP:
                gone.add(name)

    def _prove(self, metric: str, row: Row) -> dict[int, float]:
        """Give each question its value, and return the references: the medians of all others."""
        drawn = self._drawn[metric]
        values = [(side, row.get(unit, math.nan)) for unit, one, side in drawn if one is None]
        known = grouped((side, value) for side, value in values if not math.isnan(value))
        beside = {side: median(own) for side, own in known.items()}
        for unit, one, side in drawn:
            if one is not None:
                self._add(one, row.get(unit, math.nan) - beside.get(side, math.nan))
        return beside

    def _add(self, one: Question, value: float) -> None:
        """Give a question the value of a fresh round: NaN if it, or all references, failed."""
        is_bad = math.isnan(value)
        one.missed = one.missed + 1 if is_bad else 0
        one.fresh += [] if is_bad else [value]
        one.rounds += self.counts_failures or not is_bad
        if one.missed == GIVEN_UP and not self.counts_failures:
            one.word = "failed"

    def _decide(self, questions: Sequence[Question]) -> None:
        """Where a look is due name what is slow, and release what is clearly fit."""
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
                # At the end by the rule that nominates: what it says of three rounds, many rebut.
                if fit or (ended and median(one.fresh) >= -BELOW * margin):
                    one.word = "released"
            if one.word == "open" and one.rounds >= one.at[-1]:
                one.word = "undecided"

    def _next(self) -> None:
        """Draw the next round; where nobody is wanted, what is open is undecided."""
        self._drawn = {metric: self._draw(metric) for metric in self.margins}
        self.wanted = {
            metric: tuple(self._launched(metric, [unit for unit, *_ in drawn]))
            for metric, drawn in self._drawn.items()
        }
        for one in self.questions if self.done else ():
            one.word = "undecided" if one.word == "open" else one.word

    def detectable(self, metric: str) -> float | None:
        """Return how much slower a unit, or an end, would have been named, as a share."""
        number = 1 + sum(one.cause.kind != "path" for one in self.questions)
        how = self.first, self.later, self.below, self.steps.get(metric, 0.0)
        hypotheses, margin = self.families * number, self.margins[metric]
        return detectable(self.noise[metric], margin, hypotheses, self.seed, how)


def detectable(
    noise: Sequence[float],
    margin: float,
    hypotheses: float,
    seed: int,
    how: tuple[int, Sequence[int], float, float],
) -> float | None:
    """Return how much slower a unit would have been named with probability POWER, as a share.

    Launches of one more slow unit are drawn from the `noise` of those that were made; None where
    even MOST_SLOW is not found so often. `hypotheses` there are with its own. `how`: rounds of all,
    later looks and part of the margin of a Course, and a log ratio that coarse figures may hide.
    """
    import numpy as np

    if not noise:
        return None
    rounds, later, below, step = how
    at = looks(hypotheses, later)
    rows = np.random.default_rng(seed).choice(np.array(noise), (TRIES, rounds + at[-1]))

    def found(slow: float) -> float:
        """Return the share of the tries in which a unit slower by `slow` is named."""
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
