"""Slow nodes and slow pairs of a matrix: errors and power by simulation with fixed seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from paribus.stats.matrix import Examined, examine, polished

Floats = NDArray[np.float64]

Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]
SD = 0.03
"""Of the log: of pairs for good, of a node in a launch, and of a pair in a launch."""

NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(0, SD, shape),
    "t3": lambda rng, shape: rng.standard_t(3, shape) * SD / 1.3,
    "t2": lambda rng, shape: rng.standard_t(2, shape) * SD / 1.3,
    "spikes": lambda rng, shape: (
        rng.normal(0, SD, shape) + (rng.random(shape) < 0.03) * math.log(2)
    ),
    "skewed": lambda rng, shape: np.exp(rng.normal(0, 1, shape)) * SD / 1.3,
}


def symmetric(values: Floats) -> Floats:
    upper = np.triu(values, 1)
    return upper + upper.T


def drawn(
    rng: np.random.Generator,
    size: int,
    launches: int,
    noise: Noise,
    *,
    nodes: Sequence[int] = (),
    link: tuple[int, int] | None = None,
    switch: int = 0,
) -> list[Floats]:
    """Return latencies: `nodes` take 20 % longer, `link` twice as long, over the switch 30 %."""
    base = symmetric(rng.normal(0, SD, (size, size)))
    slow = np.zeros(size)
    slow[list(nodes)] = math.log(1.2)
    base += slow[:, None] + slow[None, :]
    if link:
        base[link] += math.log(2)
        base[link[::-1]] += math.log(2)
    side = np.arange(size) < switch
    base += (side[:, None] != side[None, :]) * math.log(1.3)
    found = []
    for _ in range(launches):
        node = noise(rng, (size,))
        one = np.exp(base + node[:, None] + node[None, :] + symmetric(noise(rng, (size, size))))
        one[np.tril_indices(size)] = np.nan
        found.append(one)
    return found


def several(count: int, *args: object, **kwargs: object) -> list[Examined]:
    rng = np.random.default_rng(11)
    return [examine(drawn(rng, *args, **kwargs), better="lower") for _ in range(count)]  # type: ignore[arg-type]


def named(one: Examined) -> set[int]:
    return {slow.first for slow in one.nodes}


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("size", "launches"), [(4, 5), (8, 3), (8, 5), (16, 5)])
def test_alike_nodes_are_named_in_5_percent_of_clusters(
    noise: str, size: int, launches: int
) -> None:
    """Of 100 clusters at most 11: more are 1 in 100 where 5 % is true."""
    found = several(100, size, launches, NOISES[noise])
    assert sum(bool(one.nodes) for one in found) <= 11
    assert sum(bool(one.pairs) for one in found) <= 11


@pytest.mark.parametrize("noise", ["normal", "t3", "spikes"])
@pytest.mark.parametrize(
    ("size", "launches", "count"), [(8, 3, 40), (8, 5, 40), (16, 5, 20), (64, 5, 4)]
)
def test_a_node_that_takes_20_percent_longer_is_found(
    noise: str, size: int, launches: int, count: int
) -> None:
    found = several(count, size, launches, NOISES[noise], nodes=[2])
    least = 0.75 if launches == 3 else 0.9
    assert sum(2 in named(one) for one in found) >= least * count
    assert sum(named(one) > {2} for one in found) <= 0.15 * count
    ratios = [slow.ratio for one in found for slow in one.nodes if slow.first == 2]
    assert 1.15 < np.median(ratios) < 1.27


@pytest.mark.parametrize("noise", ["normal", "t3", "spikes"])
@pytest.mark.parametrize(("size", "launches"), [(8, 3), (16, 5)])
def test_a_slow_link_is_found_and_no_node_is_blamed(noise: str, size: int, launches: int) -> None:
    found = several(20, size, launches, NOISES[noise], link=(1, 3))
    pairs = [{(slow.first, slow.second) for slow in one.pairs} for one in found]
    assert sum((1, 3) in one for one in pairs) >= 18
    assert sum(bool(one.nodes) for one in found) <= 3


def test_a_slow_half_is_found() -> None:
    """Half of the nodes: what they are slow to are the others."""
    found = several(20, 16, 5, NOISES["normal"], nodes=range(8))
    assert sum(named(one) == set(range(8)) for one in found) >= 18
    assert not any(one.apart for one in found)


def test_nodes_of_another_switch_are_distinguished_from_slow_ones() -> None:
    found = several(20, 16, 5, NOISES["normal"], switch=4)
    assert sum(named(one) == set(range(4)) and one.apart for one in found) >= 18
    half = several(20, 16, 5, NOISES["normal"], switch=8)
    assert sum(bool(one.nodes or one.pairs) for one in half) <= 1


def test_bandwidths_have_two_ways() -> None:
    rng = np.random.default_rng(3)
    rates = []
    for _ in range(5):
        rate = 12_000 * np.exp(rng.normal(0, 0.01, (8, 8)))
        rate[2, 6] /= 3
        np.fill_diagonal(rate, np.nan)
        rates.append(rate)
    found = examine(rates, better="higher")
    [slow] = found.pairs
    assert (slow.first, slow.second) == (2, 6)
    assert slow.ratio == pytest.approx(3, rel=0.05)
    assert found.nodes == ()


def test_few_launches_and_few_nodes_name_nothing() -> None:
    rng = np.random.default_rng(3)
    for size, launches in ((16, 2), (3, 9)):
        found = examine(drawn(rng, size, launches, NOISES["normal"], nodes=[0]), better="lower")
        assert not found.judged
        assert (found.nodes, found.pairs) == ((), ())
    assert found.level == 1 - 2**-8
    assert (found.low <= found.median)[np.triu_indices(3, 1)].all()


def test_what_is_no_matrix_is_refused() -> None:
    good = np.full((4, 4), 2.0)
    for wrong in (good[:3], np.where(np.eye(4)[::-1] == 1, np.nan, good), -good):
        with pytest.raises(ValueError, match=r"square|missing"):
            examine([wrong], better="lower")
    with pytest.raises(ValueError, match="square"):
        examine([], better="lower")


def test_the_polish_finds_effects_beside_a_wild_pair() -> None:
    effects = np.array([0.0, 0.3, 0.0, -0.2, 0.0, 0.1, -0.1])
    costs = effects[:, None] + effects[None, :] + 5
    costs[0, 4] = costs[4, 0] = 50
    assert polished(costs) == pytest.approx(effects, abs=1e-4)
