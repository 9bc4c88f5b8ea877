"""The answer of a screen, computed from its stored launches.

A Line for each node or GPU ("node7 is slow: ep -12.3 % ..."), one for each path or group of links,
and how much slower a node would have been found. Nothing of it is stored: it is computed whenever
it is shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Literal, get_args

from paribus.core import Difference, fold, grouped
from paribus.screen import plan
from paribus.screen.course import BAR, Course, Question, nodes_of
from paribus.screen.known import Known, known_of
from paribus.screen.links import Pair, of_nodes, pair_of, relative
from paribus.screen.nodes import LOWER, Nodes
from paribus.screen.peers import between, facts_of
from paribus.screen.plan import Screen
from paribus.store import Store

Word = Literal["slow", "lower group", "undecided", "failed", "no sign", "not screened"]
WORDS: tuple[Word, ...] = get_args(Word)
"""The answers on a unit, in the order in which they are listed."""

OTHERS = "all others"


@dataclass(frozen=True, slots=True)
class Line:
    """The answer on one `node`, or one GPU ("node3:gpu0"), or on links: one of WORDS.

    `suspects`: the questions that it rests on; `why`: the reason where there are none. `speeds`: by
    label, its speed over the median of the fleet in the rounds of all, as a ratio. `facts`: in what
    it differs from its peers, the likeliest cause first. `again`: the date when an earlier screen
    called it slow as well. A node in the lower of two groups is compared with that group; without
    a sign of slowness there its word is "lower group", if the group is proved to be slow.

    Of links, `kind` "unit" is the node's end; a "group" is all pairs between two `sides`, and a
    "path" some of them, with a suspect for each benchmark and pair; their `node` is "".
    """

    node: str
    word: Word
    suspects: tuple[Question, ...] = ()
    why: str = ""
    speeds: Mapping[str, float] = field(default_factory=dict)
    facts: tuple[Difference, ...] = ()
    again: str = ""
    kind: str = "unit"
    sides: tuple[str, ...] = ()

    @property
    def pairs(self) -> tuple[str, ...]:
        """The pairs of a path, as "n1 - n2"."""
        own = self.suspects if self.kind == "path" else ()
        return tuple(dict.fromkeys(written(one.unit) for one in own))


def written(pair: str) -> str:
    """Return the name of a pair as it is shown: "n1 - n2" for "n1|n2"."""
    return pair.replace(BAR, " - ")


@dataclass(frozen=True, slots=True)
class Two:
    """Two groups of units by one benchmark, and the facts in which they differ.

    `suspect`: the question whether the lower group is slow as a whole.
    """

    suspect: Question
    upper: tuple[str, ...]
    lower: tuple[str, ...]
    facts: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a screen: a line for each unit, and the two groups where there are any.

    `found`: by label, the least slowness of a unit that would have been found, as a share; None
    where noise hides any. `launches`: how many were made. `whole`: no launch is left to make.
    `coarse`: by label, the step of figures that is coarse for the margin, as a share. Of links:
    `ways` has the lines of paths and groups, and `speeds` the speed of each pair by label, as a
    ratio.
    """

    screen: Screen
    course: Course
    lines: tuple[Line, ...]
    groups: tuple[Two, ...]
    found: Mapping[str, float | None]
    launches: int
    whole: bool
    coarse: Mapping[str, float] = field(default_factory=dict)
    ways: tuple[Line, ...] = ()
    speeds: Mapping[str, Mapping[Pair, float]] = field(default_factory=dict)

    @property
    def slow(self) -> bool:
        """Whether anything is slow: a unit, the lower group, a path or a group of links."""
        return any(one.word in ("slow", "lower group") for one in (*self.lines, *self.ways))

    def having(self, word: Word) -> list[Line]:
        """Return the lines of the units with this answer, the slowest first."""
        return [one for one in self.lines if one.word == word]


def answer_of(screen: Screen, store: Store) -> Answer:
    """Return the answer by the launches stored so far; raises StoreError for damaged ones."""
    known = known_of(screen, store.launches(void=True), str(store.directory))
    known.missing()
    course = known.course
    speeds = {label: course.speeds(label) for label in screen.margins}
    measured = Counter(unit for label in screen.margins for unit in screen.units(label))
    lines = [_line(unit, known, speeds, number) for unit, number in measured.items()]
    without = {*screen.nodes} - {nodes_of(unit)[0] for unit in measured}
    gone = {**dict.fromkeys(sorted(without), "no GPU was found"), **screen.absent}
    lines += [Line(node, "not screened", why=why) for node, why in gone.items()]
    halves = [one for one in course.questions if one.cause is LOWER]
    facts = facts_of(store) if halves or any(one.word == "slow" for one in lines) else {}
    fit = {nodes_of(one.node)[0] for one in lines if one.word == "no sign"}

    def explained(one: Line) -> Line:
        peers = fit - {*nodes_of(one.node)}
        slow = one.word == "slow"
        return replace(one, facts=between(screen, [one.node], peers, facts)) if slow else one

    return Answer(
        screen=screen,
        course=course,
        lines=tuple(sorted(map(explained, lines), key=_place)),
        groups=tuple(
            Two(one, upper, lower, between(screen, lower, upper, facts))
            for one in halves
            if isinstance(course, Nodes)
            for upper, lower in [course.groups[one.metric]]
        ),
        found={m: course.detectable(m) for m in screen.margins if course.round >= course.first},
        launches=known.launches,
        whole=course.done,
        coarse=course.coarse,
        ways=_ways(known),
        speeds={label: _matrix(known, label) for label in screen.margins if screen.links},
    )


def _line(unit: str, known: Known, speeds: Mapping[str, Mapping[str, float]], number: int) -> Line:
    """Return the line of a unit; `speeds`: log speeds by label and unit.

    `number` is how many benchmarks are measured on the unit: with fewer it is "not screened".
    """
    course = known.course
    own = tuple(one for one in course.questions if one.unit == unit)
    ratios = {label: math.exp(units[unit]) for label, units in speeds.items() if unit in units}

    def line(word: Word, suspects: Sequence[Question], why: str = "") -> Line:
        return Line(unit, word, tuple(suspects), why, ratios)

    if slow := [one for one in own if one.word == "slow"]:
        return line("slow", slow)
    if any(unit in gone for gone in course.gone.values()):
        return line("failed", own, known.why.get(unit, ""))
    if course.round < course.first:
        return line("undecided", own, "the rounds of all nodes are not complete")
    if left := [one for one in own if one.word in ("open", "undecided")]:
        return line("undecided", left)
    if len(ratios) < number:
        return line("not screened", own, known.why.get(unit, ""))
    slower = [one.metric for one in course.questions if one.cause is LOWER and one.word == "slow"]
    halves = course.groups if isinstance(course, Nodes) else {}
    is_lower = any(unit in halves[metric][1] for metric in slower)
    return line("lower group" if is_lower else "no sign", own)


def _place(line: Line) -> tuple[int, float]:
    """Return the key by which lines are sorted: by their words, slow ones by their speed."""
    ratios = (one.effect[0] for one in line.suspects if line.word == "slow" and one.fresh)
    return WORDS.index(line.word), min(ratios, default=1.0)


def _ways(known: Known) -> tuple[Line, ...]:
    """Return the lines of paths and groups that are slow, undecided or failed, in this order.

    Paths between the same two racks are one line.
    """
    of, slow = of_nodes(known.screen.racks), {q.unit for q in known.course.questions if q.look}
    alike = grouped(
        (("undecided" if one.word == "open" else one.word, one.cause.kind, _sides(one, of)), one)
        for one in known.course.questions
        if one.cause.kind in ("path", "group") and one.word != "released"
        if one.look or one.unit not in slow
    )
    found = [
        Line("", word, tuple(own), why * (word == "failed"), kind=kind, sides=sides)
        for (word, kind, sides), own in alike.items()
        for why in [known.why.get(own[0].unit, "")]
    ]
    return tuple(sorted(found, key=lambda one: (WORDS.index(one.word), one.kind, one.sides)))


def _sides(question: Question, of: Mapping[str, str]) -> tuple[str, str]:
    """Return the names of both sides of a group, or of a path: racks where they are known."""
    cause = question.cause
    left, right = (sorted(side) for side in cause.sides)
    if cause.kind == "group":
        return fold(left), OTHERS if cause.name.endswith("||") else fold(right)
    one, other = sorted(of.get(node, node) for node in (*left, *right))
    return one, other


def _matrix(known: Known, label: str) -> dict[Pair, float]:
    """Return the speed of each pair (from, to) over the median of its round, as a ratio.

    It is that of the sweep, the median where a pair had several rounds; what was measured in one
    direction holds for both.
    """
    of, table = of_nodes(known.screen.racks), known.tables[label]
    rows = (relative(table.get(n + 1, {}), of) for n in range(known.course.first))
    values = grouped(item for row in rows for item in row.items() if not math.isnan(item[1]))
    found = {pair_of(name): math.exp(median(own)) for name, own in values.items()}
    return {(other, one): speed for (one, other), speed in found.items()} | found


def stored(directory: Path) -> Answer:
    """Return the answer of the screen in `directory`, with its batches; raises StoreError."""
    screen = plan.read(directory)
    if not (several := plan.batches(directory)):
        return _alone(screen, directory)
    parts = {path: plan.read(path) for path in several}
    for path, part in parts.items():
        plan.check_same(screen, part, path, "margins")
    return _together(screen, [_alone(part, path) for path, part in parts.items()])


def _alone(screen: Screen, directory: Path) -> Answer:
    with Store(directory) as store:
        store.check_plan(screen.digest)
        return answer_of(screen, store)


def _together(screen: Screen, batches: Sequence[Answer]) -> Answer:
    """Return the answer on a fleet that was screened in batches.

    A node that was measured in several, as a reference, has the answer of its first.
    """
    first = {node: n for n, one in reversed([*enumerate(batches)]) for node in one.screen.nodes}
    of = {node: first[node] for one in batches for node in one.screen.nodes}
    absent = {node: why for node, why in screen.absent.items() if node not in of}
    lines = [
        line
        for number, one in enumerate(batches)
        for line in one.lines
        if of.get(nodes_of(line.node)[0]) == number
    ]
    lines += [Line(node, "not screened", why=why) for node, why in absent.items()]
    several = {m: [one.found[m] for one in batches if one.found] for m in screen.margins}
    coarse = {m: max(one.coarse.get(m, 0.0) for one in batches) for m in screen.margins}
    gpus = {node: number for one in batches for node, number in one.screen.gpus.items()}
    boots = {node: boot for one in batches for node, boot in one.screen.boots.items()}
    return Answer(
        screen=replace(screen, nodes=tuple(of), absent=absent, gpus=gpus, boots=boots),
        course=max((one.course for one in batches), key=lambda one: one.round),
        lines=tuple(sorted(lines, key=_place)),
        groups=tuple(two for one in batches for two in one.groups),
        found={
            label: None if None in own else max(filter(None, own))
            for label, own in several.items()
            if own
        },
        launches=sum(one.launches for one in batches),
        whole=all(one.whole for one in batches),
        coarse=coarse,
    )
