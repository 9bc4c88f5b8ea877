"""Check 30 and its like: how studies that explain err, and what other designs make of the same.

A simulated study has a game: the log of a station is the sum of the changes that are switched, of
pairs and of triples of them. Launches come in the order of time of a plan, with the same noise as
everywhere; what follows is the code that judges real ones: orders, parts, looks and intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import permutations

import numpy as np

from paribus.stats import parts
from paribus.stats.estimate import hodges_lehmann
from paribus.stats.looks import Looks
from paribus.stats.opposites import Opposed, Unit
from paribus.stats.schedule import Randomiser
from validation.figures import Check, Figure
from validation.noise import NOISE

BLOCKS = 60
MARGIN = 0.02
EFFECTS = tuple(map(math.log1p, (0.10, 0.02, 0.0, -0.03, 0.05, 0.0, 0.01, -0.02)))
"""Of the changes, in logs: two of them at the margin, where words are wrong the soonest."""

CHAIN = ((), (0,), (), (2,), (2,), (), (5,), (0,))
"""Needs of up to eight changes, where there are some."""

PLANS = 20
"""Plans that the studies of a figure are divided among: each has its own orders."""


@dataclass(frozen=True)
class Game:
    """What stations take: `changes` add, the first two of them act together, the first three too.

    `needs` are those of the changes.
    """

    changes: int
    pair: float = 0.0
    triple: float = 0.0
    constrained: bool = False
    effects: tuple[float, ...] = EFFECTS

    @property
    def needs(self) -> parts.Needs:
        return CHAIN[: self.changes] if self.constrained else ((),) * self.changes

    def log(self, station: int) -> float:
        """Return the log of what a launch at a station takes."""
        added = sum(self.effects[n] for n in range(self.changes) if station >> n & 1)
        both = self.pair * (station & 3 == 3)
        return added + both + self.triple * (self.changes > 2 and station & 7 == 7)

    def truth(self) -> np.ndarray:
        """Return the part of each change: its mean effect over all orders that are allowed."""
        found, several = np.zeros(self.changes), 0
        for turn in permutations(range(self.changes)) if self.changes < 7 else ():
            if all(turn.index(one) < turn.index(n) for n in turn for one in self.needs[n]):
                several += 1
                station = 0
                for one in turn:
                    found[one] += self.log(station | 1 << one) - self.log(station)
                    station |= 1 << one
        if several:
            return found / several
        assert not self.constrained
        shared = np.array(self.effects[: self.changes])
        shared[:2] += self.pair / 2
        shared[:3] += self.triple / 3
        return shared


def values(game: Game, noise: str, studies: int, blocks: int = BLOCKS) -> tuple[np.ndarray, float]:
    """Return log ratios (study, series, block), the whole last, and the launches of a block."""
    rng, rows, launches = np.random.default_rng([43, game.changes]), [], 0.0
    for plan in range(PLANS):
        drawn = [parts.order(game.needs, plan, "", block + 1) for block in range(blocks)]
        stations = [parts.stations(order, game.needs) for order in drawn]
        ends = np.cumsum([0, *map(len, stations)])
        some = -(-studies // PLANS)
        time = NOISE[noise](rng, some, -(-int(ends[-1]) // 40) * 40)
        found = np.empty((some, game.changes + 1, blocks))
        for block, (order, at) in enumerate(zip(drawn, stations, strict=True)):
            shuffled = ends[block] + np.array(
                Randomiser(plan, f"time {block}").shuffled(range(len(at)))
            )
            logs = time[:, shuffled] + np.array([game.log(one) for one in at])
            weights = np.array(
                [
                    parts.parts({one: float(one == other) for one in at}, order, game.needs)
                    for other in at
                ]
            )
            found[:, :-1, block] = logs @ weights
            found[:, -1, block] = logs[:, at.index(2**game.changes - 1)] - logs[:, 0]
        rows.append(found)
        launches += ends[-1] / blocks / PLANS
    return np.concatenate(rows)[:studies], launches


@dataclass(frozen=True)
class Ended:
    """Shares of studies: with any `wrong` word, and the least share of `covered` parts.

    `launches` is the median at which all words were said, of those studies where all were.
    """

    wrong: float
    covered: float
    launches: float


Ends = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Estimates and ends of intervals (study, part and whole)."""


def ended(game: Game, noise: str, studies: int) -> Ended:
    """Return what studies come to that look as their plan has it."""
    truth = np.append(game.truth(), game.log(2**game.changes - 1))
    looks = parts.looks(game.changes, BLOCKS)
    if parts.opposed(game.needs):
        plans = opposed(game, noise, studies)
        each = len(plans[0].stations) * 2 / BLOCKS
        return judged(partial(of_opposed, plans), truth, each, looks)
    series, each = values(game, noise, studies)
    return judged(partial(of_blocks, series), truth, each, looks)


def of_blocks(series: np.ndarray, look: int, level: float) -> Ends:
    """Return the intervals of `series` (study, part and whole, block) at a look."""
    return intervals(series[:, :, :look], level)


def judged(at: Callable[[int, float], Ends], truth: np.ndarray, each: float, looks: Looks) -> Ended:
    """Return what studies come to whose intervals `at` returns, of `each` launches a block."""
    delta = math.log1p(MARGIN)
    shape = at(looks.at[0], looks.level)[0].shape
    wrong = np.zeros(shape[0], dtype=bool)
    covered = np.ones(shape, dtype=bool)
    stop = np.zeros(shape[0], dtype=int)
    for look in looks.at:
        middle, low, high = at(look, looks.level)
        here = stop == 0
        slower, faster = low > delta, high < -delta
        equal = (low > -delta) & (high < delta)
        bad = slower & (truth <= delta) | faster & (truth >= -delta) | equal & (abs(truth) >= delta)
        wrong |= bad.any(axis=1) & here
        inside = (low <= truth) & (truth <= high)
        covered[here] = inside[here]
        half = (high - low) / 2
        said = (slower | faster) & (half <= np.maximum(delta, abs(middle) / 4))
        done = (said | equal | (half <= delta / 4)).all(axis=1)
        stop[here & done] = look
    decided = stop[stop > 0]
    return Ended(
        float(wrong.mean()),
        float(covered.mean(axis=0).min()),
        float(np.median(decided) * each) if len(decided) * 2 > len(stop) else math.inf,
    )


@dataclass(frozen=True)
class Plan:
    """Studies of one plan: its units, and the logs (study, unit) of combinations and opposites."""

    stations: tuple[int, ...]
    blocks: tuple[int, ...]
    logs: np.ndarray
    opposites: np.ndarray

    def of(self, study: int, changes: int) -> Opposed:
        """Return one study as Paribus has it."""
        logs = self.logs[study].tolist(), self.opposites[study].tolist()
        rows = zip(self.blocks, self.stations, *logs, strict=True)
        return Opposed(changes, tuple(Unit(*row) for row in rows))


def opposed(game: Game, noise: str, studies: int, blocks: int = BLOCKS) -> list[Plan]:
    """Return studies whose combinations are launched with their opposites, by plan."""
    rng, found, some = np.random.default_rng([43, game.changes]), [], -(-studies // PLANS)
    for plan in range(PLANS):
        pairs, of, launched = [], [], []
        for block in range(1, blocks + 1):
            draw = Randomiser(plan, f"time {block}")
            for pair in draw.shuffled(parts.groups(game.needs, plan, "", block)):
                pairs.append(pair)
                of.append(block)
                launched += draw.shuffled(pair)
        time = NOISE[noise](rng, some, -(-len(launched) // 40) * 40)[:, : len(launched)]
        logs = time + np.array([game.log(one) for one in launched])
        first, second = logs[:, ::2], logs[:, 1::2]
        stations = tuple(one for one, _ in pairs)
        ahead = np.array(stations) == launched[::2]
        both = np.where(ahead, first, second), np.where(ahead, second, first)
        found.append(Plan(stations, tuple(of), *both))
    return found


def of_opposed(plans: list[Plan], look: int, level: float) -> Ends:
    """Return the intervals of a look as Opposed has them, of many studies at once."""
    every: list[Ends] = []
    for plan in plans:
        units = [n for n, block in enumerate(plan.blocks) if block <= look]
        changes = max(plan.stations).bit_length()
        one = plan.of(0, changes)
        fit = one._fit(range(1, look + 1))
        assert fit
        _, signs = one._known(range(1, look + 1))
        differences = plan.logs - plan.opposites
        values = differences[:, units]
        found = values @ fit.weights.T
        free = 1 - np.einsum("un,nu->u", signs, fit.weights)
        error = np.sqrt((values - found @ signs.T) ** 2 / free @ (fit.weights**2).T)
        half = error * [student(level, int(one)) for one in fit.freedom]
        known = [x.high for x in one.compared(range(1, look + 1), 1 - level) if x]
        assert np.allclose(np.log(known), (found + half)[0], atol=1e-4, rtol=5e-3)
        arms = [n for n in units if plan.stations[n] + 1 == 1 << changes]
        middle, low, high = hodges_lehmann(differences[:, arms], round(level, 12))
        ends = ((found, middle), (found - half, low), (found + half, high))
        parts_, least, most = (np.column_stack(both) for both in ends)
        every.append((parts_, least, most))
    middle, low, high = (np.concatenate(one) for one in zip(*every, strict=True))
    return middle, low, high


def intervals(series: np.ndarray, level: float) -> Ends:
    """Return estimates and ends as parts.compare has them, of many studies at once."""
    middle, low, high = hodges_lehmann(series, round(level, 12))  # as compare does
    several, n = series.shape[1] - 1, series.shape[2]
    if several > parts.WINDOW:
        rows = series[:, :-1]
        one = np.array([parts.compare(list(row), 1 - level, several).high for row in rows[0]])
        mean = rows.mean(axis=2)
        half = student(level, n - 1) * rows.std(axis=2, ddof=1) / math.sqrt(n)
        low[:, :-1] = np.minimum(low[:, :-1], mean - half)
        high[:, :-1] = np.maximum(high[:, :-1], mean + half)
        middle[:, :-1] = mean
        assert np.allclose(np.log(one), high[0, :-1], atol=1e-4, rtol=5e-3)
    return middle, low, high


def student(level: float, freedom: int) -> float:
    """Return the quantile of Student's t that leaves out `level` on both sides together."""
    from scipy.stats import t

    return float(t.ppf(1 - level / 2, freedom))


TOGETHER = (0.0, 0.05, 0.3, 1.0)
UNLIKE = ((0.3, 0.0), (0.3, -0.05), (0.05, 0.3), (0.0, 1.0))
"""How pairs and triples act together, where not alike."""


def explained(studies: int) -> Check:
    """Check 30: any wrong word on parts, whole or at looks, and what intervals of parts hold."""
    of_noise = {
        f"{name}, {n} changes": ended(Game(n, 0.05, 0.05), name, studies)
        for n in (3, 5)
        for name in NOISE
    }
    acting = {
        f"{n} changes, {pair:g} and {triple:g}": ended(Game(n, pair, triple), "N1", studies)
        for n in (3, 5)
        for pair, triple in (*zip(TOGETHER, TOGETHER, strict=True), *UNLIKE)
    }
    several = {f"{n} changes": ended(Game(n), "N1", studies) for n in (2, 4, 6, 8)}
    bound = {
        f"{n} changes, {both:g}": ended(Game(n, both, both, constrained=True), "N1", studies)
        for n in (3, 5)
        for both in (0.0, 0.3)
    }
    groups = (
        ("noise", of_noise),
        ("acting together", acting),
        ("changes", several),
        ("changes that need others", bound),
    )
    return Check(
        30,
        "Which change makes the difference",
        f"{studies:,} studies for each figure, of changes of 10, 2, 0, -3, 5, 0, 1 and -2 %, "
        "margin 2 %, of which the first two, and the first three, act together by so much (log); "
        "over parts, whole and all looks.",
        (
            *(one for name, found in groups for one in _figures(name, found)),
            Figure(
                "pairs seen that are none", {"": named_pairs(3, max(studies, 4000))}, "<=", 0.012
            ),
            Figure(
                "5 changes: half width of parts after 144 launches, 1.5 % noise",
                {"": half_width(5, 144, studies)},
                "<=",
                0.01,
            ),
            Figure("5 changes: pairs named that are none", {"": named_of(5, studies)}, "<=", 0.012),
        ),
    )


def _figures(name: str, found: dict[str, Ended]) -> tuple[Figure, Figure]:
    return (
        Figure(f"{name}: any wrong word", _each(found, "wrong"), "<=", 0.057),
        Figure(f"{name}: worst part covered", _each(found, "covered"), ">=", 0.94),
    )


def _each(found: dict[str, Ended], what: str) -> dict[str, float]:
    return {name: getattr(one, what) for name, one in found.items()}


# --- other designs of the same launches --------------------------------------------------------

RUNS = "11110000 11001100 10101010 11000011 10100101 10011001 10010110"
COLUMNS = np.array([[int(one) for one in row] for row in RUNS.split()])
"""The seven columns of a two-level design of eight runs."""

Block = Callable[[Game, np.random.Generator], tuple[np.ndarray, int]]


def one_path(game: Game, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the parts of a block that launches one order of the changes, and its launches."""
    turn = rng.permutation(game.changes)
    stations = [sum(1 << int(one) for one in turn[:n]) for n in range(game.changes + 1)]
    logs = np.array([game.log(one) for one in stations]) + rng.normal(0, 0.015, len(stations))
    found = np.empty(game.changes)
    found[turn] = np.diff(logs)
    return np.append(found, logs[-1] - logs[0]), len(stations)


def both_ways(game: Game, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return those of an order and its reverse together, and their launches."""
    turn, found = rng.permutation(game.changes), np.zeros(game.changes + 1)
    for way in (turn, turn[::-1]):
        stations = [sum(1 << int(one) for one in way[:n]) for n in range(game.changes + 1)]
        logs = np.array([game.log(one) for one in stations]) + rng.normal(0, 0.015, len(stations))
        found[way] += np.diff(logs) / 2
        found[-1] += (logs[-1] - logs[0]) / 2
    return found, 2 * (game.changes + 1)


def two_level(game: Game, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the effects of a block of eight runs, columns and folding drawn anew; no whole."""
    rows = COLUMNS[rng.permutation(7)[: game.changes]] ^ int(rng.integers(2))
    stations = [sum(int(row[run]) << n for n, row in enumerate(rows)) for run in range(8)]
    logs = np.array([game.log(one) for one in stations]) + rng.normal(0, 0.015, 8)
    found = [logs[row == 1].mean() - logs[row == 0].mean() for row in rows]
    return np.array([*found, sum(found)]), 8


def one_at_a_time(game: Game, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the effects of pairs of the reference with one change each, and with all of them."""
    stations = [*(1 << n for n in range(game.changes)), 2**game.changes - 1]
    noise = rng.normal(0, 0.015 * math.sqrt(2), len(stations))
    return np.array([game.log(one) for one in stations]) + noise, 2 * len(stations)


OTHERS: dict[str, Block] = {
    "one order": one_path,
    "an order and its reverse": both_ways,
    "two-level": two_level,
    "one at a time": one_at_a_time,
}


def widths(game: Game, launches: int, studies: int) -> dict[str, tuple[float, float]]:
    """Return half width and coverage of parts of each design after so many launches, in N1.

    All at the level of a look of studies that explain so many changes: one look, one design each.
    """
    level, truth = parts.looks(game.changes, BLOCKS).level, game.truth()
    series, each = values(game, "N1", studies)
    found = {"windows": series[:, :-1, : int(launches / each)]}
    for name, block in OTHERS.items():
        rng = np.random.default_rng([43, game.changes])
        blocks = launches // block(game, rng)[1]
        rows = [[block(game, rng)[0][:-1] for _ in range(blocks)] for _ in range(studies)]
        found[name] = np.array(rows).transpose(0, 2, 1)
    return {name: _width(rows, truth, level) for name, rows in found.items()}


CLEAR = tuple(map(math.log1p, (0.10, 0.05, 0.0, -0.05, 0.0, 0.0, 0.0, 0.0)))
"""Effects that are far from the margin, on either side."""


def needed(changes: int, studies: int) -> dict[str, float]:
    """Return the median launches until all verdicts, where effects add: of two designs."""
    game = Game(changes, effects=CLEAR)
    truth, rng = np.append(game.truth(), game.log(2**changes - 1)), np.random.default_rng(43)
    rows = [[one_at_a_time(game, rng)[0] for _ in range(BLOCKS)] for _ in range(studies)]
    alone = np.array(rows).transpose(0, 2, 1)
    each, looks = 2 * (changes + 1), parts.looks(changes, BLOCKS)
    return {
        "ours": ended(game, "N1", studies).launches,
        "one at a time": judged(partial(of_blocks, alone), truth, each, looks).launches,
    }


def half_width(changes: int, launches: int, studies: int) -> float:
    """Return the mean half width of parts after so many launches, everything sharing the error."""
    game, level = Game(changes), parts.looks(changes, BLOCKS).level
    plans = opposed(game, "N1", studies)
    look = launches * BLOCKS // len(plans[0].stations) // 2
    _, low, high = of_opposed(plans, look, level)
    return float((high - low)[:, :-1].mean() / 2)


def named_of(changes: int, studies: int) -> float:
    """Return the share of studies of opposites that name a pair where no changes act together."""
    looks, pairs = parts.looks(changes, BLOCKS), changes * (changes - 1) // 2
    level = 1 - looks.nominal(0.05 / (changes + parts.BESIDE) / pairs)
    named = []
    for plan in opposed(Game(changes), "N1", studies):
        for study in range(len(plan.logs)):
            one = plan.of(study, changes)
            every = [one.acting(range(1, look + 1), level).values() for look in looks.at]
            far = [max(x.low - MARGIN, 1 / x.high - MARGIN) > 1 for found in every for x in found]
            named.append(any(far))
    return float(np.mean(named))


def named_pairs(changes: int, studies: int) -> float:
    """Return the share of studies that name a pair at some look where no changes act together."""
    game, rng = Game(changes), np.random.default_rng(44)
    looks, pairs = parts.looks(changes, BLOCKS), changes * (changes - 1) // 2
    level = looks.nominal(0.05 / (changes + parts.BESIDE) / pairs)
    order = tuple(range(changes))
    at = parts.stations(order, game.needs)
    logs = rng.normal(0, 0.015, (studies, BLOCKS, len(at)))
    weights = [parts.interplay({o: float(o == a) for o in at}, order, game.needs) for a in at]
    rows = np.stack([logs @ [w[pair] for w in weights] for pair in weights[0]], axis=1)
    delta, named = math.log1p(MARGIN), np.zeros(studies, dtype=bool)
    for look in looks.at:
        _, low, high = hodges_lehmann(rows[:, :, :look], round(level, 12))
        named |= ((low > delta) | (high < -delta) | (low > 0) | (high < 0)).any(axis=1)
    return float(named.mean())


def _width(rows: np.ndarray, truth: np.ndarray, level: float) -> tuple[float, float]:
    _, low, high = hodges_lehmann(rows, level)
    return float((high - low).mean() / 2), float(((low <= truth) & (truth <= high)).mean())
