"""The order effect: found where it is, whatever the arms' own effect and however often each led.

Seeds are fixed, so every figure is the same each time; bounds leave three standard errors.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from paribus.stats import order
from paribus.stats.estimate import compare
from paribus.stats.order import bias, critical_count, order_effect, rank_sum_cdf

Blocks = tuple[list[float], list[float]]
"""Log ratios of the blocks in which the arm came first, and of those in which it came second."""


def drawn(
    rng: np.random.Generator, blocks: int, second: float, effect: float = 0.0, log: float = 0.0
) -> Blocks:
    """Return blocks of a ratio of 1 + `effect`, whose second launch gives exp(`log`) times more."""
    after = rng.random(blocks) < second
    ratios = math.log1p(effect) + rng.normal(0, 0.015, blocks) + np.where(after, log, -log)
    return ratios[~after].tolist(), ratios[after].tolist()


def share_found(found: list[order.OrderEffect | None]) -> float:
    return sum(one is not None and one.found for one in found) / len(found)


@pytest.mark.parametrize("second", [0.5, 0.2])
@pytest.mark.parametrize("effect", [0.0, 0.2, 2.0])
@pytest.mark.parametrize("blocks", [12, 40])
def test_an_effect_of_the_arm_is_no_order_effect(blocks: int, effect: float, second: float) -> None:
    rng = np.random.default_rng(2)
    found = [order_effect(*drawn(rng, blocks, second, effect)) for _ in range(1000)]
    assert share_found(found) <= 0.05 + 3 * math.sqrt(0.05 / 1000)


def test_an_order_effect_is_found_and_measured() -> None:
    rng = np.random.default_rng(3)
    for second, at_least in ((0.5, 0.92), (0.25, 0.68)):
        found = [order_effect(*drawn(rng, 12, second, 0.2, 0.02)) for _ in range(1000)]
        assert share_found(found) >= at_least
    found = [order_effect(*drawn(rng, 40, 0.3, 0.2, -0.01)) for _ in range(300)]
    known = [one for one in found if one is not None]
    assert {one.blocks for one in known} == {40}
    assert np.mean([math.log(one.ratio) for one in known]) == pytest.approx(-0.01, abs=0.0005)
    covered = [one.low < math.exp(-0.01) < one.high for one in known]
    assert np.mean(covered) >= 0.95 - 3 * math.sqrt(0.05 / 300)


def test_swapping_the_arms_changes_nothing() -> None:
    first, second = drawn(np.random.default_rng(4), 20, 0.5, 0.2, 0.01)
    found = order_effect(first, second)
    assert found is not None
    swapped = order_effect([-x for x in second], [-x for x in first])
    assert swapped is not None
    assert (swapped.ratio, swapped.low, swapped.high) == pytest.approx(
        (found.ratio, found.low, found.high), abs=1e-12
    )


def test_few_or_cut_off_blocks_have_no_order_effect() -> None:
    none: list[float] = []
    for first, second in ((0, 0), (0, 40), (40, 0), (3, 4), (2, 7)):
        assert order_effect([0.0] * first, [1.0] * second) is None
    assert order_effect([0.0] * 4, [1.0] * 3 + [math.inf]) is None
    assert order_effect([0.0] * 4 + [-math.inf], [1.0] * 4 + [math.inf]) == order.OrderEffect(
        8, math.exp(0.5), math.exp(0.5), math.exp(0.5), True
    )
    assert order_effect([0.0] * 2, [1.0] * 8) is not None
    equal = order_effect([0.1] * 10, [0.1] * 10)
    assert equal is not None
    assert not equal.found
    with pytest.raises(ValueError, match="NaN"):
        order_effect(none, [math.nan])


def test_the_distribution_is_that_of_all_arrangements() -> None:
    for first, second in ((1, 5), (4, 3), (4, 6)):
        counts = np.zeros(first * second + 1)
        for places in itertools.combinations(range(first + second), first):
            counts[sum(places) - first * (first - 1) // 2] += 1
        assert rank_sum_cdf(first, second) == pytest.approx(np.cumsum(counts / counts.sum()))


@pytest.mark.parametrize(("first", "second"), [(10, 255), (50, 51), (80, 80)])
def test_the_expansion_agrees_with_the_distribution(first: int, second: int) -> None:
    assert first * second > order.EXACT_UP_TO
    for alpha in (0.05, 0.025, 0.01):
        k = critical_count(first, second, alpha)
        assert rank_sum_cdf(first, second)[k] == pytest.approx(alpha / 2, rel=0.02)


@pytest.mark.parametrize("log", [0.005, 0.03, 0.1])
@pytest.mark.parametrize("second", [0.5, 0.3, 0.2])
def test_by_how_much_the_order_moves_the_ratio(second: float, log: float) -> None:
    """The same noise with the order effect and without: the ratios differ by what is said."""
    true, said = [], []
    rng = np.random.default_rng(5)
    for _ in range(200):
        first, after = drawn(rng, 40, second, 0.2, log)
        without = [x + log for x in first] + [x - log for x in after]
        effect = order_effect(first, after)
        if effect is None:
            continue
        true.append(compare(first + after, 0.95).ratio / compare(without, 0.95).ratio - 1)
        said.append(bias(effect, first, after))
    assert len(true) > 190
    assert np.mean(said) == pytest.approx(np.mean(true), abs=4e-4)
    assert np.median(np.abs(np.subtract(said, true))) < 0.002
