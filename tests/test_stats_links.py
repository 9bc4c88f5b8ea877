"""Slow links of a fleet: who meets whom, and that ends, groups and paths are distinguished."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.screen.course import Row, Word
from paribus.screen.links import SWEEP, WITHIN, Links, Pair, Racks, pair_of, sweep

MARGIN = -math.log1p(-0.04)
Cost = Callable[[Pair], float]


def names(number: int) -> tuple[str, ...]:
    return tuple(f"n{i:02}" for i in range(number))


def racks(number: int, size: int) -> Racks:
    return {f"r{r}": names(number * size)[r * size : (r + 1) * size] for r in range(number)}


def screened(
    nodes: tuple[str, ...],
    cost: Cost,
    own: Racks | None = None,
    noise: float = 0.01,
    seed: int = 1,
    fails: Callable[[Pair], bool] = lambda _: False,
) -> Links:
    """Return where a screen of links ends; `cost` is how much slower a pair is, as a log ratio."""
    rng = np.random.default_rng(seed)
    now = Links(nodes, own or {}, {"m": MARGIN}, seed)
    while not now.done:
        assert now.round < 400
        shared = float(rng.normal(0, 1))
        row = {}
        for unit in now.wanted["m"]:
            pair = pair_of(unit)
            value = shared - cost(pair) + float(rng.normal(0, noise))
            row[unit] = math.nan if fails(pair) else value
        assert len({node for unit in row for node in pair_of(unit)}) == 2 * len(row)
        now.take({"m": row})
    return now


def with_word(now: Links, word: Word = "slow") -> set[tuple[str, str]]:
    return {(one.cause.kind, one.unit) for one in now.questions if one.word == word}


@given(st.integers(4, 40), st.integers(0, 9))
def test_in_a_sweep_nobody_meets_anybody_twice(number: int, seed: int) -> None:
    rounds = sweep(names(number), {}, seed)
    pairs = [pair for row in rounds for pair in row]
    assert len(pairs) == len({*pairs})
    assert all(len(row) == number // 2 for row in rounds)
    assert len(rounds) == min(SWEEP, number - 1 + number % 2)
    if number <= SWEEP + 1:
        assert {*pairs} == {*combinations(names(number), 2)}


@given(st.integers(2, 6), st.integers(3, 9), st.integers(0, 9))
def test_racks_are_swept_within_first_and_then_across(number: int, size: int, seed: int) -> None:
    own = racks(number, size)
    of = {node: name for name, members in own.items() for node in members}
    rounds = sweep(names(number * size), own, seed)
    within = [{of[a] == of[b] for a, b in row} for row in rounds]
    first = min(WITHIN, size - 1 + size % 2)
    assert within == [{True}] * first + [{False}] * (len(rounds) - first)


@pytest.mark.parametrize("seed", range(5))
def test_in_most_rounds_across_every_two_racks_meet(seed: int) -> None:
    """So that one slow group is a small part of a round, and never its median."""
    own = racks(4, 16)
    of = {node: name for name, members in own.items() for node in members}
    across = sweep(names(64), own, seed)[WITHIN:]
    for both in combinations(own, 2):
        shares = [sum({of[a], of[b]} == {*both} for a, b in row) / len(row) for row in across]
        assert sum(share > 0 for share in shares) > len(across) / 2
        assert max(shares) < 0.5


END: Cost = lambda pair: 0.1 * ("n05" in pair)  # noqa: E731
GROUP: Cost = lambda pair: 0.1 * (pair[0] < "n04" <= pair[1] < "n08")  # noqa: E731
UPLINK: Cost = lambda pair: 0.1 * (pair[0] < "n04" <= pair[1])  # noqa: E731
PATH: Cost = lambda pair: 0.1 * (pair == ("n02", "n09"))  # noqa: E731


@pytest.mark.parametrize(
    ("own", "cost", "found"),
    [
        ({}, END, {("end", "n05")}),
        ({}, PATH, {("path", "n02|n09")}),
        (racks(4, 4), END, {("end", "n05")}),
        (racks(4, 4), GROUP, {("group", "r0||r1")}),
        (racks(4, 4), UPLINK, {("group", "r0||")}),
        (racks(4, 4), PATH, {("path", "n02|n09")}),
        (racks(3, 4), GROUP, {("group", "r0||r1")}),
        (racks(3, 4), UPLINK, {("group", "r0||")}),
        (racks(3, 4), PATH, {("path", "n02|n09")}),
        (racks(4, 4), lambda _: 0.0, set()),
    ],
)
def test_what_is_slow_is_named_for_what_it_is(
    own: Racks, cost: Cost, found: set[tuple[str, str]]
) -> None:
    now = screened(tuple(chain(*own.values())) or names(16), cost, own)
    assert with_word(now) == found
    for one in now.questions:
        assert one.word != "slow" or one.effect[1] < math.exp(-0.1) < one.effect[2]


def test_an_uplink_that_is_half_of_each_round_is_one_cause() -> None:
    """With a draw in which the medians of whole rounds lead to a group of two racks instead."""
    cost: Cost = lambda pair: 0.75 * UPLINK(pair)  # noqa: E731
    now = screened(names(16), cost, racks(4, 4), noise=0.03, seed=74)
    assert {one for one in with_word(now) if one[0] != "path"} == {("group", "r0||")}


@pytest.mark.parametrize("seed", [8, 19, 48, 57])
def test_a_fifth_of_the_pairs_of_a_rack_are_paths_and_no_group(seed: int) -> None:
    """With draws in which the median of all these pairs is below half the margin."""

    def cost(pair: Pair) -> float:
        fifth = (int(pair[0][1:]) + 2 * int(pair[1][1:]) + seed) % 5 == 0
        return 0.75 * UPLINK(pair) * fifth

    now = screened(names(16), cost, racks(4, 4), noise=0.03, seed=seed)
    assert {kind for kind, _ in with_word(now)} == {"path"}


def test_two_causes_at_once_are_two() -> None:
    now = screened(names(16), lambda pair: END(pair) + PATH(pair))
    assert with_word(now) == {("end", "n05"), ("path", "n02|n09")}


def test_pairs_across_racks_may_be_slower_than_those_within() -> None:
    """Two racks: there is nothing to compare the pairs across with but each other."""
    cost: Cost = lambda pair: 0.5 * (pair[0] < "n08" <= pair[1])  # noqa: E731
    assert screened(names(16), cost, racks(2, 8)).questions == []


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_four_nodes_have_an_end_to_be_named(seed: int) -> None:
    now = screened(names(4), lambda pair: 0.3 * ("n02" in pair), seed=seed)
    assert with_word(now) == {("end", "n02")}


def test_a_dead_node_has_failed_and_its_partners_have_not() -> None:
    now = screened(names(12), END, fails=lambda pair: "n03" in pair)
    assert now.gone == {"m": {"n03"}}
    assert with_word(now) == {("end", "n05")}
    assert with_word(now, "failed") == set()


def test_a_pair_that_cannot_speak_is_a_path_that_failed() -> None:
    now = screened(names(12), lambda _: 0.0, fails=lambda pair: pair == ("n03", "n07"))
    assert now.gone == {"m": set()}
    assert with_word(now, "failed") == {("path", "n03|n07")}


@pytest.mark.parametrize("own", [{}, racks(4, 4)])
def test_rounds_that_are_taken_again_want_the_same(own: Racks) -> None:
    rng = np.random.default_rng(3)
    one, rows = Links(names(16), own, {"m": MARGIN}, 3), list[Row]()
    while not one.done:
        rows.append({u: 0.03 * float(rng.normal()) - END(pair_of(u)) for u in one.wanted["m"]})
        one.take({"m": rows[-1]})
    again = Links(names(16), own, {"m": MARGIN}, 3)
    for row in rows:
        assert {*again.wanted["m"]} == {*row}
        again.take({"m": row})
    assert (again.questions, again.gone, again.at) == (one.questions, one.gone, one.at)
    assert (again.noise, again.speeds("m"), again.done) == (one.noise, one.speeds("m"), True)


def test_three_nodes_have_no_pair_to_compare_with() -> None:
    with pytest.raises(ValueError, match="fewer than 4 nodes"):
        Links(names(3), {}, {"m": MARGIN}, 1)
