"""Which links of a fleet are slow: ends, groups and paths, nominated by a sweep, proved afresh.

A launch measures a pair of nodes, and a round is disjoint pairs. What a pair has in a round is its
log speed over the median of the round's pairs, those within racks and those across by themselves.
The sweep gives each node other partners round after round, within racks first: all of them in
fleets of up to SWEEP + 1 nodes, SWEEP of them in larger ones.

A cause is all pairs between two sides. An *end*: a node, with its adapter, cable and port, and all
others. A *group*: a rack and another, or all others. A *path*: two nodes. Nominated are, what
explains most first, ends and groups whose pairs have a median of three quarters of the margin below
the others of their rounds, when what was nominated before has been taken off: matching pursuit (S.
Mallat & Z. Zhang, IEEE Trans. Signal Process. 41 (1993) 3397). Then single pairs that are left
below the margin and LOW standard deviations, or that failed.

Each is proved on fresh pairs, one a round, drawn anew of it and covered by no other cause; the
reference is the median of pairs that no cause covers. Test, looks and Holm's step-down are those of
nodes (standing.py), with the same error for all causes and metrics together: half of it for ends
and groups, half for paths, of which many are nominated. A cause is looked at after so many of its
own fresh values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median
from typing import Literal

from paribus.core import grouped
from paribus.screen.standing import GIVEN_UP, PARTNERS, Proof, Standing, decide, looks
from paribus.stats.schedule import Randomiser

Pair = tuple[str, str]
"""Two nodes, in the order of their names."""

Row = Mapping[Pair, float]
"""Log speeds of a round, higher is better; NaN for a pair that failed."""

Racks = Mapping[str, tuple[str, ...]]
"""The nodes of each rack, each once; empty where racks are not known."""

LEAST_NODES = 4
"""Of three nodes no pair is left to be compared with."""

SWEEP = 15
WITHIN = 3
"""Rounds of the sweep within racks."""

BELOW = 0.75
"""Part of the margin below which ends and groups are nominated: at a half, chance nominates groups
of which a fifth of the pairs are slow, and these paths with them."""

LOW = 1.5
"""Standard deviations below which a single pair is nominated: of healthy ones 7 in 100 are."""

LEAST_SEEN = 3
"""Pairs of a group that a sweep must have."""

LEAST_BESIDE = 3
"""Partners in its rack from which on an end is proved there: fewer would be the same again."""

LATER = (0, 8, 28)
"""Rounds from the first look to each look: a launch on a pair is short."""

FAMILIES = 2
"""Ends with groups, and paths: each has half of the error."""

DRAWS = 10
"""Tries to give nodes partners in other racks that they have not had."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why pairs may be slow: all between two `sides`. No other has its `name`."""

    kind: Literal["end", "group", "path"]
    name: str
    sides: tuple[frozenset[str], frozenset[str]]

    def covers(self, pair: Pair) -> bool:
        """Return whether a pair lies between its sides."""
        (one, other), (left, right) = pair, self.sides
        return (one in left and other in right) or (other in left and one in right)


@dataclass(frozen=True, slots=True)
class LinkStanding(Standing):
    """As Standing. Units that are wanted are pairs, by `name_of`; suspects are `causes` by name.

    `speeds` are those of each node's pairs in the sweep; `noise` is beside all causes.
    """

    causes: Mapping[str, Cause] = field(default_factory=dict)


class _Case(Proof):
    """The proof of a cause; `missed` of its pairs failed, one after the other."""

    def __init__(self, metric: str, cause: Cause) -> None:
        super().__init__(metric, cause.name, 0)
        self.cause, self.missed = cause, 0
        self.is_path = cause.kind == "path"

    def take(self, value: float) -> None:
        """Take the value of a fresh pair, NaN if it, or all references, failed."""
        if math.isnan(value):
            self.missed += 1
            self.word = "failed" if self.missed == GIVEN_UP else self.word
            return
        self.missed = 0
        self.fresh.append(value)
        self.rounds += 1


Drawn = list[tuple[Pair, "_Case | None"]]
"""Pairs of a round with the case that each is for, None for a reference."""


def name_of(pair: Pair) -> str:
    """Return the name of a pair, which no node has: node names hold no bar."""
    return "|".join(pair)


def sorted_pair(one: str, other: str) -> Pair:
    """Return a pair as it is written."""
    return (one, other) if one < other else (other, one)


def of_nodes(racks: Racks) -> dict[str, str]:
    """Return the rack of each node."""
    return {node: name for name, members in racks.items() for node in members}


def _is_within(pair: Pair, of: Mapping[str, str]) -> bool:
    return of.get(pair[0]) == of.get(pair[1])


def relative(row: Row, of: Mapping[str, str]) -> dict[Pair, float]:
    """Return log speeds over the median of their round, of pairs within racks or across."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    for pair, value in row.items():
        if not math.isnan(value):
            sides[_is_within(pair, of)].append(value)
    middle = {side: median(values) if values else 0.0 for side, values in sides.items()}
    return {pair: value - middle[_is_within(pair, of)] for pair, value in row.items()}


def sweep(nodes: Sequence[str], racks: Racks, seed: int) -> list[list[Pair]]:
    """Return the pairs of each round of the sweep."""
    return _sweep(tuple(nodes), tuple(racks.items()), seed)


@lru_cache(maxsize=8)
def _sweep(
    nodes: tuple[str, ...], racks: tuple[tuple[str, tuple[str, ...]], ...], seed: int
) -> list[list[Pair]]:
    parts = racks or (("", nodes),)
    rings = [Randomiser(seed, f"sweep {name}").shuffled(members) for name, members in parts]
    rounds = min(SWEEP, len(nodes) - 1 + len(nodes) % 2)
    most = max(map(len, rings))
    within = min(WITHIN, most - 1 + most % 2) if racks else rounds
    found = [
        [pair for ring in rings for pair in _tournament(ring, number)] for number in range(within)
    ]
    met = {pair for row in found for pair in row}
    for number in range(within, rounds):
        draw = Randomiser(seed, f"sweep {number}")
        tries = [_across(dict(racks), draw) for _ in range(DRAWS)]
        found.append(min(tries, key=lambda pairs: len(met.intersection(pairs))))
        met.update(found[-1])
    return found


def _tournament(members: Sequence[str], number: int) -> list[Pair]:
    """Return round `number` in which all play all: the circle method."""
    first, *rest = [*members, *([""] * (len(members) % 2))]
    turn = number % max(1, len(rest))
    ring = [first, *rest[turn:], *rest[:turn]]
    several = ((ring[i], ring[-1 - i]) for i in range(len(ring) // 2))
    return [sorted_pair(*pair) for pair in several if all(pair)]


def _across(racks: Racks, draw: Randomiser) -> list[Pair]:
    """Return pairs of nodes of different racks, of as many nodes as can be.

    Two racks must not meet as a whole: their pairs would be half of the round, and its median.
    """
    of, found = of_nodes(racks), list[Pair]()
    free = dict.fromkeys(draw.shuffled([*of]))
    left = Counter(of.values())
    while len(left) > 1:
        fullest = max(left, key=lambda name: left[name])
        one = next(node for node in free if of[node] == fullest)
        other = next(node for node in free if of[node] != fullest)
        found.append(sorted_pair(one, other))
        del free[one], free[other]
        left -= Counter((fullest, of[other]))
    return found


class Course:
    """A screen of the links of `nodes`, round after round, by one metric or more.

    `margins` by metric are log ratios above 0. What is drawn depends on `seed` and on what was
    taken. Raises ValueError for fewer than LEAST_NODES.
    """

    def __init__(
        self, nodes: Sequence[str], racks: Racks, margins: Mapping[str, float], seed: int
    ) -> None:
        if len(nodes) < LEAST_NODES:
            raise ValueError(f"fewer than {LEAST_NODES} nodes: no pair is left to compare with")
        self.nodes, self.racks, self.margins, self.seed = tuple(nodes), racks, margins, seed
        self.planned, self.round = sweep(nodes, racks, seed), 0
        self._of = of_nodes(racks)
        self._seen: dict[str, list[Row]] = {m: [] for m in margins}
        self._history = {m: {node: list[tuple[str, bool]]() for node in nodes} for m in margins}
        self._failed: dict[str, set[str]] = {m: set() for m in margins}
        self._noise: dict[str, tuple[float, ...]] = dict.fromkeys(margins, ())
        self._cases: list[_Case] = []
        self._at: dict[bool, tuple[int, ...]] = {}
        self._drawn = self._next()

    def take(self, rows: Mapping[str, Row], steps: Mapping[str, float] | None = None) -> None:
        """Take what a round gave by metric; of a fresh round what is not there has failed too.

        `steps`: log ratios by which figures are coarse, as in `screen.standing`.
        """
        self.round += 1
        for metric in self.margins:
            row = rows.get(metric, {})
            self._give_up(metric, row)
            if self.round <= len(self.planned):
                self._seen[metric].append(relative(row, self._of))
            else:
                self._prove(metric, row)
        if self.round == len(self.planned):
            self._nominate()
        for are_paths, at in self._at.items():
            own = [one for one in self._cases if one.is_path is are_paths]
            decide(own, at, self.margins, FAMILIES, steps)
        self._drawn = self._next()

    def standing(self) -> LinkStanding:
        """Return where the screen stands."""
        return LinkStanding(
            round=self.round,
            groups=dict.fromkeys(self.margins, (self.nodes,)),
            nominated={
                m: tuple(one.unit for one in self._cases if one.metric == m) for m in self.margins
            },
            suspects=tuple(
                one.suspect(self._at[one.is_path], self._failed[one.metric]) for one in self._cases
            ),
            failed={node: m for m, nodes in self._failed.items() for node in nodes},
            wanted={m: tuple(name_of(pair) for pair, _ in own) for m, own in self._drawn.items()},
            looks=self._at.get(False, ()),
            first=len(self.planned),
            causes={one.unit: one.cause for one in self._cases},
            speeds={m: _middles(seen) for m, seen in self._seen.items()},
            noise=self._noise,
        )

    def _give_up(self, metric: str, row: Row) -> None:
        """Launch on nodes no more whose last pairs failed, with others that have not failed."""
        history, failed = self._history[metric], self._failed[metric]
        for (one, other), value in row.items():
            history[one].append((other, math.isnan(value)))
            history[other].append((one, math.isnan(value)))
        bad = {node for pair, value in row.items() if math.isnan(value) for node in pair}
        for node in sorted(bad, key=lambda node: (-sum(b for _, b in history[node]), node)):
            own = [one for one in history[node] if one[0] not in failed][-GIVEN_UP:]
            if len({partner for partner, is_bad in own if is_bad}) == GIVEN_UP:
                failed.add(node)

    def _nominate(self) -> None:
        for metric, seen in self._seen.items():
            failed = self._failed[metric]
            reported = [
                {p: v for p, v in row.items() if failed.isdisjoint(p) or not math.isnan(v)}
                for row in seen
            ]
            causes, self._noise[metric] = nominated(reported, self.racks, self.margins[metric])
            self._cases += [_Case(metric, cause) for cause in causes]
        paths = sum(one.is_path for one in self._cases)
        numbers = {True: paths, False: len(self._cases) - paths}
        self._at = {kind: looks(FAMILIES * number, LATER) for kind, number in numbers.items()}

    def _prove(self, metric: str, row: Row) -> None:
        """Give each case the value of its pair, over the median of the references."""
        beside: dict[bool, list[float]] = {True: [], False: []}
        for pair, case in self._drawn[metric]:
            if case is None and not math.isnan(value := row.get(pair, math.nan)):
                beside[_is_within(pair, self._of)].append(value)
        for pair, case in self._drawn[metric]:
            others = beside[_is_within(pair, self._of)]
            if case is not None:
                case.take(row.get(pair, math.nan) - median(others) if others else math.nan)

    def _next(self) -> dict[str, Drawn]:
        """Return the pairs of the next round."""
        if self.round < len(self.planned):
            row = self.planned[self.round]
            return {
                m: [(pair, None) for pair in row if failed.isdisjoint(pair)]
                for m, failed in self._failed.items()
            }
        found = {m: self._fresh(m) for m in self.margins}
        for case in self._cases if not any(found.values()) else ():
            case.word = "undecided" if case.word == "open" else case.word
        return found

    def _fresh(self, metric: str) -> Drawn:
        """Return the pairs of a fresh round; none where no open case has a pair and a reference."""
        mine = [one for one in self._cases if one.metric == metric]
        still = [
            one for one in mine if one.word == "open" and one.rounds < self._at[one.is_path][-1]
        ]
        clean = _Clean([one.cause for one in mine if one.word != "released"])
        there = [node for node in self.nodes if node not in self._failed[metric]]
        for attempt in range(DRAWS if still else 0):
            draw = Randomiser(self.seed, f"{metric} {self.round + 1} {attempt}")
            free = dict.fromkeys(draw.shuffled(there))
            if found := self._pairs(draw.shuffled(still), free, clean, len(there)):
                return found
        return []

    def _pairs(
        self, still: Sequence[_Case], free: dict[str, None], clean: _Clean, nodes: int
    ) -> Drawn:
        """Return pairs for cases, which take half of the `nodes` at most, and pairs beside them.

        Those come first that have had the fewest; a case is left out whose pair has no reference.
        """
        chosen: Drawn = []
        for case in sorted(still, key=lambda one: one.rounds):
            if 4 * len(chosen) < max(4, nodes - 3) and (
                pair := _pair_of(case.cause, free, clean, self._of)
            ):
                chosen.append((pair, case))
                del free[pair[0]], free[pair[1]]
        sides = {_is_within(pair, self._of) for pair, _ in chosen}
        found: Drawn = []
        for side in sorted(sides, reverse=True):
            own = [one for one in chosen if _is_within(one[0], self._of) is side]
            share = len(free) // 4 if len(sides) > 1 and side else len(free)
            beside = _references(free, clean, self._of, side, min(share, max(PARTNERS, len(own))))
            for one, other in beside:
                del free[one], free[other]
            found += [*own, *((pair, None) for pair in beside)] if beside else []
        return found


def _middles(rows: Iterable[Row]) -> dict[str, float]:
    """Return the median of each node's pairs."""
    values: dict[str, list[float]] = {}
    for pair, value in (item for row in rows for item in row.items()):
        for node in pair if not math.isnan(value) else ():
            values.setdefault(node, []).append(value)
    return {node: median(own) for node, own in values.items()}


def nominated(
    rows: Sequence[Row], racks: Racks, margin: float
) -> tuple[list[Cause], tuple[float, ...]]:
    """Return the causes that a sweep nominates, and what is left of single pairs beside them."""
    of, nodes = of_nodes(racks), frozenset(node for row in rows for pair in row for node in pair)
    good = [(pair, n) for n, row in enumerate(rows) for pair, v in row.items() if not math.isnan(v)]
    rest = [rows[n][pair] for pair, n in good]
    sides = [(n, _is_within(pair, of)) for pair, n in good]
    candidates = _candidates([pair for pair, _ in good], racks)
    places = grouped((key, i) for i, keys in enumerate(candidates) for key in keys)
    in_rounds = {key: grouped((sides[i], i) for i in own) for key, own in places.items()}
    causes: list[Cause] = []
    while True:
        ordered = grouped(sorted(zip(sides, rest, strict=True)))
        effects = {key: _effect(in_rounds[key], rest, ordered) for key in places}
        low = [key for key, (effect, _) in effects.items() if effect < -BELOW * margin]
        if not low:
            break
        worst = min(low, key=lambda key: effects[key][0] * effects[key][1])
        causes.append(_cause(worst, nodes, racks))
        for i in places.pop(worst):
            rest[i] -= effects[worst][0]
    middle = {side: median(values) for side, values in ordered.items()}
    rest = [value - middle[side] for side, value in zip(sides, rest, strict=True)]
    scatter = 1.4826 * median(map(abs, rest)) if rest else 0.0
    values: dict[Pair, list[float]] = {pair: [] for row in rows for pair in row}
    for (pair, _), value in zip(good, rest, strict=True):
        values[pair].append(value)
    bound = -max(margin, LOW * scatter)
    causes += [
        Cause("path", name_of(pair), (frozenset(pair[:1]), frozenset(pair[1:])))
        for pair, own in sorted(values.items())
        if (not own or median(own) < bound) and not any(one.covers(pair) for one in causes)
    ]
    return causes, tuple(rest)


Side = tuple[int, bool]
"""A round, and whether a pair is within a rack: what it can be compared with."""


def _effect(
    own: Mapping[Side, Sequence[int]],
    rest: Sequence[float],
    ordered: Mapping[Side, Sequence[float]],
) -> tuple[float, float]:
    """Return how far the pairs of a cause lie from the others of their rounds, their median, and
    what that is to be multiplied with to be in units of its noise.

    From the others, because a rack with an uplink of its own is half of each round in four racks:
    the median of all would lie halfway.
    """
    apart, weight = [], 0.0
    for side, places in own.items():
        others = [*ordered[side]]
        for i in places:
            del others[bisect_left(others, rest[i])]
        if others:
            middle = (others[(len(others) - 1) // 2] + others[len(others) // 2]) / 2
            apart += [rest[i] - middle for i in places]
            weight += len(places) * len(others) / len(ordered[side])
    return (median(apart) if apart else 0.0), math.sqrt(weight)


Key = tuple[str, ...]
"""A node, or "" with the names of one or two racks: what ends and groups are known by."""


def _candidates(pairs: Sequence[Pair], racks: Racks) -> list[list[Key]]:
    """Return the ends and groups that each pair is of; groups take three racks, of several nodes.

    Of two racks all pairs across are alike.
    """
    of, found = of_nodes(racks), [list[Key]() for _ in pairs]
    for keys, (one, other) in zip(found, pairs, strict=True):
        keys += [(one,), (other,)]
        if len(racks) > 2 and of[one] != of[other]:
            low, high = sorted((of[one], of[other]))
            groups = (("", low), ("", high), ("", low, high))
            keys += [key for key in groups if min(len(racks[name]) for name in key[1:]) > 1]
    seen = Counter(key for keys in found for key in keys)
    return [[k for k in keys if seen[k] >= (LEAST_SEEN if k[0] == "" else 2)] for keys in found]


def _cause(key: Key, nodes: frozenset[str], racks: Racks) -> Cause:
    if key[0]:
        return Cause("end", key[0], (frozenset(key), nodes - {key[0]}))
    left = frozenset(racks[key[1]])
    right = frozenset(racks[key[2]]) if len(key) > 2 else nodes - left
    return Cause("group", f"{key[1]}||{''.join(key[2:])}", (left, right))


class _Clean:
    """What causes that may be true leave untouched: pairs that can be a reference."""

    def __init__(self, causes: Collection[Cause]) -> None:
        self.ends = {one.name for one in causes if one.kind == "end"}
        self.paths = {one.name for one in causes if one.kind == "path"}
        self.groups = [one for one in causes if one.kind == "group"]

    def is_clean(self, pair: Pair, but: str = "") -> bool:
        """Return whether no cause covers a pair, but that of the name."""
        return not (
            (self.ends - {but}).intersection(pair)
            or name_of(pair) in self.paths - {but}
            or any(one.covers(pair) for one in self.groups if one.name != but)
        )


def _pair_of(
    cause: Cause, free: Mapping[str, None], clean: _Clean, of: Mapping[str, str]
) -> Pair | None:
    """Return a pair of `cause` that no other covers: of an end within a rack that has several."""
    left, right = ([node for node in free if node in side] for side in cause.sides)
    beside = [node for node in right if of.get(node) == of.get(cause.name)]
    if cause.kind == "end" and len(beside) >= LEAST_BESIDE:
        right = [*beside, *(node for node in right if node not in beside)]
    several = (sorted_pair(one, other) for one in left for other in right)
    return next((pair for pair in several if clean.is_clean(pair, cause.name)), None)


def _references(
    free: Iterable[str], clean: _Clean, of: Mapping[str, str], within: bool, most: int
) -> list[Pair]:
    """Return at most `most` disjoint pairs that no cause covers, all within racks or all across."""
    left = dict.fromkeys(node for node in free if node not in clean.ends)
    found: list[Pair] = []
    while left and len(found) < most:
        one = next(iter(left))
        del left[one]
        several = (sorted_pair(one, other) for other in left)
        fit = (p for p in several if _is_within(p, of) is within and clean.is_clean(p))
        if pair := next(fit, None):
            found.append(pair)
            del left[pair[0] if pair[1] == one else pair[1]]
    return found
