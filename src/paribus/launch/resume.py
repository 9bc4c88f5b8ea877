"""What earlier sittings of a study left: their evidence, and what must be rerun or has changed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile

from paribus.audit.accepted import read_accepted
from paribus.audit.nodes import changes
from paribus.core import Difference
from paribus.judge.evidence import LaunchEvidence, collect
from paribus.plan import Plan
from paribus.store import Gathered, Store

UNFINISHED = "the study was interrupted during this block"


def resume(plan: Plan, store: Store) -> LaunchEvidence:
    """Return the evidence of earlier sittings, unfinished blocks voided first."""
    stored = store.counting()
    place = str(store.directory)
    warm_up = takewhile(lambda one: one.launch.block == 0, store.launches(samples=False, void=True))
    evidence = collect(warm_up, plan.metrics, plan.session, place=place)
    plan = plan.design.chosen(plan, evidence)
    most = max(stored, default=0)
    for block in plan.blocks():
        if block[0].number > most:
            break
        for label in {launch.benchmark for launch in block}:
            mine = [launch.number for launch in block if launch.benchmark == label]
            numbers = [number for number in mine if number in stored]
            if numbers and len(numbers) < len(mine):
                store.void(numbers, UNFINISHED)
    launches = store.launches(void=True)
    return collect(launches, plan.metrics, plan.session, place=place)


def changed(plan: Plan, store: Store, more: Sequence[Gathered] = ()) -> tuple[Difference, ...]:
    """Return what should have stayed since the first facts of nodes, until `more`, and did not."""
    accepted = read_accepted(store.directory)
    gathered = [*store.gathered(), *more]
    return changes(gathered, plan.study, tuple(plan.layers.values()), accepted)


def redone(store: Store, reasons: Collection[str]) -> dict[str, int]:
    """Return in how many blocks of each benchmark one of `reasons` led to a second try."""
    blocks = {
        (one.launch.benchmark, one.launch.block)
        for one in store.launches(samples=False, void=True)
        if one.void in reasons
    }
    labels = [label for label, _ in blocks]
    return {label: labels.count(label) for label in labels}
