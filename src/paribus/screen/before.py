"""An earlier screen beside another one (`--earlier`), or before a comparison (`run --screen`).

What is slow in two screens of different days is slow *again*: disturbances that last a day are no
longer an explanation. A comparison whose arms ran on different nodes is withheld where a screen
called the nodes of one arm slow.
"""

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
"""Age in seconds beyond which a screen is no evidence on nodes any more."""


def check_earlier(earlier: Answer, screen: Screen) -> dict[str, str]:
    """Return the nodes for which an earlier screen is further evidence, each with its date.

    A screen of an earlier day is that for all nodes. One of the same day is so only for nodes that
    were rebooted since: a disturbance may last for a day, or until a reboot. Raises UserError where
    there are none.
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
    """Return `answer` in which units that an `earlier` screen called slow, too, are slow *again*.

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
    """Return `study` with the answers of screens on its nodes, and sentences to show on them.

    `now` is seconds since the epoch. Of a node in several screens the newest counts. The slow nodes
    become the fact screen.slow, which the audit compares: a node that is slow in one arm alone
    withholds the verdict, unless the factor is the nodes themselves. Raises UserError for a screen
    that is older than a week, or not complete.
    """
    answers = [(directory, _recent(directory, now)) for directory in directories]
    of: dict[str, tuple[Path, str | None]] = {}
    for directory, answer in sorted(answers, key=lambda one: one[1].screen.at):
        of |= {node: (directory, slow) for node, slow in _slowness(answer).items()}
    slow = {node: how for node, (_, how) in of.items() if how}
    named = {name for arm in study.arms if arm.hosts for name in arm.hosts.names}
    reported, where = [], ", ".join(map(str, directories))
    if unknown := named - {node for node, (_, how) in of.items() if how is not None}:
        reported.append(f"not screened, failed or undecided in {where}: {fold(unknown)}")
    measured = {one.benchmark for _, answer in answers for one in answer.screen.selections}
    asked = dict.fromkeys(one.benchmark for one in study.benchmarks)
    if lacking := [one for one in asked if one not in measured]:
        reported.append(f"not measured in {where}: {', '.join(lacking)}")
    reported += [
        f"slow in {of[name][0]}: {name}: {slow[name]}" for name in sorted(named & slow.keys())
    ]
    return replace(study, asked={**study.asked, "screen": slow}), reported


def _slowness(answer: Answer) -> dict[str, str | None]:
    """Return for each screened node how slow it is, "" if it is not, None if that is not known.

    A node in the slower of two groups is slow if the group is proved to be.
    """
    known = [(nodes_of(one.node)[0], one) for one in answer.lines if one.word != "not screened"]
    found: dict[str, str | None] = {}
    for node, one in known:
        found.setdefault(node, None if one.word in ("failed", "undecided") else "")
    causes = [(node, words.cause(answer, one)) for node, one in known if one.word == "slow"]
    for two in answer.groups:
        if two.suspect.word == "slow":
            cause = f"{two.suspect.metric} {words.change(two.suspect)} as the slower of two groups"
            causes += dict.fromkeys((nodes_of(unit)[0], cause) for unit in two.lower)
    return found | {node: "; ".join(several) for node, several in grouped(causes).items()}


def _recent(directory: Path, now: float) -> Answer:
    """Return the answer of a screen; raises UserError if it is not complete, or OLDEST_S old."""
    answer = stored(directory)
    if now - answer.screen.at > OLDEST_S:
        age = format_seconds(now - answer.screen.at)
        fix = "screen the nodes again"
        raise UserError(f"is {age} old, and a week is the most", place=str(directory), fix=fix)
    if not answer.whole:
        fix = "finish it: paribus screen HOSTS --resume"
        raise UserError("is not complete", place=str(directory), fix=fix)
    return answer
