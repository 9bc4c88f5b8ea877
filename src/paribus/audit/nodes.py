"""The facts of nodes as they were gathered: the last of each, and what changed between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from paribus.audit.audit import Question, moved, ranked
from paribus.audit.values import ERROR, NODES
from paribus.core import Difference, Facts, Study, fold
from paribus.store import Gathered


def of_nodes(gathered: Sequence[Gathered]) -> dict[str, dict[str, Facts]]:
    """Return the last facts of each node, by arm and node.

    A node that gave none, whose name is then not known either, stands for itself only in an arm of
    which some node never answered.
    """
    found: dict[str, dict[str, Facts]] = {}
    for one in gathered:
        if ERROR not in one.facts:
            found.setdefault(one.arm, {})[one.node] = one.facts
    answered = {arm: len(nodes) for arm, nodes in found.items()}
    for one in gathered:
        if ERROR in one.facts and answered.get(one.arm, 0) < one.facts[NODES]:
            found.setdefault(one.arm, {})[one.node] = one.facts
    return found


def changes(
    gathered: Sequence[Gathered],
    study: Study,
    layers: Sequence[str],
    accepted: Mapping[str, str],
) -> tuple[Difference, ...]:
    """Return what should have stayed on the nodes of an arm and did not, each against the first.

    Of several changes of one fact the first is told; one that was undone is told as well, for
    launches may have met it. Nodes of which the same is told stand together.
    """
    first: dict[tuple[str, str], Facts] = {}
    found: dict[tuple[str, str, str], Difference] = {}
    for one in gathered:
        before = first.setdefault((one.arm, one.node), one.facts)
        # Thousands of answers, of a study that watches for weeks, are mostly alike.
        other = {ERROR} | {
            key
            for key in before.keys() | one.facts.keys()
            if before.get(key, ERROR) != one.facts.get(key, ERROR)
        }
        then, now = (
            {one.node: {key: facts[key] for key in other & facts.keys()}}
            for facts in (before, one.facts)
        )
        for told in moved(then, now, Question(study, one.arm, layers, accepted)):
            found.setdefault((told.arm, told.node, told.key), told)
    alike: dict[Difference, list[str]] = {}
    for told in found.values():
        alike.setdefault(replace(told, node=""), []).append(told.node)
    return ranked(replace(told, node=fold(names)) for told, names in alike.items())
