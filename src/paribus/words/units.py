"""The sentences of notices on other experimental units: sessions, builds, allocations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from paribus.core import NoticeName, count, percent
from paribus.words import lists
from paribus.words.lists import listed

Figures = Mapping[str, Any]
Labels = Sequence[str]

MOST_NAMED = 5
"""The most arms and sets of nodes that a sentence names."""


def _allocations(_: Labels, figures: Figures) -> str:
    """Return the allocations and nodes of each arm, and for which nodes the verdicts hold."""
    arms = [
        f"{lists.arm(name)} {count(several, 'allocation')} ({listed(one['nodes'], MOST_NAMED)})"
        for name, one in figures["arms"].items()
        if (several := one["allocations"])
    ]
    if figures["same"]:
        return f"Within each allocation all arms had the same nodes: {'; '.join(arms)}."
    text = f"The arms had different nodes: {'; '.join(arms)}. The verdicts are about these nodes."
    if not figures["others"]:
        return (
            f"{text} What other nodes of the same kind would give is open: that takes"
            f" {figures['fewest']} allocations or more, each on other nodes."
        )
    return f"{text} For other nodes of the same kind: {'; '.join(map(_other, figures['others']))}."


def _other(one: Figures) -> str:
    return (
        f"{one['benchmark']}, {lists.arm(one['arm'])} {one['word']}, {one['ratio']:.3f}"
        f" [{one['low']:.3f}, {one['high']:.3f}] ({one['allocations']} pairs of node sets)"
    )


def _allocations_fix(figures: Figures) -> str:
    """Return what can be done where the arms had different nodes."""
    if figures["same"] or figures["others"]:
        return ""
    return (
        "If both arms can use the same nodes, give them the same `scheduler`, and same_nodes = true"
        f" in [plan]. For a verdict on other nodes: allocations = {figures['fewest']} in [plan]."
    )


def _installations(_: Labels, figures: Figures) -> str:
    ways = [f"{way} {count(n, 'time')}" for way, n in figures["switches"].items()]
    return (
        f"The factor was switched too rarely ({', '.join(ways) or 'never'}; at least"
        f" {figures['least']} times to each arm are needed). The effect may belong to these"
        " installations and is not attributable to the factor."
    )


def _sessions(labels: Labels, figures: Figures) -> str:
    advice = (
        "more launches per session would narrow the interval too."
        if figures["launches_help"]
        else "more sessions would narrow the interval, more launches per session would not."
    )
    return (
        f"{labels[0]}: sessions of {lists.arm(figures['reference'])} scatter by"
        f" {percent(figures['sd_session'])}, launches within a session by"
        f" {percent(figures['sd_launch'])}; {advice}"
    )


def _sessions_fix(figures: Figures) -> str:
    if "launches" not in figures:
        return ""
    best = figures["launches"]
    return (
        f"{count(best, 'launch')} per session (here {figures['per_session']})"
        f" {'minimises' if best == 1 else 'minimise'} the total time of such a study."
    )


def _builds(labels: Labels, figures: Figures) -> str:
    said = f"{labels[0]}, {count(figures['builds'], 'build')} of each arm: "
    if figures.get("share") is not None:
        said += (
            f"{percent(figures['share'])} of the variance of launches follows the build (builds of"
            f" an arm scatter by {percent(figures['sd_build'])}, launches of a build by"
            f" {percent(figures['sd_launch'])}). "
        )
    ends = [f"{percent(far)} ({lists.arm(name)})" for name, far in figures["apart"].items()]
    said += f"Medians of builds differ by up to {listed(ends, MOST_NAMED, last=' and ')}."
    few = bool(figures["builds"] < figures["least"])
    return said + f" A verdict on the arms takes {figures['least']} builds of each." * few


TEXTS: Mapping[NoticeName, Callable[[Labels, Figures], str]] = {
    NoticeName.ONE_INSTALLATION_EACH: _installations,
    NoticeName.SESSIONS: _sessions,
    NoticeName.BUILDS: _builds,
    NoticeName.ALLOCATIONS: _allocations,
}

FIXES: Mapping[NoticeName, Callable[[Figures], str]] = {
    NoticeName.ONE_INSTALLATION_EACH: lambda _: "Plan more blocks of sessions.",
    NoticeName.SESSIONS: _sessions_fix,
    NoticeName.ALLOCATIONS: _allocations_fix,
}
