"""Which nodes of a fleet are slow: nominated by three rounds of all, proved on fresh rounds.

A unit (a node, an end of links, a pair) has a log speed in each round, relative to the median of
its group in that round: what is common to all in a round is gone. Three rounds of all nominate the
units whose median is below half the margin. In the rounds after that the nominated ones are
launched beside others drawn anew, whose median is the reference; these fresh values alone count,
so nomination biases nothing.

Null hypothesis of a unit: at least half of its fresh values are above the margin, and they lie
evenly about their middle. Its test is the exact one-sided signed-rank test (stats/estimate.py). The
first look is after the least n with 2^-n <= ERROR / (2 x hypotheses), and has half of the error;
those 6 and 14 rounds later have a quarter each. At each look Holm's step-down goes over all
hypotheses, those named before included as rejected: S. Holm, Scand. J. Stat. 6 (1979) 65; over
looks as in W. Maurer & F. Bretz, Stat. Biopharm. Res. 5 (2013) 311. So the chance that any healthy
unit is named is at most ERROR, over all metrics and looks, if disturbances change from round to
round. Figures in steps that are coarse for the margin show a difference larger by up to a step than
it is: there a unit is named only below the margin and a step.

Two groups: where the largest gap between the medians of units is wide and both sides are many, each
side is screened by itself, and that the lower one is slow as a whole is one more hypothesis.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from paribus.stats.estimate import hodges_lehmann, signed_rank_cdf
from paribus.stats.schedule import Randomiser

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ERROR = 0.05
ROUNDS = 3
"""Rounds of all, which nominate."""

BELOW = 0.5
"""Part of the margin below which units are nominated."""

LATER = (0, 6, 14)
"""Rounds from the first look to each look."""

SHARES = (1 / 2, 1 / 4, 1 / 4)
"""Of ERROR, by look."""

PARTNERS = 8
"""Others that are launched beside nominated units at least, if the group has as many."""

LEAST_UNITS = 3
LEAST_GROUP = 3
GROUP_SHARE = 0.1
"""A smaller lower side is single units, not a group."""

GAP_SCATTERS = 4.0
"""Standard deviations of a unit's median of three that lie in the gap between two groups."""

RELEASE_FROM = 5
"""Fresh rounds after which a unit that is clearly above the margin is released: 2^-5 < 5 %."""

GIVEN_UP = 2
"""Failures in a row after which a unit is launched no more."""

POWER = 0.95
TRIES = 400
MOST_SLOW = 0.6
"""The greatest slowness that `detectable` tries."""

GROUP = "the lower group"
"""The unit that stands for the lower of two groups as a whole."""

Table = Mapping[int, Mapping[str, float]]
"""Round, from 1 -> unit -> log speed, higher is better; NaN for a launch that failed."""

Word = Literal["slow", "undecided", "released", "open", "failed"]


@dataclass(frozen=True, slots=True)
class Suspect:
    """A nominated unit of `metric`, judged by its `fresh` log ratios to the margin's other side.

    `ratio`, `low` and `high`: its speed over that of the others, with a 95 % interval by itself
    (NaN below 6 values). `look`: fresh rounds at which it was named, 0 if it was not.
    `to_go`: rounds until the next look, None if there is none.
    """

    metric: str
    unit: str
    word: Word
    fresh: tuple[float, ...]
    ratio: float
    low: float
    high: float
    look: int = 0
    to_go: int | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a screen stands after the rounds it has.

    `groups`: by metric one or two lists of units, the upper first. `nominated` by metric;
    `failed`: units that are launched no more, with the metric. `wanted`: by metric, who is to be
    launched in the next round, nobody when it is `done`. `looks`: fresh rounds of the looks.
    `speeds`: by metric, the median of each unit in the `first` rounds, which are of all, over that
    of these rounds, as a log ratio. `noise`: by metric, by how much single launches lie off.
    """

    round: int
    groups: Mapping[str, tuple[tuple[str, ...], ...]]
    nominated: Mapping[str, tuple[str, ...]]
    suspects: tuple[Suspect, ...]
    failed: Mapping[str, str]
    wanted: Mapping[str, tuple[str, ...]]
    looks: tuple[int, ...]
    speeds: Mapping[str, Mapping[str, float]]
    noise: Mapping[str, tuple[float, ...]]
    first: int = ROUNDS

    @property
    def done(self) -> bool:
        """Whether nothing is left to launch."""
        return not any(self.wanted.values())


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


def relative(row: Mapping[str, float], members: Sequence[str]) -> dict[str, float]:
    """Return the log speeds of `members` in a round over their median; who failed is left out."""
    known = {unit: row[unit] for unit in members if not math.isnan(row.get(unit, math.nan))}
    middle = median(known.values()) if known else 0.0
    return {unit: value - middle for unit, value in known.items()}


def middles(table: Table, members: Sequence[str]) -> dict[str, float]:
    """Return the median over the rounds of all of each unit that has two values or more."""
    rows = [relative(table.get(number, {}), members) for number in range(1, ROUNDS + 1)]
    found = {unit: [row[unit] for row in rows if unit in row] for unit in members}
    return {unit: median(values) for unit, values in found.items() if len(values) > 1}


def scatter(table: Table, members: Sequence[str]) -> list[float]:
    """Return by how much launches lie off their unit's mean, as a sample of the noise.

    Three values less their mean have two thirds of the variance: scaled by sqrt(3/2).
    """
    rows = [relative(table.get(number, {}), members) for number in range(1, ROUNDS + 1)]
    found = []
    for unit in members:
        values = [row[unit] for row in rows if unit in row]
        if len(values) > 1:
            mean = sum(values) / len(values)
            scale = math.sqrt(len(values) / (len(values) - 1))
            found += [(value - mean) * scale for value in values]
    return found


def grouped(table: Table, units: Sequence[str], margin: float) -> tuple[tuple[str, ...], ...]:
    """Return one group of units, or two with a gap between them, the upper first."""
    of = middles(table, units)
    order = sorted(of, key=lambda unit: of[unit])
    least = max(LEAST_GROUP, math.floor(GROUP_SHARE * len(order)) + 1)
    places = range(least, len(order) - least + 1)
    if not places:
        return (tuple(units),)
    at = max(places, key=lambda i: of[order[i]] - of[order[i - 1]])
    gap = of[order[at]] - of[order[at - 1]]
    noise = median(map(abs, scatter(table, units))) / 0.6745
    if gap <= max(margin / 2, GAP_SCATTERS * noise * 0.67):
        return (tuple(units),)
    lower = set(order[:at])
    return tuple(u for u in units if u not in lower), tuple(u for u in units if u in lower)


def nominate(table: Table, groups: Sequence[Sequence[str]], margin: float) -> tuple[str, ...]:
    """Return the units whose median over the rounds of all is below half the margin, no cap."""
    found = (middles(table, members) for members in groups)
    return tuple(unit for of in found for unit, value in of.items() if value < -BELOW * margin)


def standing(
    tables: Mapping[str, Table],
    units: Mapping[str, Sequence[str]],
    margins: Mapping[str, float],
    seed: int,
    families: float = 1.0,
    steps: Mapping[str, float] | None = None,
) -> Standing:
    """Return where the screen of `units` (by metric) stands, by the `tables` of its metrics.

    `margins` are log ratios above 0. A round that is not whole yet is in no table. What is drawn
    depends on `seed` alone. The screen may have one of `families` equal shares of the error.
    `steps`: log ratios by which figures are coarse, of the metrics where that matters.
    Raises ValueError for fewer than LEAST_UNITS units.
    """
    if min(map(len, units.values())) < LEAST_UNITS:
        raise ValueError(f"fewer than {LEAST_UNITS} units: none has peers to be compared with")
    last = max((max(table, default=0) for table in tables.values()), default=0)
    failed = {m: _failed(tables[m], units[m]) for m in tables}
    alive = {m: [u for u in units[m] if u not in failed[m]] for m in tables}
    named = {f"{u}": m for m in tables for u in failed[m]}
    speeds = {m: middles(tables[m], units[m]) for m in tables}
    if last < ROUNDS:
        wanted = {m: tuple(Randomiser(seed, f"{m} {last + 1}").shuffled(alive[m])) for m in tables}
        none: dict[str, tuple[str, ...]] = dict.fromkeys(tables, ())
        one_group = {m: (tuple(units[m]),) for m in tables}
        return Standing(last, one_group, none, (), named, wanted, (), speeds, {})
    groups = {m: grouped(tables[m], units[m], margins[m]) for m in tables}
    nominated = {m: nominate(tables[m], groups[m], margins[m]) for m in tables}
    number = sum(len(nominated[m]) + (len(groups[m]) > 1) for m in tables)
    at = looks(families * number)
    of = {m: {u: n for n, members in enumerate(groups[m]) for u in members} for m in tables}
    proofs = [Proof(m, unit, of[m][unit]) for m in tables for unit in nominated[m]]
    proofs += [Proof(m, GROUP, 1) for m in tables if len(groups[m]) > 1]
    wanted = dict.fromkeys(tables, ())
    for fresh in range(1, last - ROUNDS + 2):
        still = [one for one in proofs if one.word == "open" and fresh <= at[-1]]
        if fresh > last - ROUNDS or not still:
            wanted = {
                m: _drawn(m, still, groups[m], nominated[m], alive[m], seed, fresh) for m in tables
            }
            break
        rows = {m: tables[m].get(ROUNDS + fresh, {}) for m in tables}
        beside = {m: _beside(rows[m], of[m], nominated[m]) for m in tables}
        for one in still:
            one.add(rows[one.metric], beside[one.metric])
        decide(proofs, at, margins, families, steps)
    suspects = tuple(one.suspect(at, failed[one.metric]) for one in proofs)
    noise = {m: tuple(v for own in groups[m] for v in scatter(tables[m], own)) for m in tables}
    return Standing(last, groups, nominated, suspects, named, wanted, at, speeds, noise)


def _beside(
    row: Mapping[str, float], group: Mapping[str, int], nominated: Sequence[str]
) -> tuple[float, float]:
    """Return the median of who was launched beside the nominated, by group; NaN of nobody."""
    values: tuple[list[float], list[float]] = ([], [])
    taken = set(nominated)
    for unit, value in row.items():
        if unit not in taken and not math.isnan(value):
            values[group[unit]].append(value)
    upper, lower = (median(some) if some else math.nan for some in values)
    return upper, lower


class Proof:
    """The proof of one hypothesis: its fresh `rounds`, their values, and what became of it."""

    def __init__(self, metric: str, unit: str, group: int) -> None:
        self.metric, self.unit, self.group = metric, unit, group
        self.fresh: list[float] = []
        self.word: Word = "open"
        self.look = self.rounds = 0

    def add(self, row: Mapping[str, float], beside: Sequence[float]) -> None:
        """Take the value of a fresh round: over the median of the others, `beside` by group."""
        self.rounds += 1
        upper, own = beside[0], beside[self.group]
        value = own - upper if self.unit == GROUP else row.get(self.unit, math.nan) - own
        if not math.isnan(value):
            self.fresh.append(value)

    def suspect(self, at: Sequence[int], failed: Collection[str]) -> Suspect:
        """Return what is to be said of it after the rounds it has had."""
        import numpy as np

        values = np.array(self.fresh or [math.nan])
        ratio, low, high = (float(np.exp(x)) for x in hodges_lehmann(values, ERROR))
        if len(self.fresh) < RELEASE_FROM + 1:
            low = high = math.nan
        word: Word = "failed" if self.word == "open" and self.unit in failed else self.word
        later = (
            next((n - self.rounds for n in at if n > self.rounds), None) if word == "open" else None
        )
        if word == "open" and later is None:
            word = "undecided"
        fresh = tuple(self.fresh)
        return Suspect(
            self.metric, self.unit, word, fresh, ratio, low, high, look=self.look, to_go=later
        )


def decide(
    proofs: Sequence[Proof],
    at: Sequence[int],
    margins: Mapping[str, float],
    families: float = 1,
    steps: Mapping[str, float] | None = None,
) -> None:
    """Where a look is due name who is slow, and release who is clearly fit.

    Of several `families` of hypotheses each has its share of the error. `steps` as `standing`.
    """
    bounds = {m: -margin - (steps or {}).get(m, 0.0) for m, margin in margins.items()}
    shares = dict(zip(at, SHARES, strict=True))
    left = families * sum(one.word != "slow" for one in proofs)
    due = [one for one in proofs if one.word == "open" and one.rounds in shares]
    chances = {id(one): chance(one.fresh, bounds[one.metric]) / shares[one.rounds] for one in due}
    for one in sorted(due, key=lambda one: chances[id(one)]):
        # The slack keeps 2^-n from missing the level that it is exactly.
        if chances[id(one)] > ERROR / left * (1 + 1e-12):
            break
        one.word, one.look, left = "slow", one.rounds, left - families
    for one in proofs:
        if one.word == "open" and len(one.fresh) >= RELEASE_FROM:
            turned = [-value for value in one.fresh]
            fit = chance(turned, margins[one.metric]) <= ERROR
            # At the end by the rule that nominates: what it says of three rounds, many rebut.
            rebutted = one.rounds == at[-1] and median(one.fresh) >= -BELOW * margins[one.metric]
            if fit or rebutted:
                one.word = "released"


def _failed(table: Table, units: Sequence[str]) -> list[str]:
    """Return the units whose last launches have failed, GIVEN_UP of them."""
    found = []
    for unit in units:
        values = [row[unit] for _, row in sorted(table.items()) if unit in row]
        if len(values) >= GIVEN_UP and all(map(math.isnan, values[-GIVEN_UP:])):
            found.append(unit)
    return found


def _drawn(
    metric: str,
    still: Sequence[Proof],
    groups: Sequence[Sequence[str]],
    nominated: Sequence[str],
    alive: Sequence[str],
    seed: int,
    fresh: int,
) -> tuple[str, ...]:
    """Return who is launched in a fresh round: who is still open, and others drawn anew."""
    mine = [one for one in still if one.metric == metric]
    whole = any(one.unit == GROUP for one in mine)
    there, taken = set(alive), set(nominated)
    found: list[str] = []
    for number, members in enumerate(groups):
        own = [one.unit for one in mine if one.group == number and one.unit in there]
        if not own and not whole:
            continue
        others = [unit for unit in members if unit in there and unit not in taken]
        draw = Randomiser(seed, f"{metric} {number} {ROUNDS + fresh}")
        found += own + draw.shuffled(others)[: max(PARTNERS, len(own))]
    return tuple(Randomiser(seed, f"{metric} {ROUNDS + fresh}").shuffled(found))


def detectable(
    noise: Sequence[float],
    margin: float,
    hypotheses: float,
    seed: int,
    rounds: int = ROUNDS,
    later: Sequence[int] = LATER,
    below: float = BELOW,
    step: float = 0.0,
) -> float | None:
    """Return how much slower a unit would have been named with probability POWER, as a share.

    Launches of one more slow unit are drawn from the `noise` of those that were made, as `scatter`
    has it, in so many `rounds` of all, which nominate `below` a part of the margin, and the fresh
    ones; None where even MOST_SLOW is not found so often. `hypotheses` there were. Figures coarse
    by `step`, a log ratio, may hide as much of it.
    """
    import numpy as np

    if not noise:
        return None
    at = looks(hypotheses + 1, later)
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
            named |= signed_rank_cdf(n)[above] <= ERROR * share / (hypotheses + 1) * (1 + 1e-12)
        return float((suspected & named).mean())

    steps = [step / 200 for step in range(1, round(MOST_SLOW * 200) + 1)]
    low, high = 0, len(steps) - 1
    if found(steps[high]) < POWER:
        return None
    while low < high:
        half = (low + high) // 2
        low, high = (low, half) if found(steps[half]) >= POWER else (half + 1, high)
    return steps[low]
