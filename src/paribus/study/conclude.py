"""The judgement of a study directory: everything that a report shows, from the store alone."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace

from paribus import __version__
from paribus.judgement import Difference, Finding, Judgement, Notice, Point, Tally, Verdict, Word
from paribus.model import Facts, State
from paribus.stats.states import TwoStates, shares_differ, two_states
from paribus.stats.summary import geometric_mean, launch_median
from paribus.store import Store
from paribus.study.audit import VOLATILE, audit, explained_by, matches, typical
from paribus.study.evidence import Entry, Evidence, collect
from paribus.study.execute import budget_used
from paribus.study.judge import cases, given_up, headlines
from paribus.study.plan import Plan
from paribus.units import format_change


def conclude(plan: Plan, store: Store) -> Judgement:
    """Return the judgement of everything that `store` holds, whether the study is over or not."""
    evidence = collect(store)
    arms = [arm.name for arm in plan.study.arms]
    spent = budget_used(plan, store.launches_s())
    over = {s.label: spent or _over(plan, evidence, s.label, arms) for s in plan.study.benchmarks}
    found = [
        finding
        for selection in plan.study.benchmarks
        for finding in headlines(plan, evidence, selection, over=over[selection.label])
    ]
    facts = _facts(store)
    differences, equal = _differences(plan, facts, arms)
    unexplained = {d.arm for d in differences if d.kind == "unexplained"}
    found = [_withhold(f) if f.arm in unexplained else f for f in found]
    points, started, wall_s = _points(plan, evidence)
    return Judgement(
        study=plan.study,
        plan_sha256=plan.sha256,
        directory=str(store.directory),
        sentence=sentence(found),
        complete=all(
            over[f.benchmark] or (f.verdict.final and f.verdict.word is not Word.NO_DATA)
            for f in found
        ),
        headlines=tuple(found),
        cases=tuple(case for finding in found for case in cases(plan, evidence, finding)),
        tallies=_tallies(plan, evidence, arms),
        points=points,
        differences=tuple(differences),
        facts={arm: _merged(facts, arm) for arm in arms},
        equal_facts=equal,
        notices=tuple(
            Notice("machine", "warning", text)
            for text in (*_warnings(plan, store, evidence, facts, arms), *_states(plan, points))
        ),
        versions={**plan.software, "python": platform.python_version(), "reported by": __version__},
        started=started,
        wall_s=wall_s,
        looks=plan.looks.at,
        level=plan.looks.confidence,
    )


def sentence(found: Sequence[Finding]) -> str:
    """Return the verdict of the whole study in one sentence: every benchmark, and by how much."""
    groups: dict[tuple[str, Word], list[str]] = {}
    for finding in found:
        labels = groups.setdefault((finding.arm, finding.verdict.word), [])
        labels.append(f"{finding.benchmark}{_by_how_much(finding)}")
    parts = [f"{arm} {_PHRASES[word]} {_listed(labels)}" for (arm, word), labels in groups.items()]
    return "; ".join(parts) + "." if parts else "Nothing was compared."


_PHRASES: Mapping[Word, str] = {
    Word.FASTER: "is faster in",
    Word.SLOWER: "is slower in",
    Word.EQUIVALENT: "is equivalent in",
    Word.UNDECIDED: "is undecided in",
    Word.RELIABILITY: "differs in reliability in",
    Word.WITHHELD: "has its verdict withheld in",
    Word.NO_DATA: "has no data in",
}


def _by_how_much(finding: Finding) -> str:
    """Return the change of the arm's value against the reference's, where it is a finding."""
    if finding.comparison is None or finding.verdict.word not in (Word.FASTER, Word.SLOWER):
        return ""
    return f" ({format_change(finding.comparison.ratio)})"


def _listed(labels: Sequence[str]) -> str:
    *first, last = labels
    return f"{', '.join(first)} and {last}" if first else last


def _over(plan: Plan, evidence: Evidence, label: str, arms: Sequence[str]) -> bool:
    """Return whether no launch of `label` is left to make, whatever its verdict."""
    done = set(evidence.blocks.get(label, {}))
    return plan.study.settings.blocks in done or bool(given_up(evidence, label, arms))


def _withhold(finding: Finding) -> Finding:
    if finding.verdict.word is Word.NO_DATA:
        return finding
    reason = (
        "the arms differ in more than the factor: make what is listed as unexplained equal, or"
        " name it under `explains` in the study file if the factor causes it"
    )
    return replace(finding, verdict=Verdict(Word.WITHHELD, reason, finding.verdict.final))


def _facts(store: Store) -> dict[str, dict[str, list[Facts]]]:
    """Return the facts of every good launch by benchmark and arm, warm-up included."""
    found: dict[str, dict[str, list[Facts]]] = {}
    for stored in store.launches(samples=False):
        if stored.outcome.state is State.OK:
            arms = found.setdefault(stored.launch.benchmark, {})
            arms.setdefault(stored.launch.arm, []).append(stored.outcome.facts)
    return found


def _differences(
    plan: Plan, facts: Mapping[str, Mapping[str, Sequence[Facts]]], arms: Sequence[str]
) -> tuple[list[Difference], int]:
    """Return what differs between each arm and the reference, and how many facts are equal."""
    explained = explained_by(plan.study)
    found: dict[tuple[str, str], Difference] = {}
    equal: set[str] = set()
    for by_arm in facts.values():
        if arms[0] not in by_arm:
            continue
        reference, _ = typical(by_arm[arms[0]])
        for arm in arms[1:]:
            theirs, _ = typical(by_arm.get(arm, []))
            if theirs:
                for difference in audit(reference, theirs, explained, arm):
                    found.setdefault((difference.key, arm), difference)
                equal |= {key for key in reference if theirs.get(key) == reference[key]}
    differing = {key for key, _ in found}
    return sorted(found.values(), key=lambda d: (d.kind, d.key)), len(
        {key for key in equal - differing if not matches(key, VOLATILE)}
    )


def _merged(facts: Mapping[str, Mapping[str, Sequence[Facts]]], arm: str) -> Facts:
    merged: dict[str, object] = {}
    for by_arm in facts.values():
        for key, value in typical(by_arm.get(arm, []))[0].items():
            merged.setdefault(key, value)
    return dict(sorted(merged.items()))


def _tallies(plan: Plan, evidence: Evidence, arms: Sequence[str]) -> tuple[Tally, ...]:
    found = []
    for selection in plan.study.benchmarks:
        for arm in arms:
            mine = [e for e in evidence.entries(selection.label) if e.launch.arm == arm]
            counted = [e for e in mine if e.launch.block > 0]
            states = [e.state for e in counted]
            found.append(
                Tally(
                    benchmark=selection.label,
                    arm=arm,
                    counted=len(counted),
                    failed=states.count(State.FAILED),
                    timed_out=states.count(State.TIMEOUT),
                    invalid=states.count(State.INVALID),
                    first_error=next((e.error for e in mine if e.error), ""),
                )
            )
    return tuple(found)


def _points(plan: Plan, evidence: Evidence) -> tuple[tuple[Point, ...], float | None, float]:
    """Return every launch on the time axis, when the first began, and the time they span."""
    entries = [e for s in plan.study.benchmarks for e in evidence.entries(s.label)]
    if not entries:
        return (), None, 0.0
    begin = min(entry.started for entry in entries)
    levels: dict[str, dict[int, float]] = {}
    for selection in plan.study.benchmarks:
        levels[selection.label] = _relative(plan, evidence.entries(selection.label))
    points = tuple(
        Point(
            number=entry.launch.number,
            block=entry.launch.block,
            benchmark=entry.launch.benchmark,
            arm=entry.launch.arm,
            at_s=entry.started - begin,
            state=entry.state,
            level=levels[entry.launch.benchmark].get(entry.launch.number),
        )
        for entry in sorted(entries, key=lambda e: e.started)
    )
    return points, begin, points[-1].at_s


def _relative(plan: Plan, entries: Sequence[Entry]) -> dict[int, float]:
    """Return each good launch's level, over the cases that all of them have, 1 = reference."""
    good = [entry for entry in entries if entry.medians]
    if not good:
        return {}
    merit = plan.metrics[good[0].launch.benchmark][0].name
    common = set.intersection(*(set(entry.medians) for entry in good))
    cells = [cell for cell in common if cell[0] == merit]
    if not cells:
        return {}
    level = {e.launch.number: geometric_mean([e.medians[c] for c in cells]) for e in good}
    reference = plan.study.arms[0].name
    theirs = [level[e.launch.number] for e in good if e.launch.arm == reference]
    usual = launch_median(theirs or list(level.values()))
    return {number: value / usual for number, value in level.items()}


def _warnings(
    plan: Plan,
    store: Store,
    evidence: Evidence,
    facts: Mapping[str, Mapping[str, Sequence[Facts]]],
    arms: Sequence[str],
) -> list[str]:
    found = []
    for selection in plan.study.benchmarks:
        why = given_up(evidence, selection.label, arms)
        if why:
            found.append(f"{selection.label} was given up: {why}")
    voided = [stored for stored in store.launches(samples=False, void=True) if stored.void]
    for reason in dict.fromkeys(stored.void for stored in voided):
        count = sum(stored.void == reason for stored in voided)
        found.append(f"{count} launches do not count: {reason}")
    for label, by_arm in facts.items():
        for arm, several in by_arm.items():
            changed = typical(several)[1]
            if changed:
                found.append(f"{label}, {arm}: changed between launches: {', '.join(changed)}")
    return found


def _states(plan: Plan, points: Sequence[Point]) -> list[str]:
    """Return what to say of benchmarks in which the launches of an arm fall into two states."""
    told: dict[str, list[str]] = {}
    for selection in plan.study.benchmarks:
        found: dict[str, TwoStates | None] = {}
        for arm in plan.study.arms:
            mine = [p for p in points if (p.benchmark, p.arm) == (selection.label, arm.name)]
            found[arm.name] = two_states([p.level for p in mine if p.block and p.level])
        seen = {arm: states for arm, states in found.items() if states}
        if seen:
            counts = ", ".join(f"{arm} {s.higher} of {s.launches}" for arm, s in seen.items())
            apart = max(states.apart for states in seen.values())
            meaning = _what_states_mean(list(found.values()))
            told.setdefault(meaning, []).append(
                f"{selection.label} {apart:.3g} times apart ({counts} in the higher)"
            )
    return [
        f"launches fell into two states: {'; '.join(benchmarks)}. {meaning}"
        for meaning, benchmarks in told.items()
    ]


def _what_states_mean(found: Sequence[TwoStates | None]) -> str:
    reference, *others = found
    alike = reference is not None and all(
        other is not None and shares_differ(reference, other) >= 0.05 for other in others
    )
    if alike:
        return (
            "All arms alike, so it is the machine: the ratio compares neighbours and stands, the"
            " absolute figures depend on the state"
        )
    return "Not all arms alike: how often an arm is in which state may be what differs"
