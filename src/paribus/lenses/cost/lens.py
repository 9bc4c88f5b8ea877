"""What a unit of work costs in each arm: the ratio of times, weighed by the price of the nodes.

A launch that takes the time T on n nodes of the price p costs T n p. So the ratio of costs is that
of times by (n p) / (n p) of the reference, which is exact: the interval is scaled as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from paribus.core import (
    Judgement,
    Lens,
    Ratio,
    Reason,
    Word,
    count,
    format_changes,
    nodes_of,
    parse_price,
    usable,
)
from paribus.lenses.cost.node_hours import NodeHours, text, used
from paribus.report import export
from paribus.report.html import Figures
from paribus.report.markup import Html, join
from paribus.report.rows import list_section, print_list
from paribus.stats.verdict import word_of

if TYPE_CHECKING:
    from rich.console import Console

USED = "Node-hours of launches"

TITLE = "Cost of a unit of work"

WORDS = {Word.FASTER: "cheaper", Word.SLOWER: "more expensive", Word.EQUIVALENT: "costs the same"}
"""What a verdict on the ratio of two costs is called; the others keep their word."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a unit of work in `arm`, over that in the reference: below 1 it is cheaper.

    `nodes` and `prices` (of a node for an hour, in `currency`) are of the reference and of the arm.
    `word` is named as that of times: "faster" means cheaper.
    """

    benchmark: str
    arm: str
    ratio: float
    low: float
    high: float
    level: float
    margin: float
    currency: str
    word: Word
    nodes: tuple[int, int]
    prices: tuple[float, float]

    @property
    def called(self) -> str:
        """The verdict as costs have it: "cheaper"."""
        return WORDS.get(self.word, str(self.word))

    @property
    def text(self) -> str:
        """The verdict and the change of the cost with its interval."""
        middle, least, most = format_changes((self.ratio, self.low, self.high))
        return f"{self.benchmark}: {self.called}, {middle} ({least} to {most})"

    @property
    def basis(self) -> str:
        """The nodes and prices of both arms."""
        ours, theirs = (
            f"{count(number, 'node')} at {price:g} {self.currency} an hour"
            for number, price in zip(self.nodes, self.prices, strict=True)
        )
        return f"{theirs}, against {ours}"


class Rows(NamedTuple):
    """The costs of each benchmark, and the node-hours of each arm."""

    costs: list[Cost]
    used: list[NodeHours]


def rows_of(judgement: Judgement) -> Rows:
    """Return the costs and node-hours that follow from a judgement."""
    return Rows(costs(judgement), used(judgement))


def costs(judgement: Judgement) -> list[Cost]:
    """Return the cost for each headline with a usable ratio; none without prices."""
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
        times = known.times(finding.metric.better)
        ratio, low, high = (end * factor for end in (times.ratio, times.low, times.high))
        at_look = finding.verdict.code is not Reason.BEFORE_NEXT_LOOK
        word = word_of(low, high, finding.margin) if at_look else Word.UNDECIDED
        found.append(
            Cost(
                *(finding.benchmark, arm.name, ratio, low, high, known.level, finding.margin),
                *(prices[1][1], word, (nodes[0], nodes[1]), (prices[0][0], prices[1][0])),
            )
        )
    return found


def print_costs(judgement: Judgement, rows: Rows, console: Console) -> None:
    """Print the cost of each benchmark in each arm that has a price, and the node-hours."""
    notes = dict.fromkeys(f"{one.arm}: {one.basis}" for one in rows.costs)
    print_list(console, TITLE, [(one.arm, one.text) for one in rows.costs], notes)
    print_list(console, USED, [(one.arm, _held(one)) for one in rows.used])


def html_section(judgement: Judgement, rows: Rows, figures: Figures) -> Html:
    """Return the sections of the HTML report, empty where no node is counted."""
    each = [(one.arm, one.text, f" {one.basis}.") for one in rows.costs]
    held = [(one.arm, _held(one)) for one in rows.used]
    return join(list_section(TITLE, "Cost", each), list_section(USED, "Node-hours", held))


def to_json(judgement: Judgement, rows: Rows) -> dict[str, Any]:
    """Return costs and node-hours as JSON values, each key only where there are some."""
    costs = [
        {**export.plain(one), "word": one.called, "text": f"{one.text}; {one.basis}"}
        for one in rows.costs
    ]
    held = [
        {
            **export.plain(one),
            "money": one.money if one.currency else None,
            "currency": one.currency or None,
            "text": _held(one),
        }
        for one in rows.used
    ]
    return {key: found for key, found in (("costs", costs), ("node_hours", held)) if found}


def _held(one: NodeHours) -> str:
    return text(one.nodes, (one.hours,), (one.money,), one.currency)


def _ratios(judgement: Judgement, rows: Rows) -> Iterator[Ratio]:
    for one in rows.costs:
        ends = (one.ratio, one.low, one.high)
        decided = one.word is not Word.UNDECIDED
        yield Ratio(one.benchmark, one.arm, "cost", *ends, one.margin, one.called, decided)


LENS = Lens(
    judge=lambda seen: rows_of(seen.judgement),
    to_json=to_json,
    from_json=lambda table, judgement: rows_of(judgement),
    text=print_costs,
    html=html_section,
    ratios=_ratios,
)
