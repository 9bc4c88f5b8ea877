"""Which blocks are launched again, and why: never for what they measured."""

from __future__ import annotations

from collections.abc import Sequence

from paribus.audit.gate import GATE
from paribus.core import Launch, Outcome, State
from paribus.judge.evidence import LaunchEvidence
from paribus.launch.lease import HELD_UP
from paribus.plan import Plan
from paribus.stats.probes import REDO_MOST, ProbeOfLaunch, discordant_blocks

RETRY = "a launch of this block failed; the block was rerun"
HOSTS = "a host or its network failed during this block; the block was rerun"
DISTURBED = "the machine was disturbed during this block; the block was rerun"
STATES = "the machine changed its state during this block; the block was rerun"


def why_again(
    plan: Plan,
    evidence: LaunchEvidence,
    block: Sequence[Launch],
    outcomes: Sequence[Outcome],
    *,
    redone: int,
    held: bool,
) -> str:
    """Return why a block is to be done again ("" if it stands): never for what it measured.

    `redone` blocks of the benchmark were already, for what its machine did; `held`: the launcher
    was held up. In a shuffled start the block is a single launch, which keeps its place.

    A launch that the study's own time limit cut off is not repeated: the slow would be weeded
    out. One that ran into the limit that we drew, far beyond any launch so far, hung.
    """
    label, number = block[0].benchmark, block[0].block
    drawn = next(one for one in plan.study.benchmarks if one.label == label).timeout_s is None
    bad = (State.FAILED, State.INVALID, *((State.TIMEOUT,) if drawn else ()))
    if any(outcome.state is State.FAULT for outcome in outcomes):
        return HOSTS
    if any(outcome.state in bad for outcome in outcomes):
        return RETRY
    if held:
        return HELD_UP
    if redone + 1 > REDO_MOST * number:
        return ""
    if any(outcome.facts.get(GATE) for outcome in outcomes):
        return DISTURBED
    if plan.shuffled(number):
        return ""  # its block is no pair: the launches are not neighbours
    probes = [
        ProbeOfLaunch((entry.launch.benchmark, entry.launch.block), arm, entry.probe)
        for units in evidence.blocks[label].values()
        for arm, entry in units.items()
        if entry.probe
    ]
    return STATES if (label, number) in discordant_blocks(probes) else ""
