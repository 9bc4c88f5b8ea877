"""The answer of a screen as sentences: the headline, the cause of each line, what is promised."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paribus.core import count, fold, grouped, percent
from paribus.screen.answer import Answer, Line, Two, Word
from paribus.screen.course import Question, gpu_of

MOST_PAIRS = 4

PREFIX = "paribus:"
"""How the reason of a drain begins: drains with another reason are left alone."""

MOST_REASON = 200
"""Characters of a reason."""

PROMISE = (
    "Among healthy {what} the chance that any is called slow for the time of this screen is at most"
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

OF_A_GROUP = {
    "slow": "proved on fresh rounds for the group as a whole",
    "released": "no sign of slowness on fresh rounds",
    "undecided": "not proved",
    "open": "not proved yet",
    "failed": "failed",
}


def change(one: Question) -> str:
    """Return how far the speed lies from that of the others: "-12.3 % [-13.0 %, -11.5 %]".

    It is in percent even beyond a factor of two, where Paribus else writes "2.5x slower": both ends
    of an interval should read alike.
    """
    if not one.fresh:
        return "no value yet"
    change, low, high = (f"{(ratio - 1) * 100:+.1f} %" for ratio in one.effect)
    return change if math.isnan(one.effect[1]) else f"{change} [{low}, {high}]"


def cause(answer: Answer, line: Line) -> str:
    """Return what a line rests on: for each benchmark its change, of several pairs the slowest."""
    several = grouped((one.metric, one) for one in line.suspects if one.word != "released")
    worst = (min(own, key=lambda q: q.effect[0] if q.fresh else 0.0) for own in several.values())
    reported = [*filter(None, (_cause(answer, one) for one in worst))]
    if line.again:
        reported.append(f"slow again, as on {line.again}")
    slowest = "slowest: " if reported and len(line.pairs) > 1 else ""
    return slowest + "; ".join(reported) or line.why


def _cause(answer: Answer, one: Question) -> str:
    text = f"{one.metric} {change(one)}"
    if one.word == "slow":
        return f"{text} after {one.look} fresh rounds"
    if one.word == "failed":
        return ""
    if one.to_go is not None:
        return f"{text}: {count(one.to_go, 'round')} to the next look"
    bound = f"the margin of {percent(answer.screen.margins[one.metric])}"
    if step := answer.coarse.get(one.metric):
        bound += f" and a step of {percent(step)}"
    return f"{text}: not proved to be below {bound} by the last look"


def headline(answer: Answer) -> str:
    """Return the answer in one sentence: "n3 is slow; n[7-8] failed; 1 node not screened."."""
    links, parts = answer.screen.links, list[str]()

    def add(word: Word, one_is: str, are: str) -> None:
        if names := [one.node for one in answer.having(word)]:
            parts.append(f"{fold(names)} {one_is if len(names) == 1 else are}")

    add("slow", "is slow", "are slow")
    if links and parts:
        parts = [f"the end{'s' if len(answer.having('slow')) > 1 else ''} {parts[0]}"]
    parts += [f"{way(one)}: {one.word}" for one in answer.ways[:MOST_PAIRS]]
    if (more := len(answer.ways) - MOST_PAIRS) > 0:
        parts.append(f"{more} more paths and groups")
    add("lower group", "are slower as a group", "are slower as a group")
    add("failed", "failed", "failed")
    add("undecided", "is undecided", "are undecided")
    if not parts:
        whole = count(len(answer.having("no sign")), noun(answer))
        parts.append(f"{'links between ' if links else ''}{whole}: no sign of slowness")
    if absent := answer.having("not screened"):
        parts.append(f"{count(len(absent), 'node')} not screened")
    text = "; ".join(parts)
    return f"{text[0].upper() + text[1:] if links else text}."


def noun(answer: Answer) -> str:
    """Return what a unit of the answer is called: "node", or "GPU" where all benchmarks use one."""
    return "node" if answer.screen.links else answer.screen.noun(answer.screen.margins)


def way(one: Line) -> str:
    """Return the name of a path or group: "paths between n[1-8] and n[9-16] (n1 - n9, ...)"."""
    left, right = one.sides
    if one.kind == "group":
        return f"all pairs between {left} and {right}"
    shown = ", ".join(one.pairs[:MOST_PAIRS])
    more = f" and {len(one.pairs) - MOST_PAIRS} more" * (len(one.pairs) > MOST_PAIRS)
    if one.pairs == (f"{left} - {right}",):
        return f"the path {shown}"
    within = f"within {left}" if left == right else f"between {left} and {right}"
    return f"{'paths' if len(one.pairs) > 1 else 'a path'} {within} ({shown}{more})"


def measured(answer: Answer) -> str:
    """Return what was measured, in one sentence."""
    labels = ", ".join(answer.screen.margins)
    rounds = count(answer.course.round, "round")
    nodes = count(len(answer.screen.nodes), "node")
    made = f"{labels} on {nodes}: {rounds}, {count(answer.launches, 'launch')}."
    return made if answer.whole else f"{made} Not complete: --resume goes on."


def promise(answer: Answer) -> list[str]:
    """Return the sentences on the error rate, and on how much slower a unit would be found."""
    first, links = answer.course.first, answer.screen.links
    if answer.course.round < first:
        yet = "" if answer.whole else " yet"
        return [f"The first {first} rounds are not complete, so that nothing is promised{yet}."]
    sentences = [PROMISE.format(what="links" if links else f"{noun(answer)}s")]
    thing = "an end" if links else f"a {noun(answer)}"
    for label, found in answer.found.items():
        if step := answer.coarse.get(label):
            sentences.append(
                f"{label}: its figures come in steps of {percent(step)}. A{thing[1:]} is"
                " called slow only a step beyond the margin. Let a launch take longer."
            )
        if found is not None:
            likely = "would have been named with a probability of 95 %"
            sentences.append(f"{label}: {thing} {percent(found)} below {likely}.")
        elif not step:
            sentences.append(f"{label}: the launches scatter too much to name {thing} surely.")
    return sentences


def group(two: Two) -> str:
    """Return the sentences about two groups."""
    of, number = two.suspect, len(two.upper) + len(two.lower)
    return (
        f"Two groups by {of.metric}: {fold(two.lower)} ({len(two.lower)} of {number} nodes)"
        f" {change(of)} against the others: {OF_A_GROUP[of.word]}. Each group was screened by"
        " itself."
    )


def reason(lines: Sequence[Line]) -> str:
    """Return the reason of a drain, what is slow and by how much, in MOST_REASON characters."""
    reported = []
    for line in lines:
        gpu = f"gpu{number} " if (number := gpu_of(line.node)) else ""
        reported += [f"{gpu}{one.metric} {change(one)}" for one in line.suspects]
    return f"{PREFIX} {'; '.join(reported)}"[:MOST_REASON]
