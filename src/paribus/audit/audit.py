"""The audit: the facts of an arm against those of the reference, classed and ranked.

Facts of every node, read from inside launches, go in; Differences come out. classes.toml says which
difference matters to which benchmarks, factors.toml which ones the factor makes. What remains is
unexplained, and withholds the verdict unless the user accepts it with a reason.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal, get_args

from paribus.audit.classes import classify, factors, is_below, named_after, with_own
from paribus.audit.values import ABSENT, ERROR, NODES, held, number_of, text_of, typical, unread
from paribus.core import LEVEL, Difference, Facts, Row, Study, count, fold, matches
from paribus.core.changes import explained_factors
from paribus.probes.archive import unknown
from paribus.probes.environment import HASHED, UNLISTED
from paribus.store import Gathered


def of_nodes(gathered: Sequence[Gathered]) -> dict[str, dict[str, Facts]]:
    """Return the last facts of each node, by arm and node.

    A node that gave none has no name. It is included only if some node of its arm never answered:
    otherwise it is one that did so another time.
    """
    found: dict[str, dict[str, Facts]] = {}
    for one in gathered:
        if ERROR not in one.facts:
            found.setdefault(one.arm, {})[one.node] = one.facts
    answered = {arm: len(nodes) for arm, nodes in found.items()}
    for one in gathered:
        if ERROR in one.facts and answered.get(one.arm, 0) < one.facts[NODES]:
            found.setdefault(one.arm, {})[one.node] = one.facts
    return found


def changes(
    gathered: Sequence[Gathered],
    study: Study,
    layers: Sequence[str],
    accepted: Mapping[str, str],
) -> tuple[Difference, ...]:
    """Return facts of nodes that should not have changed since they were first gathered, and did.

    Of several changes of one fact the first is reported, even if it was undone, as launches may
    have met it. Nodes with the same change are reported together.
    """
    first: dict[tuple[str, str], Facts] = {}
    found: dict[tuple[str, str, str], Difference] = {}
    for one in gathered:
        before = first.setdefault((one.arm, one.node), one.facts)
        # Only changed facts are compared: in a monitored study, thousands of answers are alike.
        other = {ERROR} | {
            key
            for key in before.keys() | one.facts.keys()
            if before.get(key, ERROR) != one.facts.get(key, ERROR)
        }
        then, now = (
            {one.node: {key: facts[key] for key in other & facts.keys()}}
            for facts in (before, one.facts)
        )
        for reported in moved(then, now, Question(study, one.arm, layers, accepted)):
            found.setdefault((reported.arm, reported.node, reported.key), reported)
    alike: dict[Difference, list[str]] = {}
    for reported in found.values():
        alike.setdefault(replace(reported, node=""), []).append(reported.node)
    return ranked(replace(reported, node=fold(names)) for reported, names in alike.items())


Shares = Mapping[str, Fraction]
"""The share of the nodes that have each value (as JSON) of one fact."""

MOST_SHOWN = 160
"""The most characters of a value that are shown."""

MOST_NAMES = 4
"""The most names of hosts that are listed one by one."""

LONG = 40
"""Of lists with more characters, only the parts that the other side lacks are shown."""


def shown(reference: Shares, arm: Shares, *, names: bool = False) -> tuple[str, str]:
    """Return the values of both sides as text; of long lists only the parts that differ.

    Long lists of host `names` are shown as nodesets.
    """
    if names and len(reference) == len(arm) == 1:
        lists = [json.loads(next(iter(side))) for side in (reference, arm)]
        if all(isinstance(one, list) and len(one) > MOST_NAMES for one in lists):
            one, other = (_folded(list(map(str, each))) for each in lists)
            return one, other
    if len(reference) == len(arm) == 1:
        words, others = (Counter(_words(json.loads(next(iter(side))))) for side in (reference, arm))
        only, more = (list(each.elements()) for each in (words - others, others - words))
        if min(words.total(), others.total()) > 2 and (only or more):
            return _text(only, "only: "), _text(more, "only: ")
    return _side(reference), _side(arm)


def names_moved(first: str, last: str) -> tuple[str, str]:
    """Return, for two lists as JSON, the names that are gone from the first, and the new ones."""
    before, after = (list(map(str, json.loads(text))) for text in (first, last))
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    return f"gone: {', '.join(gone) or 'none'}", f"new: {', '.join(new) or 'none'}"


def _folded(names: list[str]) -> str:
    """Return the hosts of ranks as a nodeset, with the number of ranks if hosts have several."""
    several = f" ({count(len(names), 'rank')})" if len(set(names)) < len(names) else ""
    return f"{_text(fold(names))}{several}"


def _words(value: Any) -> list[str]:
    """Return the parts of a long list, table or search path, such as flags of a processor; else
    none."""
    if isinstance(value, dict):
        words = [f"{name} {inner}" for name, inner in value.items()]
    elif isinstance(value, list):
        words = [str(one) for one in value]
    else:
        words = value.split(":") if isinstance(value, str) else []
    return words if sum(map(len, words)) > LONG else []


def _side(shares: Shares) -> str:
    """Return the values of one side as text, each with the share of nodes that have it."""
    parts = []
    for text, share in sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])):
        some = "" if share == 1 else f" (on {share.numerator} of {share.denominator} nodes)"
        parts.append(f"{_text(json.loads(text))}{some}")
    return "; ".join(parts)


def _text(value: Any, before: str = "") -> str:
    if unknown(value):
        return f"({value['unknown']})"
    if isinstance(value, list):
        reported = ", ".join(str(one) or "(empty)" for one in value)
        text = before + reported if value else "nothing more" if before else "none"
    else:
        whole = isinstance(value, float) and value.is_integer()  # a median of counts
        text = value if isinstance(value, str) else json.dumps(int(value) if whole else value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 4]} ..."


Nodes = Mapping[str, Facts]
"""Facts by the name of the node."""

Kind = Literal["unexplained", "accepted", "factor", "explained", "noted", "unknown"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of difference, in the order in which they are listed."""

OF_RANKS = ("rank.", "limits.", "lib.", "program.", "mpi.", "kernel.")
"""Facts for which what ranks report counts before what was gathered on their nodes."""

SILENT = "nothing is known of this node, so nothing in this arm can be called equal"


@dataclass(frozen=True, slots=True)
class Audit:
    """How an arm differs from the reference, most pressing first, and the facts that are equal."""

    differences: tuple[Difference, ...]
    equal: frozenset[str]


@dataclass(frozen=True, slots=True)
class Question:
    """What differences are classed by."""

    study: Study
    arm: str
    layers: Collection[str] = ()  # of the benchmarks that are measured
    accepted: Mapping[str, str] = field(default_factory=dict)  # reasons of the user, by key


def audit(reference: Nodes, arm: Nodes, question: Question) -> Audit:
    """Return how the nodes of `arm`, as a whole, differ from those of `reference`.

    For each fact the shares of its values among the nodes are compared, so neither the order nor
    the number of nodes matters. A fact that is absent from one side only differs. One that could
    not be read, or that no node has, is unknown: neither equal nor different.
    """
    found = _compared(reference, arm, _keys(reference) | _keys(arm))
    return _answer([(found, question)], question)


def audit_study(
    study: Study,
    layers: Mapping[str, str],
    nodes: Mapping[str, Nodes],
    launches: Mapping[str, Mapping[str, Sequence[Facts]]],
    accepted: Mapping[str, str],
) -> Audit:
    """Return the differences in a study, over all arms, and the facts that are equal in all.

    `layers` are those of its benchmarks by label, `nodes` facts of nodes by arm and node,
    `launches` facts of launches by benchmark and arm. What ranks report of themselves (OF_RANKS)
    counts before what was gathered on their nodes; for other facts, what was gathered counts.
    """
    reference, *others = [arm.name for arm in study.arms]
    every = tuple(layers.values())
    set_here = {f"env.{name}" for arm in study.arms for name in arm.env}
    found: list[Difference] = []
    equal: set[str] = set()
    for arm in others:
        of_reference, of_arm = nodes.get(reference, {}), nodes.get(arm, {})
        of_reference, of_arm = with_own(of_reference, of_arm), with_own(of_arm, of_reference)
        reported = {
            label: [typical(by_arm.get(side, ())) for side in (reference, arm)]
            for label, by_arm in launches.items()
        }
        of_ranks = {
            key for sides in reported.values() for key in _shared(sides) if key.startswith(OF_RANKS)
        }
        both = of_reference and of_arm
        gathered = (_keys(of_reference) | _keys(of_arm) if both else set()) - of_ranks
        # Nodes hide values of variables that may be secret; of those that it sets, the study knows
        # whether they differ.
        known = {key for sides in reported.values() for key in _shared(sides) if key in set_here}
        gathered -= {key for key in known if any(map(unread, _values(of_reference, of_arm, key)))}
        whole = Question(study, arm, every, accepted)
        parts = [(_compared(of_reference, of_arm, gathered), whole)]
        for label, (one, other) in reported.items():
            if one and other:
                asked = Question(study, arm, (layers.get(label, ""),), accepted)
                keys = (one.keys() | other.keys()) - gathered
                parts.append((_compared({"": one}, {"": other}, keys), asked))
        answer = _answer(parts, whole)
        found += answer.differences
        equal |= answer.equal
    for arm in (reference, *others):
        found += between_nodes(nodes.get(arm, {}), Question(study, arm, every))
        found += [
            Difference(ERROR, arm, "", f"{fold(silent)}: {why}", "unknown", SILENT, 3, fold(silent))
            for why, silent in _silent(nodes.get(arm, {})).items()
        ]
    differing = {one.key for one in found if not one.node}
    found += _left_open(study, differing | equal | set_here)
    return Audit(ranked(found), frozenset(equal - differing))


def _left_open(study: Study, known: Collection[str]) -> list[Difference]:
    """Return the settings by which software may choose differently at each level of the factor.

    Neither an arm nor a node sets them, so they are noted, though they do not differ.
    """
    factor = factors().get(study.factor)
    open_to = factor.left_open if factor else {}
    nowhere = {ABSENT: Fraction(1)}
    return [
        Difference(key, arm.name, *shown(nowhere, nowhere), "noted", reason, 2)
        for key, reason in open_to.items()
        if key not in known
        for arm in study.arms[1:]
    ]


@dataclass(frozen=True, slots=True)
class _Compared:
    """The facts of two sides: those that differ, those that are unknown, and the equal ones."""

    differing: Mapping[str, tuple[Shares, Shares]]
    unknown: Mapping[str, tuple[Shares, Shares]]
    equal: frozenset[str]


def _compared(reference: Nodes, arm: Nodes, keys: Collection[str]) -> _Compared:
    differing: dict[str, tuple[Shares, Shares]] = {}
    unknown: dict[str, tuple[Shares, Shares]] = {}
    equal = set()
    for key in sorted(keys):
        sides = _shares(reference, key), _shares(arm, key)
        values = sides[0].keys() | sides[1].keys()
        hidden = ABSENT in values and classify(key).hidden
        if any(map(unread, values)) or values == {ABSENT} or hidden:
            unknown[key] = sides
        elif sides[0] == sides[1]:
            equal.add(key)
        else:
            differing[key] = sides
    return _Compared(differing, unknown, frozenset(equal))


def _answer(parts: Sequence[tuple[_Compared, Question]], question: Question) -> Audit:
    """Return the differences of one arm from what was compared, each once.

    If several benchmarks report the same difference, it has the rank of the one that it is
    likeliest to move.
    """
    # Differences that are explained, from which others may follow.
    leaders = {key for part, _ in parts for key in part.differing if _explained(key, question)}
    # Those that follow from a leader are leaders as well.
    while more := {
        key
        for part, _ in parts
        for key in part.differing.keys() - leaders
        if _leader(key, leaders, question)
    }:
        leaders |= more
    once: dict[str, Difference] = {}
    for part, asked in parts:
        reported = [_classed(key, *sides, leaders, asked) for key, sides in part.differing.items()]
        reported += [
            _difference(key, *sides, "unknown", asked) for key, sides in part.unknown.items()
        ]
        for one in reported:
            if one is not None and (one.key not in once or _place(one) < _place(once[one.key])):
                once[one.key] = one
    equal = frozenset().union(*(part.equal for part, _ in parts))
    return Audit(ranked(once.values()), frozenset(equal - once.keys()))


def _leader(key: str, leaders: Collection[str], question: Question) -> str:
    """Return the one of `leaders` from which the fact `key` follows, "" if from none.

    A variable that the study itself sets in one arm follows from nothing.
    """
    row = classify(key)
    set_here = {f"env.{name}" for arm in question.study.arms for name in arm.env}
    if row.kind != "covaries" or key in set_here:
        return ""
    alike = (one for one in leaders if one != key and is_below(one) == is_below(key))
    return min((one for one in alike if matches(named_after(one), row.follows)), default="")


def _shared(sides: Sequence[Facts]) -> set[str]:
    return set.intersection(*(set(facts) for facts in sides))


def between_nodes(nodes: Nodes, question: Question) -> tuple[Difference, ...]:
    """Return facts in which nodes of one arm differ from most of its nodes, once for each value.

    They are only noted: if their share differs between the arms, `audit` reports that.
    """
    found = []
    for key in sorted(_keys(nodes)):
        row = classify(key)
        shares = _shares(nodes, key)
        if not held(row) or len(shares) == 1 or any(map(unread, shares)):
            continue
        most = max(sorted(shares), key=lambda text: shares[text])
        having: dict[str, list[str]] = {}
        for node, facts in nodes.items():
            having.setdefault(text_of(facts, key), []).append(node)
        why = f"the nodes of this arm differ among themselves: {row.reason}"
        rank = _rank(row, question)
        for value, names in having.items():
            if value != most:
                reported = shown({most: Fraction(1)}, {value: Fraction(1)})
                found.append(
                    Difference(key, question.arm, *reported, "noted", why, rank, fold(names))
                )
    return ranked(found)


def _silent(nodes: Nodes) -> dict[str, list[str]]:
    """Return the nodes that gave no facts, by the reason."""
    found: dict[str, list[str]] = {}
    for node, facts in nodes.items():
        if ERROR in facts:
            found.setdefault(str(facts[ERROR]), []).append(node)
    return found


def moved(before: Nodes, after: Nodes, question: Question) -> tuple[Difference, ...]:
    """Return the facts of nodes of one arm that should not have changed between two times.

    A node that is missing at one of them is skipped, as launches would fail on it.
    """
    found = []
    for node in sorted(before.keys() & after.keys()):
        for key in sorted((before[node].keys() | after[node].keys()) - {ERROR, NODES}):
            row = classify(key)
            first, last = text_of(before[node], key), text_of(after[node], key)
            if not held(row) or first == last or unread(first) or unread(last):
                continue
            if key in (UNLISTED, HASHED) and ABSENT in (first, last):
                continue  # the study was resumed with a version that gathers only the other one
            reported = (
                names_moved(first, last)
                if key == UNLISTED
                else shown({first: Fraction(1)}, {last: Fraction(1)})
            )
            changed = f"changed while the study went on: {row.reason}"
            why = question.accepted.get(key, changed)
            rank = _rank(row, question)
            kind: Kind = "accepted" if key in question.accepted else "unexplained"
            found.append(Difference(key, question.arm, *reported, kind, why, rank, node))
    return ranked(found)


def ranked(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Return `differences` sorted by kind, then the likeliest to move the figures first."""
    return tuple(sorted(differences, key=lambda d: (*_place(d), d.key, d.arm, d.node)))


def _place(one: Difference) -> tuple[int, int]:
    return KINDS.index(one.kind), -one.rank


def explained_by(study: Study) -> tuple[str, ...]:
    """Return the patterns of keys that the study's factor and its `explains` account for.

    The level that an arm observed is its factor's, unless the study states that nothing differs.
    """
    level = () if study.factor == "nothing" else (LEVEL,)
    names = (study.factor, *explained_factors(study))
    of_factors = (key for name in names if name in factors() for key in factors()[name].explains)
    return (*level, *of_factors, *study.explains)


def _explained(key: str, question: Question) -> bool:
    return key in question.accepted or matches(key, explained_by(question.study))


def _classed(
    key: str, reference: Shares, arm: Shares, leaders: Collection[str], question: Question
) -> Difference | None:
    """Return a difference with its kind, None for one that is not worth reporting."""
    row, study = classify(key), question.study
    if row.kind in ("volatile", "identity"):
        volatile = row.kind == "volatile"
        worth = _notable(row, reference, arm) if volatile else _rank(row, question) > 0
        return _difference(key, reference, arm, "noted", question) if worth else None
    if matches(key, explained_by(study)):
        named = matches(key, study.explains)
        why = "named under `explains`" if named else _of_factor(key, study)
        return _difference(key, reference, arm, "factor", question, why)
    if leader := _leader(key, leaders, question):
        return _difference(key, reference, arm, "explained", question, f"follows from {leader}")
    if key in question.accepted:
        return _difference(key, reference, arm, "accepted", question, question.accepted[key])
    return _difference(key, reference, arm, "unexplained", question)


def _of_factor(key: str, study: Study) -> str:
    if key == LEVEL:
        return classify(key).reason
    names = (study.factor, *explained_factors(study))
    named = (factors()[name] for name in names if name in factors())
    return next(one.reason for one in named if matches(key, one.explains))


def _difference(
    key: str, reference: Shares, arm: Shares, kind: Kind, question: Question, why: str = ""
) -> Difference:
    row = classify(key)
    values = shown(reference, arm, names=key == "rank.hosts")
    return Difference(key, question.arm, *values, kind, why or row.reason, _rank(row, question))


def _rank(row: Row, question: Question) -> int:
    return row.likely(question.layers)


def _notable(row: Row, reference: Shares, arm: Shares) -> bool:
    """Return whether the means of a volatile fact are further apart than its row allows."""
    if row.notable is None:
        return False
    sides = [[number_of(json.loads(text)) for text in side] for side in (reference, arm)]
    numbers = [[number for number in side if number is not None] for side in sides]
    if not all(numbers):
        return False
    return abs(statistics.fmean(numbers[0]) - statistics.fmean(numbers[1])) > row.notable


def _keys(nodes: Nodes) -> set[str]:
    return set().union(*nodes.values()) - {ERROR, NODES}


def _shares(nodes: Nodes, key: str) -> Shares:
    counts = Counter(text_of(facts, key) for facts in nodes.values())
    return {text: Fraction(count, len(nodes)) for text, count in counts.items()}


def _values(reference: Nodes, arm: Nodes, key: str) -> set[str]:
    return {text_of(facts, key) for facts in (*reference.values(), *arm.values())}
