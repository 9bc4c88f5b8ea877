"""What is said of a matrix of all pairs of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.core import count, format_value
from paribus.words.lists import listed

LEAST = "3 launches and 4 nodes are the fewest"
MOST = 8


def sentences(
    figures: Sequence[float],
    unit: str,
    *,
    nodes: int,
    launches: int | None,
    slow_nodes: Sequence[tuple[str, float]],
    slow_pairs: Sequence[tuple[str, str, float]],
    both_ways: bool,
    apart: bool,
    crowded: Sequence[float] = (),
) -> list[str]:
    """Return the range of the figures (ascending), then what is slow: a sentence each.

    `launches` is None if they were enough to name slow ones; `both_ways`: a figure is of both;
    `crowded` are the ratios of pairs that were slow only beside others, the worst first.

    >>> sentences([1.5, 1.6], "us", nodes=8, launches=None, slow_nodes=[("n7", 1.21)],
    ...           slow_pairs=[("n1", "n2", 2.1)], both_ways=True, apart=False)[1:]
    ['1 of 8 nodes is slow: n7 (21 % longer).', '1 pair is slow: n1 - n2 (2.1 x as long).']
    """
    middle = figures[len(figures) // 2]
    ends = f"{format_value(figures[0])} to {format_value(figures[-1])} {unit}"
    found = [f"Median pair {format_value(middle)} {unit}, all pairs {ends}."]
    if crowded:
        pairs = f"{count(len(crowded), 'pair')} {'was' if len(crowded) == 1 else 'were'} slow"
        worst = _longer(crowded[0])
        found.append(f"{pairs} only while others were measured (up to {worst}): congestion.")
    if launches is not None:
        made = f"{count(launches, 'launch')} of {count(nodes, 'node')}"
        return [*found, f"{made}: too few to name slow ones ({LEAST})."]
    if slow_nodes:
        said = listed([f"{name} ({_longer(ratio)})" for name, ratio in slow_nodes], MOST)
        verb = "is" if len(slow_nodes) == 1 else "are"
        found.append(f"{len(slow_nodes)} of {nodes} nodes {verb} slow: {said}.")
    if apart:
        found.append("They are slow to the others, not among themselves: another switch?")
    if slow_pairs:
        way = " - " if both_ways else " to "
        said = listed([f"{a}{way}{b} ({_longer(ratio)})" for a, b, ratio in slow_pairs], MOST)
        verb = "is" if len(slow_pairs) == 1 else "are"
        found.append(f"{count(len(slow_pairs), 'pair')} {verb} slow: {said}.")
    if not slow_nodes and not slow_pairs:
        found.append("No node and no pair stands out.")
    return found


def _longer(ratio: float) -> str:
    """Return by how much something takes longer than expected."""
    if ratio >= 1.995:
        return f"{ratio:.2g} x as long"
    return f"{100 * (ratio - 1):.0f} % longer"
