"""What a unit of work costs in each arm: the ratio of times, weighed by the price of the nodes.

A launch that takes the time T on n nodes of the price p costs T n p. So the ratio of costs is that
of times by (n p) / (n p) of the reference, which is exact: the interval is scaled as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from paribus.core import Arm, Judgement, Selection, Word, arm_at, nodes_of_ranks, parse_price
from paribus.judge.application import usable, word_of


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a unit of work in `arm`, over that in the reference: below 1 it is cheaper.

    `nodes` and `prices` (for a node and hour) are of the reference and of the arm. `word` is that
    of times: "faster" means cheaper.
    """

    benchmark: str
    arm: str
    ratio: float
    low: float
    high: float
    level: float
    margin: float
    word: Word
    nodes: tuple[int, int]
    prices: tuple[float, float]
    currency: str


def costs(judgement: Judgement) -> list[Cost]:
    """Return the cost of each headline whose ratio can be relied on; none without prices."""
    arms = {arm.name: arm for arm in judgement.study.arms}
    chosen = {one.label: one for one in judgement.study.benchmarks}
    reference = judgement.study.arms[0]
    found = []
    for finding in judgement.headlines:
        arm, known = arms[finding.arm], usable(finding)
        if known is None or not (arm.price and reference.price):
            continue
        both = (reference, arm)
        nodes = [nodes_of(one, chosen[finding.benchmark]) for one in both]
        prices = [parse_price(one.price) for one in both]
        factor = (nodes[1] * prices[1][0]) / (nodes[0] * prices[0][0])
        ends = (known.ratio, known.low, known.high)
        if finding.metric.better != "lower":
            ends = (1 / known.ratio, 1 / known.high, 1 / known.low)
        ratio, low, high = (end * factor for end in ends)
        word = word_of(low, high, finding.margin)
        found.append(
            Cost(
                *(finding.benchmark, arm.name, ratio, low, high, known.level, finding.margin, word),
                nodes=(nodes[0], nodes[1]),
                prices=(prices[0][0], prices[1][0]),
                currency=prices[1][1],
            )
        )
    return found


def nodes_of(arm: Arm, selection: Selection) -> int:
    """Return the number of nodes that the ranks of a benchmark are on in an arm."""
    its = arm_at(arm, selection)
    if its.hosts is None or not selection.ranks:
        return 1
    return len(set(nodes_of_ranks(its.hosts, selection.ranks, its.ranks_per_host)))
