"""Levels of arms from one sitting to the next: an arm stays at the level of its launches."""

from __future__ import annotations

from paribus.core import LEVEL
from paribus.launch.switching import Switches
from paribus.store import Store

CONFUSED = "two arms had the same level"


def remember(switches: Switches, store: Store) -> None:
    """Have `switches` know the levels at which the launches that count were made."""
    if any(arm.observe for arm in switches.study.arms):
        for one in store.launches(samples=False):
            if LEVEL in one.outcome.facts:
                switches.levels[one.launch.arm] = one.outcome.facts[LEVEL]


def void_confused(switches: Switches, store: Store) -> None:
    """Void all launches of arms that were found at one level: one of them was never switched.

    Which one is not known, unless the study gives the level of each.
    """
    numbers = [
        one.launch.number
        for one in store.launches(samples=False)
        if one.launch.arm in switches.confused
    ]
    store.void(numbers, CONFUSED)
