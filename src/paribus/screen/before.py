"""A screen before a comparison: which nodes of a study it called slow, as a fact of these nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paribus.core import Study, UserError, fold, format_seconds
from paribus.screen import words
from paribus.screen.answer import stored
from paribus.screen.operators import slow_nodes
from paribus.screen.plan import nodes_of

OLDEST_S = 7 * 86400.0
"""Seconds after which a screen says nothing of nodes any more."""


def with_screen(study: Study, directory: Path, now: float) -> tuple[Study, list[str]]:
    """Return `study` with what the screen in `directory` says of its nodes, and what to tell.

    `now` is seconds since the epoch. The audit compares it as the fact screen.slow: a node that is
    slow in one arm alone withholds the verdict, unless the factor is that the nodes are others.
    Raises UserError for a screen that is older than a week, or not complete.
    """
    answer = stored(directory)
    screen = answer.screen
    if now - screen.at > OLDEST_S:
        age = format_seconds(now - screen.at)
        fix = "screen the nodes again"
        raise UserError(f"is {age} old, and a week is the most", place=str(directory), fix=fix)
    if not answer.whole:
        fix = "finish it: paribus screen HOSTS --resume"
        raise UserError("is not complete", place=str(directory), fix=fix)
    slow = {
        node: "; ".join(words.cause(screen, one) for one in lines)
        for node, lines in slow_nodes(answer).items()
    }
    named = {name for arm in study.arms if arm.hosts for name in arm.hosts.names}
    told = []
    screened = {nodes_of(one.node)[0] for one in answer.lines if one.word != "not screened"}
    if unknown := named - screened:
        told.append(f"not screened in {directory}: {fold(unknown)}")
    told += [f"slow in {directory}: {name}: {slow[name]}" for name in sorted(named & slow.keys())]
    return replace(study, asked={**study.asked, "screen": slow}), told
