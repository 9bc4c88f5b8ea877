"""Sentences of a screen: what a node is, what was promised, what to do next."""

from __future__ import annotations

import math

from paribus.core import count, fold, percent
from paribus.screen.answer import Answer, Line, Two, Word
from paribus.screen.plan import Screen
from paribus.stats.screen import ROUNDS, Suspect

PREFIX = "paribus:"
"""How the reason of a drain begins: drains with another reason are left alone."""

PROMISE = (
    "Among healthy nodes the chance that any is called slow for the time of this screen is at most"
    " 5 %, over all metrics and looks, if disturbances do not last from round to round."
)

TITLES: dict[Word, str] = {
    "slow": "Slow",
    "lower group": "In the slower of two groups",
    "undecided": "Undecided",
    "failed": "Failed",
    "no sign": "No sign of slowness",
    "not screened": "Not screened",
}


def change(suspect: Suspect) -> str:
    """Return how far its speed lies from that of the others: "-12.3 % [-13.0 %, -11.5 %]"."""
    if math.isnan(suspect.ratio):
        return "no value yet"
    ends = f" [{_percent(suspect.low)}, {_percent(suspect.high)}]"
    return f"{_percent(suspect.ratio)}{'' if math.isnan(suspect.low) else ends}"


def _percent(ratio: float) -> str:
    """Return a change in percent also beyond a factor of two: an interval is read as one."""
    return f"{(ratio - 1) * 100:+.1f} %"


def cause(screen: Screen, line: Line) -> str:
    """Return what a node's word rests on, in one line."""
    several = [_cause(screen, one) for one in line.suspects if one.word != "released"]
    if line.again:
        several.append(f"slow again, as on {line.again}")
    return "; ".join(several) or line.why


def _cause(screen: Screen, one: Suspect) -> str:
    said = f"{one.metric} {change(one)}"
    if one.word == "slow":
        return f"{said} after {one.look} fresh rounds"
    if one.word == "failed":
        return ""
    if one.to_go is not None:
        return f"{said}: {count(one.to_go, 'round')} to the next look"
    margin = percent(screen.margins[one.metric])
    return f"{said}: not proved to be below the margin of {margin} by the last look"


def headline(answer: Answer) -> str:
    """Return the answer in one sentence."""
    slow, failed = answer.having("slow"), answer.having("failed")
    parts = []
    if slow:
        names = fold(one.node for one in slow)
        parts.append(f"{names} {'is' if len(slow) == 1 else 'are'} slow")
    if lower := answer.having("lower group"):
        parts.append(f"{fold(one.node for one in lower)} are slower as a group")
    if failed:
        parts.append(f"{fold(one.node for one in failed)} failed")
    if open_ := answer.having("undecided"):
        verb = "is" if len(open_) == 1 else "are"
        parts.append(f"{fold(one.node for one in open_)} {verb} undecided")
    if not parts:
        parts.append(f"{count(len(answer.having('no sign')), 'node')}: no sign of slowness")
    if absent := answer.having("not screened"):
        parts.append(f"{count(len(absent), 'node')} not screened")
    return f"{'; '.join(parts)}."


def measured(answer: Answer) -> str:
    """Return what was measured, in one sentence."""
    labels = ", ".join(answer.screen.margins)
    rounds = count(answer.standing.round, "round")
    nodes = count(len(answer.screen.nodes), "node")
    return f"{labels} on {nodes}: {rounds}, {count(answer.launches, 'launch')}."


def promise(answer: Answer) -> list[str]:
    """Return what the answer promises, and what it does not."""
    if answer.standing.round < ROUNDS:
        return [f"The first {ROUNDS} rounds are not complete, so that nothing is promised yet."]
    said = [PROMISE]
    for label, found in answer.found.items():
        if found is None:
            said.append(f"{label}: the launches scatter too much to name any slow node surely.")
        else:
            below = percent(math.ceil(found * 200) / 200)
            said.append(
                f"{label}: a node {below} below would have been named with a probability of 95 %."
            )
    return said


def group(answer: Answer, two: Two) -> str:
    """Return the sentences about two groups."""
    number = len(answer.screen.nodes)
    said = (
        f"Two groups by {two.label}: {fold(two.lower)} ({len(two.lower)} of {number} nodes)"
        f" {change(two.suspect)} against the others"
    )
    words = {
        "slow": "proved on fresh rounds for the group as a whole",
        "released": "no sign of slowness on fresh rounds",
        "undecided": "not proved",
        "open": "not proved yet",
        "failed": "failed",
    }
    return f"{said}: {words[two.suspect.word]}. Each group was screened by itself."


def reason(line: Line) -> str:
    """Return the reason of a drain: what is slow, by how much."""
    told = [f"{one.metric} {change(one)}" for one in line.suspects]
    return f"{PREFIX} {'; '.join(told)}"


def left_alone(node: str, state: str, why: str) -> str:
    """Return that a node was not drained, for somebody else's reason stands there."""
    return f"{node}: left as it is, {state} by another owner: {why or 'no reason is given'}"


def drained(node: str) -> str:
    """Return that a node was drained."""
    return f"{node}: drained"
