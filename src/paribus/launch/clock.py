"""Times of day that no setting of the clock reaches."""

from __future__ import annotations

import time
from dataclasses import replace

from paribus.audit.gate import GATE
from paribus.core import Outcome
from paribus.judge.notices import STEP

LEAST_S = 1.0
"""Seconds from which on a difference is a setting: time daemons slew by less, over weeks."""


class Clock:
    """Seconds since the epoch, read once and counted on by a clock that nobody can set.

    That one goes on while the machine is suspended (CLOCK_BOOTTIME).
    """

    def __init__(self) -> None:
        self._wall, self._boot = time.time(), _boot_s()
        self._known = 0.0

    def now(self) -> float:
        """Return the time of day as it would be had nobody set the clock since."""
        return self._wall + _boot_s() - self._boot

    def step(self) -> float:
        """Return by how many seconds the time of day was set since the last call, 0 if it was not.

        What time daemons slew meanwhile, far below a second, is no step.
        """
        ahead = time.time() - self.now()
        moved, self._known = ahead - self._known, ahead
        return moved if abs(moved) >= LEAST_S else 0.0


def _boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def with_step(outcome: Outcome, before_s: float, meanwhile_s: float) -> Outcome:
    """Return `outcome`, knowing by how many seconds the clock was set before and meanwhile.

    A program may take its times from that clock: a launch in which it was set is disturbed.
    """
    if not before_s and not meanwhile_s:
        return outcome
    facts = {**outcome.facts, STEP: before_s + meanwhile_s}
    if meanwhile_s:
        reasons = [*facts.get(GATE, ()), f"the clock was set by {meanwhile_s:+.0f} s"]
        facts = {**facts, GATE: reasons}
    return replace(outcome, facts=facts)
