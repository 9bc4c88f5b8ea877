"""A screen before another one, or before a comparison: who was slow then, too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from paribus.core import Study, UserError, fold, format_seconds, grouped
from paribus.screen import words
from paribus.screen.answer import Answer, stored
from paribus.screen.course import nodes_of
from paribus.screen.plan import Screen

OLDEST_S = 7 * 86400.0
"""Seconds after which a screen says nothing of nodes any more."""


def check_earlier(earlier: Answer, screen: Screen) -> dict[str, str]:
    """Return for which nodes an earlier screen says more than this one, and when it was.

    What lasts for a day may be the day's, and until a reboot the system's: of the same day those
    nodes count that were rebooted since. Raises UserError where there are none.
    """
    began, at = earlier.screen.at, screen.at
    before, day = (time.strftime("%Y-%m-%d", time.localtime(one)) for one in (began, at))
    if before < day:
        return dict.fromkeys(earlier.screen.nodes, before)
    known = earlier.screen.boots
    rebooted = [node for node, boot in screen.boots.items() if known.get(node, boot) != boot]
    if not rebooted or began >= at:
        raise UserError(
            f"is of {before}, and this screen of {day}, with no reboot of a node between them",
            place="--earlier",
            fix="name a screen of an earlier day, or reboot the slow nodes: disturbances may last",
        )
    return dict.fromkeys(rebooted, f"{before}, before a reboot")


def with_earlier(answer: Answer, earlier: Answer) -> Answer:
    """Return `answer` with what an `earlier` screen called slow too, which is then slow *again*.

    Raises UserError as `check_earlier`.
    """
    when = check_earlier(earlier, answer.screen)
    again = {one.node: when.get(nodes_of(one.node)[0], "") for one in earlier.having("slow")}
    lines = (
        replace(one, again=again.get(one.node, "")) if one.word == "slow" else one
        for one in answer.lines
    )
    return replace(answer, lines=tuple(lines))


def with_screens(study: Study, directories: Sequence[Path], now: float) -> tuple[Study, list[str]]:
    """Return `study` with what the screens in `directories` say of its nodes, and what to show.

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
    reported, where = [], ", ".join(map(str, directories))
    if unknown := named - {node for node, (_, said) in of.items() if said is not None}:
        reported.append(f"not screened, failed or undecided in {where}: {fold(unknown)}")
    measured = {one.benchmark for _, answer in answers for one in answer.screen.selections}
    asked = dict.fromkeys(one.benchmark for one in study.benchmarks)
    if lacking := [one for one in asked if one not in measured]:
        reported.append(f"not measured in {where}: {', '.join(lacking)}")
    reported += [
        f"slow in {of[name][0]}: {name}: {slow[name]}" for name in sorted(named & slow.keys())
    ]
    return replace(study, asked={**study.asked, "screen": slow}), reported


def _said(answer: Answer) -> dict[str, str | None]:
    """Return by how much each screened node is slow, "" if it is not, None if that is not known.

    A node in the slower of two groups is slow, as its group is.
    """
    known = [(nodes_of(one.node)[0], one) for one in answer.lines if one.word != "not screened"]
    found: dict[str, str | None] = {}
    for node, one in known:
        found.setdefault(node, None if one.word in ("failed", "undecided") else "")
    causes = [(node, words.cause(answer, one)) for node, one in known if one.word == "slow"]
    for two in answer.groups:
        if two.suspect.word == "slow":
            said = f"{two.suspect.metric} {words.change(two.suspect)} as the slower of two groups"
            causes += dict.fromkeys((nodes_of(unit)[0], said) for unit in two.lower)
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
