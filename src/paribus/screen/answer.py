"""What a screen says, from what it has stored: a line a unit, and what it would have found."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Literal, get_args

from paribus.audit.audit import Question, audit, of_nodes
from paribus.audit.classes import classify
from paribus.audit.values import number_of, text_of, typical
from paribus.benchmarks import benchmark_of
from paribus.core import Arm, Difference, Facts, Settings, Study, UserError, grouped, matches
from paribus.probes.load import BESIDE
from paribus.screen import plan
from paribus.screen.links import LinkStanding, Pair
from paribus.screen.plan import BAR, Screen, nodes_of
from paribus.screen.rounds import Known, coarse, how_proved, known_of, logs_of, stands
from paribus.screen.standing import GROUP, Standing, Suspect, detectable
from paribus.screen.ways import Way, matrix, ways_of
from paribus.store import Store

Word = Literal["slow", "lower group", "undecided", "failed", "no sign", "not screened"]
WORDS: tuple[Word, ...] = get_args(Word)
"""In the order in which they are told."""

MOST_FACTS = 8
"""Facts that are named beside a slow node."""

CLOCKS = ("probe.*.clock_ghz",)
"""Facts that vary from launch to launch of which more is better: of loads and waits less is."""

OFTEN, SELDOM = 0.5, 0.1
"""Shares of launches beside which a command was busy: on the slow node, and on its peers."""


@dataclass(frozen=True, slots=True)
class Line:
    """The answer on a node, or a GPU of one: its word, the `suspects` it rests on, or `why`.

    `speeds`: by label, its speed over the median of the fleet in the rounds of all, as a ratio.
    `facts`: in what it differs from its peers, the likeliest cause first. A node of the lower
    of two groups has its word by its own group; without one it is in the "lower group", if that is
    proved to be slow. Of links it is about the node's end. `again`: when an earlier screen called
    it slow as well.
    """

    node: str
    word: Word
    suspects: tuple[Suspect, ...] = ()
    why: str = ""
    speeds: Mapping[str, float] = field(default_factory=dict)
    facts: tuple[Difference, ...] = ()
    again: str = ""


@dataclass(frozen=True, slots=True)
class Two:
    """Two groups by one benchmark: what of the lower is known, and the facts that divide them."""

    suspect: Suspect
    upper: tuple[str, ...]
    lower: tuple[str, ...]
    facts: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a screen says. `found`: by label, how much slower a node would have been named, as a
    share, None where the noise hides any; `coarse`: by label, the steps of figures that are too
    coarse for the margin, as a share; `whole`: nothing is left to launch. Of links: `ways` beside
    their ends, and the `speeds` of pairs by label, as `matrix`."""

    screen: Screen
    standing: Standing
    lines: tuple[Line, ...]
    groups: tuple[Two, ...]
    found: Mapping[str, float | None]
    launches: int
    whole: bool
    coarse: Mapping[str, float] = field(default_factory=dict)
    ways: tuple[Way, ...] = ()
    speeds: Mapping[str, Mapping[Pair, float]] = field(default_factory=dict)

    @property
    def slow(self) -> bool:
        """Whether a unit, the lower of two groups, a path or a group of links is slow."""
        slow = ("slow", "lower group")
        words = [*(one.word for one in self.lines), *(one.word for one in self.ways)]
        return any(word in slow for word in words)

    def having(self, word: Word) -> list[Line]:
        """Return the lines with a word, the slowest first."""
        return [one for one in self.lines if one.word == word]


def answer_of(screen: Screen, store: Store) -> Answer:
    """Return what the launches stored so far say."""
    known = known_of(screen, store.launches(void=True), str(store.directory))
    found = stands(screen, known)
    groups = [one for one in found.suspects if one.unit == GROUP]
    linked = found if isinstance(found, LinkStanding) else None
    measured = Counter(unit for label in screen.margins for unit in screen.units(label))
    lines = [_line(unit, found, known, number) for unit, number in measured.items()]
    without = {*screen.nodes} - {nodes_of(unit)[0] for unit in measured}
    gone = {**dict.fromkeys(sorted(without), "no GPU was found"), **screen.absent}
    lines += [Line(node, "not screened", why=why) for node, why in gone.items()]
    steps = coarse(screen, known, found.first)
    facts = _facts(store) if any(one.word == "slow" for one in lines) or groups else {}
    fit = {nodes_of(one.node)[0] for one in lines if one.word == "no sign"}
    lines = [
        replace(one, facts=_between(screen, [one.node], fit - {*nodes_of(one.node)}, facts))
        if one.word == "slow"
        else one
        for one in lines
    ]
    return Answer(
        screen=screen,
        standing=found,
        lines=tuple(sorted(lines, key=_place)),
        groups=tuple(
            Two(one, upper, lower, _between(screen, lower, upper, facts))
            for one in groups
            for upper, lower in [found.groups[one.metric]]
        ),
        found={
            label: _detectable(screen, found, label, logs_of(steps).get(label, 0.0))
            for label in screen.margins
        }
        if found.round >= found.first
        else {},
        launches=known.launches,
        whole=found.done,
        coarse=steps,
        ways=ways_of(screen, linked, known) if linked else (),
        speeds={m: matrix(screen, known, m, found.first) for m in screen.margins if linked},
    )


def _detectable(screen: Screen, found: Standing, label: str, step: float) -> float | None:
    """Return how much slower a unit, or an end, would have been named, as a share."""
    causes = found.causes if isinstance(found, LinkStanding) else {}
    several = [one for one in found.suspects if not causes or causes[one.unit].kind != "path"]
    shares, later, below = how_proved(screen)
    others = shares * (len(several) + 1) - 1
    noise, margin = found.noise[label], screen.bounds[label]
    return detectable(noise, margin, others, screen.seed, found.first, later, below, step)


def stored(directory: Path) -> Answer:
    """Return the answer of a screen that is stored in `directory`; raises StoreError for none."""
    screen = plan.read(directory)
    if not (several := plan.batches(directory)):
        return _alone(screen, directory)
    parts = [(plan.read(one), one) for one in several]
    for part, path in parts:
        plan.check_same(screen, part, path, "margins")
    return _together(screen, [_alone(part, path) for part, path in parts])


def _alone(screen: Screen, directory: Path) -> Answer:
    with Store(directory) as store:
        store.check_plan(screen.digest)
        return answer_of(screen, store)


def _together(screen: Screen, batches: Sequence[Answer]) -> Answer:
    """Return the answer on a fleet that was screened in batches: of a node that of its first."""
    of: dict[str, int] = {}
    for number, one in enumerate(batches):
        for node in one.screen.nodes:
            of.setdefault(node, number)
    absent = {node: why for node, why in screen.absent.items() if node not in of}
    lines = [
        line
        for number, one in enumerate(batches)
        for line in one.lines
        if of.get(nodes_of(line.node)[0]) == number
    ]
    lines += [Line(node, "not screened", why=why) for node, why in absent.items()]
    found = {
        label: None if None in several else max(filter(None, several))
        for label in screen.margins
        if (several := [one.found[label] for one in batches if one.found])
    }
    return Answer(
        screen=replace(
            screen,
            nodes=tuple(of),
            absent=absent,
            gpus={node: n for one in batches for node, n in one.screen.gpus.items()},
            boots={node: b for one in batches for node, b in one.screen.boots.items()},
        ),
        standing=max((one.standing for one in batches), key=lambda one: one.round),
        lines=tuple(sorted(lines, key=_place)),
        groups=tuple(two for one in batches for two in one.groups),
        found=found,
        launches=sum(one.launches for one in batches),
        whole=all(one.whole for one in batches),
        coarse={
            label: max(one.coarse.get(label, 0.0) for one in batches)
            for label in {label for one in batches for label in one.coarse}
        },
    )


def check_earlier(earlier: Answer, at: float, boots: Mapping[str, str]) -> dict[str, str]:
    """Return for which nodes an earlier screen says more than one of `at`, and when it was.

    What lasts for a day may be the day's, and until a reboot the system's: of the same day those
    nodes count that were rebooted since, by their `boots`. Raises UserError where there are none.
    """
    before, day = (
        time.strftime("%Y-%m-%d", time.localtime(one)) for one in (earlier.screen.at, at)
    )
    if before < day:
        return dict.fromkeys(earlier.screen.nodes, before)
    known = earlier.screen.boots
    rebooted = [node for node, boot in boots.items() if known.get(node, boot) != boot]
    if not rebooted or earlier.screen.at >= at:
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
    when = check_earlier(earlier, answer.screen.at, answer.screen.boots)
    slow = {one.node for one in earlier.having("slow")}
    lines = (
        replace(one, again=when.get(nodes_of(one.node)[0], ""))
        if one.word == "slow" and one.node in slow
        else one
        for one in answer.lines
    )
    return replace(answer, lines=tuple(lines))


def _place(line: Line) -> tuple[int, float]:
    worst = min((one.ratio for one in line.suspects if not math.isnan(one.ratio)), default=1.0)
    return WORDS.index(line.word), worst if line.word == "slow" else 1.0


def _line(node: str, found: Standing, known: Known, measured: int) -> Line:
    """Return the line of a unit, which so many benchmarks are `measured` on."""
    own = tuple(one for one in found.suspects if one.unit == node)
    speeds = {label: math.exp(of[node]) for label, of in found.speeds.items() if node in of}
    named = tuple(one for one in own if one.word == "slow")
    if named:
        return Line(node, "slow", named, speeds=speeds)
    if node in found.failed:
        return Line(node, "failed", own, known.why.get(node, ""), speeds)
    if found.round < found.first:
        return Line(node, "undecided", own, "the rounds of all nodes are not complete", speeds)
    if left := tuple(one for one in own if one.word in ("open", "undecided")):
        return Line(node, "undecided", left, speeds=speeds)
    if len(speeds) < measured:
        return Line(node, "not screened", own, known.why.get(node, ""), speeds)
    lower = any(
        one.unit == GROUP and one.word == "slow" and node in found.groups[one.metric][1]
        for one in found.suspects
    )
    return Line(node, "lower group" if lower else "no sign", own, speeds=speeds)


def _facts(store: Store) -> dict[str, Facts]:
    """Return the facts of each node: gathered, and the usual ones of launches on it alone."""
    launches = grouped(
        (nodes_of(one.launch.arm)[0], one.outcome.facts)
        for one in store.launches(samples=False)
        if one.outcome.facts and BAR not in one.launch.arm
    )
    found = {arm: next(iter(of.values())) for arm, of in of_nodes(store.gathered()).items()}
    for node in found.keys() | launches.keys():
        several = launches.get(node, [])
        seen = Counter(name for facts in several for name in {*facts.get(BESIDE, ())})
        busy = sorted(name for name, times in seen.items() if times >= OFTEN * len(several))
        found[node] = {**typical(several), **found.get(node, {}), BESIDE: busy}
    return found


def _between(
    screen: Screen, units: Iterable[str], peers: Iterable[str], facts: Mapping[str, Facts]
) -> tuple[Difference, ...]:
    """Return in what the nodes of `units` differ from most `peers`, the likeliest cause first.

    A fact is told where the usual value of the nodes is seldom among the peers.
    """
    ours, theirs = (
        {name: facts[name] for unit in side for name in nodes_of(unit)[:1] if name in facts}
        for side in (units, peers)
    )
    if not ours or not theirs:
        return ()
    layers = [benchmark_of(one).layer for one in screen.selections]
    study = Study("", "nothing", (Arm("fleet"),), screen.selections, Settings())
    differing = audit(theirs, ours, Question(study, "fleet", layers)).differences
    known = (_reported(one, ours, theirs) for one in differing if one.kind != "unknown")
    reported = [*(one for one in known if one), *_busy(ours, theirs)]
    reported.sort(key=lambda one: -one.rank)
    return tuple(reported[:MOST_FACTS])


def _reported(
    one: Difference, ours: Mapping[str, Facts], theirs: Mapping[str, Facts]
) -> Difference | None:
    """Return a difference if the usual value of `ours` is seldom among `theirs`, who mostly agree.

    What every node has otherwise, such as a serial number, is no difference from the peers; a
    number that varies from launch to launch is one where it is worse than those of all of them.
    """
    if classify(one.key).kind == "volatile":
        here = [n for f in ours.values() if (n := number_of(f.get(one.key))) is not None]
        there = [n for f in theirs.values() if (n := number_of(f.get(one.key))) is not None]
        if not here or not there:
            return None
        value, low, high = median(here), min(there), max(there)
        slower = value < low if matches(one.key, CLOCKS) else value > high
        said = f"{low:.4g} to {high:.4g}"
        return replace(one, arm_value=f"{value:.4g}", reference_value=said) if slower else None
    usual = Counter(text_of(facts, one.key) for facts in ours.values()).most_common(1)[0][0]
    others = Counter(text_of(facts, one.key) for facts in theirs.values())
    agree = max(others.values()) >= OFTEN * len(theirs)
    return one if agree and others[usual] <= SELDOM * len(theirs) else None


def _busy(ours: Mapping[str, Facts], theirs: Mapping[str, Facts]) -> list[Difference]:
    """Return the commands that are busy on these nodes and not on their peers."""
    here = set.intersection(*(set(facts[BESIDE]) for facts in ours.values()))
    there = Counter(name for facts in theirs.values() for name in facts[BESIDE])
    own = sorted(name for name in here if there[name] <= SELDOM * len(theirs))
    reason = "something else used processors while these launches were made"
    return [Difference(BESIDE, "fleet", "not busy", name, "noted", reason, rank=3) for name in own]
