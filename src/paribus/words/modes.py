"""Sentences about launches that fall into two modes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paribus.core import Cause, NoticeName, count
from paribus.words import lists
from paribus.words.lists import listed

Figures = Mapping[str, Any]

MOST_NAMED = 5
"""The most benchmarks whose figure of the probe a sentence names."""


def _two_states(labels: Sequence[str], figures: Figures) -> str:
    """Return sentences on the modes of launches, and on what switches them.

    `figures` are by benchmark and arm, the reference first. Those of older versions have no cause.
    """
    each = "; ".join(_modes(label, figures[label]) for label in labels)
    of_arms = figures[labels[0]]
    if any(arm.get("shares_differ") for arm in of_arms.values()):
        return (
            f"{each}. The arms are affected unequally: the share of launches in each mode may be"
            " the real difference."
        )
    reference = next(iter(of_arms.values()))
    cause = Cause(reference.get("cause", Cause.NO_PROBE))
    probes = {label: next(iter(figures[label].values())).get("probe") for label in labels}
    rest = (
        "The ratio compares neighbours and holds; absolute figures depend on the mode."
        if reference.get("paired", True)
        else "The launches are not paired, so the ratio depends on how many are in each mode."
    )
    return f"{each}. No arm is affected significantly more. {_cause(cause, probes)} {rest}"


def _cause(cause: Cause, probes: Mapping[str, Figures | None]) -> str:
    """Return the sentence on what switches the launches, by the state probe."""
    if cause is Cause.NO_PROBE:
        return (
            "No state probe was taken before these launches, so whether the machine or the program"
            " switches is not known."
        )
    several = len(probes) > 1
    seen = [
        f"{f'{label}: ' * several}{one['figure']} is {one['ratio']:.3g}x as high before the upper"
        f" mode, p = {one['p']:.2g}"
        for label, one in probes.items()
        if one
    ]
    shown = listed(seen, MOST_NAMED, last="; ") if several else "".join(seen)
    if cause is Cause.MACHINE:
        return f"The state probe switches with the launches ({shown}), so the cause is the machine."
    return (
        f"The state probe does not switch with the launches ({shown}), so the cause is the program,"
        " or something that the probe does not see."
    )


def _modes(label: str, arms: Mapping[str, Figures]) -> str:
    """Return a clause on the modes of a benchmark's launches; the reference is the first arm."""
    reference, *others = arms
    apart = max(of_arm["apart"] for of_arm in arms.values())
    shares = ", ".join(
        f"{of_arm['higher']} of {count(of_arm['launches'], 'launch')} on {lists.arm(arm)}"
        for arm, of_arm in arms.items()
    )
    said = f"{label} is bimodal (modes {apart:.3g}x apart; upper mode: {shares}"
    for arm in others:
        lower, upper = arms[arm]["ratio_lower"], arms[arm]["ratio_upper"]
        if lower is not None and upper is not None:
            said += f"; {arm} / {reference} {lower:.3f} in the lower mode, {upper:.3f} in the upper"
    return f"{said})"


TEXTS: Mapping[NoticeName, Callable[[Sequence[str], Figures], str]] = {
    NoticeName.TWO_STATES: _two_states
}
FIXES: Mapping[NoticeName, Callable[[Figures], str]] = {}
