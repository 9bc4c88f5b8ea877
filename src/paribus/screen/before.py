"""A screen before a comparison: which nodes of a study it called slow, as a fact of these nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paribus.core import Study, UserError, fold, format_seconds, grouped
from paribus.screen import words
from paribus.screen.answer import Answer, stored
from paribus.screen.course import nodes_of

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
    of: dict[str, tuple[Path, str | None]] = {}
    for directory, answer in sorted(answers, key=lambda one: one[1].screen.at):
        of |= {node: (directory, said) for node, said in _said(answer).items()}
    slow = {node: said for node, (_, said) in of.items() if said}
    named = {name for arm in study.arms if arm.hosts for name in arm.hosts.names}
    told, where = [], ", ".join(map(str, directories))
    if unknown := named - {node for node, (_, said) in of.items() if said is not None}:
        told.append(f"not screened, failed or undecided in {where}: {fold(unknown)}")
    measured = {one.benchmark for _, answer in answers for one in answer.screen.selections}
    asked = dict.fromkeys(one.benchmark for one in study.benchmarks)
    if lacking := [one for one in asked if one not in measured]:
        told.append(f"not measured in {where}: {', '.join(lacking)}")
    told += [f"slow in {of[name][0]}: {name}: {slow[name]}" for name in sorted(named & slow.keys())]
    return replace(study, asked={**study.asked, "screen": slow}), told


def _said(answer: Answer) -> dict[str, str | None]:
    """Return by how much each screened node is slow, "" if it is not, None if that is not known.

    A node in the slower of two groups is slow, as its group is.
    """
    found: dict[str, str | None] = {}
    for line in answer.lines:
        node = nodes_of(line.node)[0]
        if line.word in ("failed", "undecided"):
            found.setdefault(node, None)
        elif line.word != "not screened":
            found.setdefault(node, "")
    causes = [
        (nodes_of(one.node)[0], words.cause(answer.screen, one)) for one in answer.having("slow")
    ]
    causes += [
        (node, f"{two.suspect.metric} {words.change(two.suspect)} as the slower of two groups")
        for two in answer.groups
        if two.suspect.word == "slow"
        for node in dict.fromkeys(nodes_of(unit)[0] for unit in two.lower)
    ]
    return found | {node: "; ".join(several) for node, several in grouped(causes).items()}


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
