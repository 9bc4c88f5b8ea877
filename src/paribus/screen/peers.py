"""The facts in which slow nodes differ from their peers, the likeliest cause first.

Example: "numa.balancing 1, others: 0" beside a node that was called slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median

from paribus.audit.audit import Question, audit, of_nodes
from paribus.audit.classes import classify
from paribus.audit.values import number_of, text_of, typical
from paribus.benchmarks import benchmark_of
from paribus.core import Arm, Difference, Facts, Settings, Study, grouped, matches
from paribus.probes.load import BESIDE
from paribus.screen.course import BAR, nodes_of
from paribus.screen.plan import Screen
from paribus.store import Store

MOST_FACTS = 8
"""Facts that are named beside a slow node."""

CLOCKS = ("probe.*.clock_ghz",)
"""Facts that vary from launch to launch whose higher values are better; of all others (loads,
waits) lower ones are."""

OFTEN, SELDOM = 0.5, 0.1
"""Shares: a node's command is busy beside OFTEN of its launches; peers agree if OFTEN of them do; a
value that SELDOM of the peers or fewer have is a difference."""

ByNode = Mapping[str, Facts]
"""The facts of each node, by its name."""


def facts_of(store: Store) -> dict[str, Facts]:
    """Return the facts of each node: those gathered, and the usual ones of its launches.

    Launches on pairs are left out. BESIDE: the commands busy beside OFTEN of a node's launches.
    """
    launches = grouped(
        (nodes_of(one.launch.arm)[0], one.outcome.facts)
        for one in store.launches(samples=False)
        if one.outcome.facts and BAR not in one.launch.arm
    )
    found = {arm: next(iter(of.values())) for arm, of in of_nodes(store.gathered()).items()}
    for node in found.keys() | launches.keys():
        several = launches.get(node, [])
        seen = Counter(name for facts in several for name in {*facts.get(BESIDE, ())})
        busy = sorted(name for name, times in seen.items() if times >= OFTEN * len(several))
        found[node] = {**typical(several), **found.get(node, {}), BESIDE: busy}
    return found


def between(
    screen: Screen, units: Iterable[str], peers: Iterable[str], facts: ByNode
) -> tuple[Difference, ...]:
    """Return the facts in which the nodes of `units` differ from most `peers`, likeliest first.

    A fact is reported where the usual value of the nodes is rare among the peers. At most
    MOST_FACTS; none where no facts of the units, or of the peers, are known.
    """
    ours, theirs = (
        {name: facts[name] for unit in side for name in nodes_of(unit)[:1] if name in facts}
        for side in (units, peers)
    )
    if not ours or not theirs:
        return ()
    layers = [benchmark_of(one).layer for one in screen.selections]
    study = Study("", "nothing", (Arm("fleet"),), screen.selections, Settings())
    differing = audit(theirs, ours, Question(study, "fleet", layers)).differences
    known = (_reported(one, ours, theirs) for one in differing if one.kind != "unknown")
    reported = [*filter(None, known), *_busy(ours, theirs)]
    return tuple(sorted(reported, key=lambda one: -one.rank)[:MOST_FACTS])


def _reported(one: Difference, ours: ByNode, theirs: ByNode) -> Difference | None:
    """Return a difference if the usual value of `ours` is rare among `theirs`, who mostly agree.

    What is different on every node, such as a serial number, is no difference from the peers; a
    number that varies from launch to launch is one where it is worse than those of all of them.
    """
    if classify(one.key).kind == "volatile":
        here, there = (
            [n for facts in side.values() if (n := number_of(facts.get(one.key))) is not None]
            for side in (ours, theirs)
        )
        if not here or not there:
            return None
        value, low, high = median(here), min(there), max(there)
        slower = value < low if matches(one.key, CLOCKS) else value > high
        span = f"{low:.4g} to {high:.4g}"
        return replace(one, arm_value=f"{value:.4g}", reference_value=span) if slower else None
    usual, others = (
        Counter(text_of(facts, one.key) for facts in side.values()) for side in (ours, theirs)
    )
    agree = max(others.values()) >= OFTEN * len(theirs)
    return one if agree and others[usual.most_common(1)[0][0]] <= SELDOM * len(theirs) else None


def _busy(ours: ByNode, theirs: ByNode) -> list[Difference]:
    """Return the commands that are busy on these nodes and not on their peers."""
    here = set.intersection(*(set(facts[BESIDE]) for facts in ours.values()))
    there = Counter(name for facts in theirs.values() for name in facts[BESIDE])
    alone = sorted(name for name in here if there[name] <= SELDOM * len(theirs))
    reason = "something else used processors while these launches were made"
    return [
        Difference(BESIDE, "fleet", "not busy", name, "noted", reason, rank=3) for name in alone
    ]
