"""A screen before a comparison: which nodes of a study it called slow, as a fact of these nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paribus.core import Study, UserError, fold, format_seconds
from paribus.screen import words
from paribus.screen.answer import Answer, stored
from paribus.screen.operators import slow_nodes
from paribus.screen.plan import nodes_of

OLDEST_S = 7 * 86400.0
"""Seconds after which a screen says nothing of nodes any more."""


def with_screens(study: Study, directories: Sequence[Path], now: float) -> tuple[Study, list[str]]:
    """Return `study` with what the screens in `directories` say of its nodes, and what to tell.

    `now` is seconds since the epoch. Of a node in several screens the newest counts. The audit
    compares it as the fact screen.slow: a node that is slow in one arm alone withholds the verdict,
    unless the factor is that the nodes are others. Raises UserError for a screen that is older than
    a week, or not complete.
    """
    answers = [(directory, _recent(directory, now)) for directory in directories]
    slow: dict[str, str] = {}
    of: dict[str, Path] = {}
    for directory, answer in sorted(answers, key=lambda one: one[1].screen.at):
        screened = {nodes_of(one.node)[0] for one in answer.lines if one.word != "not screened"}
        found = {
            node: "; ".join(words.cause(answer.screen, one) for one in lines)
            for node, lines in slow_nodes(answer).items()
        }
        slow = {node: said for node, said in slow.items() if node not in screened} | found
        of |= dict.fromkeys(screened | found.keys(), directory)
    named = {name for arm in study.arms if arm.hosts for name in arm.hosts.names}
    told = []
    if unknown := named - of.keys():
        told.append(f"not screened in {', '.join(map(str, directories))}: {fold(unknown)}")
    told += [f"slow in {of[name]}: {name}: {slow[name]}" for name in sorted(named & slow.keys())]
    return replace(study, asked={**study.asked, "screen": slow}), told


def _recent(directory: Path, now: float) -> Answer:
    """Return what a screen says, if it is whole and no older than a week."""
    answer = stored(directory)
    if now - answer.screen.at > OLDEST_S:
        age = format_seconds(now - answer.screen.at)
        fix = "screen the nodes again"
        raise UserError(f"is {age} old, and a week is the most", place=str(directory), fix=fix)
    if not answer.whole:
        fix = "finish it: paribus screen HOSTS --resume"
        raise UserError("is not complete", place=str(directory), fix=fix)
    return answer
