"""The course of a screen of links: which ends, groups and paths of a fleet are slow.

A launch measures a pair of nodes, and a round is disjoint pairs. The value of a pair in a round is
its log speed less the median of the round's pairs, those within racks and those across apart.
The first rounds are a sweep: it gives each node another partner in each round, within racks first:
all of them in fleets of up to SWEEP + 1 nodes, SWEEP of them in larger ones.

A cause is all pairs between two sides. An *end*: a node, with its adapter, cable and port, and all
others. A *group*: a rack and another, or all others. A *path*: two nodes. Nominated are, what
explains most first, ends and groups whose pairs have a median of three quarters of the margin below
the others of their rounds, when what was nominated before has been taken off: matching pursuit (S.
Mallat & Z. Zhang, IEEE Trans. Signal Process. 41 (1993) 3397). Then single pairs that are left
below the margin and LOW standard deviations, or that failed.

Each is proved on fresh pairs, one a round, drawn anew of it and covered by no other cause; the
reference is the median of pairs that no cause covers. Test, looks and Holm's step-down are those of
nodes (course.py), with the same error for all causes and metrics together: half of it for ends
and groups, half for paths, of which many are nominated. A cause is looked at after so many of its
own fresh values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median

from paribus.core import grouped
from paribus.screen.course import BAR, PARTNERS, Cause, Course, Drawn, Question, Row
from paribus.stats.schedule import Randomiser

Pair = tuple[str, str]
"""Two nodes, in the order of their names."""

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


def name_of(pair: Pair) -> str:
    """Return the name of a pair, which no node has: node names hold no bar."""
    return BAR.join(pair)


def pair_of(name: str) -> Pair:
    """Return the pair that `name_of` gave this name: ("n1", "n2") of "n1|n2"."""
    one, other = name.split(BAR)
    return one, other


def sorted_pair(one: str, other: str) -> Pair:
    """Return two nodes as a pair, in the order of their names."""
    return (one, other) if one < other else (other, one)


def of_nodes(racks: Racks) -> dict[str, str]:
    """Return the name of each node's rack; empty where racks are not known."""
    return {node: name for name, members in racks.items() for node in members}


def _is_within(pair: Pair, of: Mapping[str, str]) -> bool:
    """Return whether both nodes are in one rack; `of` is the rack of each node."""
    return of.get(pair[0]) == of.get(pair[1])


def relative(row: Row, of: Mapping[str, str]) -> dict[str, float]:
    """Return the log speeds of pairs less their median in the round; `of`: the rack of each node.

    A pair within a rack is compared with others within racks, one across with others across.
    """
    within = {name: _is_within(pair_of(name), of) for name in row}
    sides = grouped((within[name], value) for name, value in row.items() if not math.isnan(value))
    middle = {side: median(values) for side, values in sides.items()}
    return {name: value - middle.get(within[name], 0.0) for name, value in row.items()}


def sweep(nodes: Sequence[str], racks: Racks, seed: int) -> list[list[Pair]]:
    """Return the pairs of each round of the sweep: first within racks, then across them.

    Without racks all pairs are within one. `seed` draws the order of nodes, and pairs across.
    """
    parts = racks.items() or [("", nodes)]
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
        tries = [_across(racks, draw) for _ in range(DRAWS)]
        found.append(min(tries, key=lambda pairs: len(met.intersection(pairs))))
        met.update(found[-1])
    return found


def _tournament(members: Sequence[str], number: int) -> list[Pair]:
    """Return the pairs of round `number` of a tournament in which all meet all: circle method."""
    first, *rest = [*members, *([""] * (len(members) % 2))]
    turn = number % max(1, len(rest))
    ring = [first, *rest[turn:], *rest[:turn]]
    several = ((ring[i], ring[-1 - i]) for i in range(len(ring) // 2))
    return [sorted_pair(*pair) for pair in several if all(pair)]


def _across(racks: Racks, draw: Randomiser) -> list[Pair]:
    """Return disjoint pairs of nodes in different racks, as many as there can be.

    Partners are drawn over all racks, so that two racks seldom meet as a whole: their pairs would
    be half of the round, and its median.
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


class Links(Course):
    """The course of a screen of links between `nodes`. Units are pairs, by `name_of`.

    Pairs are launched in both orders for the metrics `one_way`, whose figure is of one direction.
    Raises ValueError for fewer than LEAST_NODES.
    """

    later, below, counts_failures = LATER, BELOW, False

    def __init__(
        self,
        nodes: Sequence[str],
        racks: Racks,
        margins: Mapping[str, float],
        seed: int,
        one_way: Collection[str] = (),
    ) -> None:
        if len(nodes) < LEAST_NODES:
            raise ValueError(f"fewer than {LEAST_NODES} nodes: no pair is left to compare with")
        self.nodes, self.racks, self.one_way = tuple(nodes), racks, one_way
        self._planned, self._of = sweep(nodes, racks, seed), of_nodes(racks)
        super().__init__(margins, seed, FAMILIES, len(self._planned))

    def speeds(self, metric: str) -> dict[str, float]:
        """Return the median over each node's pairs of their log speeds in the sweep."""
        rows = (relative(row, self._of).items() for row in self.seen[metric])
        known = ((pair_of(name), v) for row in rows for name, v in row if not math.isnan(v))
        values = grouped((node, value) for pair, value in known for node in pair)
        return {node: median(own) for node, own in values.items()}

    def take(self, rows: Mapping[str, Row]) -> None:
        """Take the log speeds of a round by metric; a pair launched both ways has the slower."""
        super().take({metric: _slower_ways(row) for metric, row in rows.items()})

    def _nominate(self, metric: str) -> list[Cause]:
        reported = [
            {
                pair: value
                for name, value in relative(row, self._of).items()
                for pair in [pair_of(name)]
                if self.gone[metric].isdisjoint(pair) or not math.isnan(value)
            }
            for row in self.seen[metric]
        ]
        causes, self.noise[metric] = nominated(reported, self.racks, self.margins[metric])
        return causes

    def _launched(self, metric: str, units: list[str]) -> list[str]:
        turned = [name_of(pair_of(unit)[::-1]) for unit in units if metric in self.one_way]
        return [*units, *turned]

    def _draw(self, metric: str) -> Drawn:
        if self.round < self.first:
            row = self._planned[self.round]
            return [(name_of(p), None, 0) for p in row if self.gone[metric].isdisjoint(p)]
        mine = self.of(metric)
        still = [one for one in mine if one.word == "open"]
        is_clean = _beside([one.cause for one in mine if one.word != "released"])
        there = [node for node in self.nodes if node not in self.gone[metric]]
        for attempt in range(DRAWS if still else 0):
            draw = Randomiser(self.seed, f"{metric} {self.round + 1} {attempt}")
            free = dict.fromkeys(draw.shuffled(there))
            if found := self._pairs(draw.shuffled(still), free, is_clean):
                return found
        return []

    def _pairs(self, still: Sequence[Question], free: dict[str, None], is_clean: Clean) -> Drawn:
        """Return pairs for questions, of at most half of the `free` nodes, and reference pairs.

        Questions with the fewest rounds come first; those whose pairs would have no reference are
        left out. Nodes that are taken leave `free`.
        """
        chosen: list[tuple[Pair, Question]] = []
        number = len(free)
        for one in sorted(still, key=lambda one: one.rounds):
            if 4 * len(chosen) < max(4, number - 3) and (
                pair := _pair_for(one.cause, free, is_clean, self._of)
            ):
                chosen.append((pair, one))
                del free[pair[0]], free[pair[1]]
        sides = {_is_within(pair, self._of) for pair, _ in chosen}
        found: Drawn = []
        for side in sorted(sides, reverse=True):
            own = [one for one in chosen if _is_within(one[0], self._of) is side]
            share = len(free) // 4 if len(sides) > 1 and side else len(free)
            most = min(share, max(PARTNERS, len(own)))
            references = _references(free, is_clean, self._of, side, most)
            both = [*own, *((pair, None) for pair in references)] if references else []
            found += [(name_of(pair), one, side) for pair, one in both]
        return found


def _slower_ways(row: Row) -> dict[str, float]:
    """Return the log speed of each pair, that of its slower direction; NaN if one failed."""
    found: dict[str, float] = {}
    for unit, value in row.items():
        name = name_of(sorted_pair(*pair_of(unit)))
        before = found.get(name, math.inf)
        found[name] = math.nan if math.isnan(before + value) else min(before, value)
    return found


def nominated(
    rows: Sequence[Mapping[Pair, float]], racks: Racks, margin: float
) -> tuple[list[Cause], tuple[float, ...]]:
    """Return the causes that a sweep nominates, and the residuals of single pairs.

    `rows`: by round, the relative log speed of each pair, NaN where it failed; `margin`: a log
    ratio. Residuals are log ratios, after the effects of the causes are taken off.
    """
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
    bound, is_clean = -max(margin, LOW * scatter), _beside(causes)
    causes += [
        Cause("path", name_of(pair), (frozenset(pair[:1]), frozenset(pair[1:])))
        for pair, own in sorted(values.items())
        if (not own or median(own) < bound) and is_clean(pair, "")
    ]
    return causes, tuple(rest)


Side = tuple[int, bool]
"""A round, and whether a pair is within a rack: pairs with the same can be compared."""


def _effect(
    own: Mapping[Side, Sequence[int]],
    rest: Sequence[float],
    ordered: Mapping[Side, Sequence[float]],
) -> tuple[float, float]:
    """Return the effect of a cause, and the factor that makes it one in units of its noise.

    The effect is the median log ratio of its pairs to the others of their rounds. `own`: where its
    pairs stand in `rest`, by side; `rest`: a log ratio for each pair and round; `ordered`: the same
    values by side, sorted. The others alone are the reference, because the pairs of one rack are
    half of each round in four racks: the median of all would lie halfway.
    """
    distances, weight = list[float](), 0.0
    for side, places in own.items():
        others = [*ordered[side]]
        for i in places:
            del others[bisect_left(others, rest[i])]
        if others:
            middle = (others[(len(others) - 1) // 2] + others[len(others) // 2]) / 2
            distances += [rest[i] - middle for i in places]
            weight += len(places) * len(others) / len(ordered[side])
    return (median(distances) if distances else 0.0), math.sqrt(weight)


Key = tuple[str, ...]
"""An end is ("n1",), a node; a group ("", rack) or ("", rack, other rack)."""


def _candidates(pairs: Sequence[Pair], racks: Racks) -> list[list[Key]]:
    """Return the ends and groups that each pair belongs to.

    Groups are of racks of several nodes, where there are three or more: of two racks all pairs
    across are of one group, and have no other to be compared with.
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


Clean = Callable[[Pair, str], bool]
"""Of a pair and the name of a cause: whether no other cause covers the pair."""


def _beside(causes: Collection[Cause]) -> Clean:
    """Return a function that says whether a pair is covered by none of `causes`."""
    of = grouped((node, one) for one in causes for node in one.sides[0])

    def is_clean(pair: Pair, but: str) -> bool:
        near = (one for node in pair for one in of.get(node, ()))
        return not any(one.covers(pair) and one.name != but for one in near)

    return is_clean


def _pair_for(
    cause: Cause, free: Mapping[str, None], is_clean: Clean, of: Mapping[str, str]
) -> Pair | None:
    """Return a pair of `free` nodes that `cause` alone covers, None where there is none.

    An end is paired within its rack where that has LEAST_BESIDE partners or more.
    """
    left, right = ([node for node in free if node in side] for side in cause.sides)
    beside = [node for node in right if of.get(node) == of.get(cause.name)]
    if cause.kind == "end" and len(beside) >= LEAST_BESIDE:
        right = [*beside, *(node for node in right if node not in beside)]
    several = (sorted_pair(one, other) for one in left for other in right)
    return next((pair for pair in several if is_clean(pair, cause.name)), None)


def _references(
    free: dict[str, None], is_clean: Clean, of: Mapping[str, str], within: bool, most: int
) -> list[Pair]:
    """Return up to `most` disjoint pairs that no cause covers, and take their nodes from `free`.

    All are `within` racks, or all across.
    """
    left = dict.fromkeys(free)
    found: list[Pair] = []
    while left and len(found) < most:
        one = next(iter(left))
        del left[one]
        several = (sorted_pair(one, other) for other in left)
        fit = (p for p in several if _is_within(p, of) is within and is_clean(p, ""))
        if pair := next(fit, None):
            found.append(pair)
            del left[pair[0] if pair[1] == one else pair[1]]
            del free[pair[0]], free[pair[1]]
    return found
