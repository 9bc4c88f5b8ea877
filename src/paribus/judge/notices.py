"""What else a reader of the figures must know: named findings on the data of a study."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from paribus.audit.values import ERROR
from paribus.border import KEPT, KEPT_BYTES, LEFT_OUT, UNREAD_BYTES
from paribus.core import Case, Cause, Facts, Finding, Notice, NoticeName, Point, Reason, State, Word
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import given_up, pooled_ratios
from paribus.plan import Plan
from paribus.probes.values import parts_of_cores, placed
from paribus.stats.drift import drift
from paribus.stats.order import bias, order_effect
from paribus.stats.probes import arms_differ, switching
from paribus.stats.reliability import censored_share
from paribus.stats.states import StateRatios, TwoStates, higher_sides, ratio_per_state
from paribus.stats.ties import ties
from paribus.stats.verdict import judge
from paribus.store import Stored
from paribus.store.damage import Lost
from paribus.words import lists

ORDER_ERROR = 0.05
"""Share of benchmarks in which chance finds an order effect, all arms together."""

FEWEST_OTHERWISE = 2
"""Blocks of the rarer order below which the order's effect cannot be separated from the arm's."""


def order_effects(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Say in which benchmarks a launch fares differently after the other of its block.

    Every arm is compared with the reference, at an error that they share. Arms that are launched at
    once have no order, and those of a shuffled block others between them.
    """
    if plan.design.at_once:
        return
    reference, *others = (arm.name for arm in plan.study.arms)
    confidence = 1 - ORDER_ERROR / len(others)
    for label in plan.metrics:
        at = {(p.block, p.arm): p.at_s for p in points if p.benchmark == label and p.block}
        for arm in others:
            ratios = pooled_ratios(evidence, label, reference, arm, plan.metrics[label][0])
            apart = {
                block: at[(block, arm)] - at[(block, reference)]
                for block, ratio in ratios.items()
                if math.isfinite(ratio) and not plan.shuffled(block)
            }
            first = [ratios[block] for block, after in apart.items() if after < 0]
            second = [ratios[block] for block, after in apart.items() if after > 0]
            effect = order_effect(first, second, confidence)
            if effect is None or not effect.found:
                continue
            moved = bias(effect, first, second)
            figures = {
                "arm": arm,
                "reference": reference,
                "ratio": effect.ratio,
                "low": effect.low,
                "high": effect.high,
                "bias": moved,
                "first": len(first),
                "blocks": effect.blocks,
            }
            yield Notice(NoticeName.ORDER_EFFECT, "warning", (label,), figures)


def one_sided(
    plan: Plan,
    evidence: Evidence,
    points: Sequence[Point],
    headlines: Sequence[Finding],
    withheld: Container[Finding],
) -> Iterable[Notice]:
    """Say which verdicts rest on blocks in which one arm came first in all, or in all but one."""
    if plan.design.at_once:
        return
    reference = plan.study.arms[0].name
    for head in headlines:
        said = head.verdict.word in (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
        if not said or head.comparison is None or head in withheld:
            continue
        label, arm = head.benchmark, head.arm
        ratios = pooled_ratios(evidence, label, reference, arm, head.metric)
        blocks = plan.design.stands_on(sorted(ratios), head.comparison)
        at = {(p.block, p.arm): p.at_s for p in points if p.benchmark == label}
        apart = [at[block, arm] - at[block, reference] for block in blocks]
        first = sum(after < 0 for after in apart)
        if any(map(plan.shuffled, blocks)) or not all(apart):
            continue  # of launches that are shuffled, or of one time, none comes second
        if min(first, len(blocks) - first) < FEWEST_OTHERWISE:
            figures = {"arm": arm, "reference": reference, "first": first, "blocks": len(blocks)}
            yield Notice(NoticeName.ORDER_ONE_SIDED, "warning", (label,), figures)


ByBlock = Mapping[str, Mapping[str, Mapping[int, Any]]]
"""Something of launches by benchmark, arm (the reference first) and block."""


def modes(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Say in which benchmarks of a study launches fall into two modes, and what switches them."""
    levels: dict[str, dict[str, dict[int, float]]] = {
        label: {one.name: {} for one in plan.design.stages()} for label in plan.metrics
    }
    probes: dict[str, dict[str, dict[int, Mapping[str, float]]]] = {
        label: {one.name: {} for one in plan.design.stages()} for label in plan.metrics
    }
    seen = {e.launch.number: e.probe for label in plan.metrics for e in evidence.entries(label)}
    for p in points:
        if p.block and p.level:
            levels[p.benchmark][p.arm][p.block] = p.level
            probes[p.benchmark][p.arm][p.block] = seen[p.number]
    return two_states(levels, probes)


def two_states(
    levels: ByBlock, probes: ByBlock | None = None, *, paired: bool = True
) -> Iterable[Notice]:
    """Say in which benchmarks the launches of an arm fall into two modes.

    Of launches that are not `paired` the numbers of blocks are those of no two arms. Benchmarks of
    which the same holds share one notice.
    """
    alike: dict[Cause | None, dict[str, dict[str, Any]]] = {}
    for label, of_arms in levels.items():
        reference, *others = of_arms
        found = {arm: ratio_per_state(of_arms[reference], of_arms[arm]) for arm in others}
        seen = {arm: ratios for arm, ratios in found.items() if ratios is not None}
        if not seen:
            continue
        figures = _of_states(reference, seen, paired)
        cause = None
        if not any(ratios.shares_differ for ratios in seen.values()):
            cause, probe = _cause(of_arms, (probes or {}).get(label, {}))
            figures[reference] |= {"cause": cause, **probe}
        alike.setdefault(cause, {})[label] = figures
    for several in alike.values():
        yield Notice(NoticeName.TWO_STATES, "warning", tuple(several), several)


def _cause(
    levels: Mapping[str, Mapping[int, float]],
    probes: Mapping[str, Mapping[int, Mapping[str, float]]],
) -> tuple[Cause, dict[str, Any]]:
    """Return what switches the launches of all arms alike, and what the state probe shows of it.

    Arms of one mode say nothing.
    """
    launches = []
    for arm in probes:
        upper = higher_sides([*levels[arm].values()]) or ()
        known = zip(levels[arm], upper, strict=False)
        launches += [(arm, high, probes[arm].get(block, {})) for block, high in known]
    found = switching(launches)
    if found is None:
        return Cause.NO_PROBE, {}
    cause = Cause.MACHINE if found.found else Cause.PROGRAM_OR_UNSEEN
    return cause, {"probe": asdict(found)}


def _of_states(reference: str, seen: Mapping[str, StateRatios], paired: bool) -> dict[str, Any]:
    """Return the figures of the states of one benchmark by arm, the reference first."""
    first = next(iter(seen.values())).reference
    found: dict[str, Any] = {reference: _counts(first) | ({} if paired else {"paired": False})}
    for arm, ratios in seen.items():
        found[arm] = {
            **_counts(ratios.arm),
            "ratio_lower": ratios.lower,
            "ratio_upper": ratios.higher,
            "shares_differ": ratios.shares_differ,
        }
    return found


def _counts(states: TwoStates) -> dict[str, Any]:
    return {"apart": states.apart, "higher": states.higher, "launches": states.launches}


def sharing(plan: Plan, facts: Mapping[str, Mapping[str, Sequence[Facts]]]) -> list[Notice]:
    """Return where ranks share cores: once for benchmarks with as many ranks, cores and arms.

    `facts` are those of the launches by benchmark and arm. It is a warning where only some arms
    have ranks that share cores.
    """
    alike: dict[tuple[int, int, tuple[str, ...]], list[str]] = {}
    for selection in plan.study.benchmarks:
        seen: dict[tuple[int, int], list[str]] = {}
        for arm in plan.study.arms:
            several = facts.get(selection.label, {}).get(arm.name)
            if several and (counts := _shared(several[-1])):
                seen.setdefault(counts, []).append(arm.name)
        for counts, arms in seen.items():
            alike.setdefault((*counts, tuple(arms)), []).append(selection.label)
    found = []
    for (ranks, cores, sharers), labels in alike.items():
        every = len(sharers) == len(plan.study.arms)
        figures = {"ranks": ranks, "cores": cores, "arms": list(sharers), "all": every}
        level: Literal["warning", "note"] = "note" if every else "warning"
        found.append(Notice(NoticeName.SHARED_CORES, level, tuple(labels), figures))
    return found


def _shared(facts: Facts) -> tuple[int, int] | None:
    """Return how many ranks share how many cores in a launch, None where each has its own."""
    where = placed(facts.get("rank.machines"), facts.get("rank.affinity"))
    parts = parts_of_cores(where)
    crowded = [place for place, part in zip(where, parts, strict=True) if part < 1]
    cores = {
        (machine, core)
        for machine, spans in crowded
        for first, last in spans
        for core in range(first, last + 1)
    }
    return (len(crowded), len(cores)) if crowded else None


PREEMPTIONS_S = 1.0
"""Preemptions of a rank per second from which its time off the core was taken; else it slept."""


class Lag:
    """What each host's worst rank lacked of its core, launch by launch: wall over CPU time."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, tuple[str, ...]], list[array[float]]] = {}
        self._labels: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}

    def add(self, one: Stored) -> None:
        """Take in a launch; one that does not count, or whose ranks report nothing, is not."""
        import numpy as np

        facts = one.outcome.facts
        hosts, wall_s = facts.get("rank.hosts"), facts.get("wall_s")
        cpu, switches = facts.get("rank.cpu_s"), facts.get("rank.involuntary")
        lists = [each for each in (hosts, cpu, switches) if isinstance(each, list)]
        good = one.void is None and one.outcome.state is State.OK and wall_s
        if not good or len(lists) < 3 or len(set(map(len, lists))) > 1:
            return
        of_ranks = np.array([cpu, switches], dtype=float)
        if not (np.isfinite(of_ranks).all() and (of_ranks[0] > 0).all()):
            return
        lost = np.log(np.maximum(wall_s / of_ranks[0], 1.0))
        lost[of_ranks[1] / wall_s <= PREEMPTIONS_S] = 0.0
        names = {host: place for place, host in enumerate(dict.fromkeys(lists[0]))}
        worst = np.zeros(len(names))
        np.maximum.at(worst, [names[host] for host in lists[0]], lost)
        key = one.launch.arm, tuple(names)
        self._rows.setdefault(key, []).append(array("f", worst))
        self._labels.setdefault(key, {})[one.launch.benchmark] = None

    def notices(self) -> list[Notice]:
        """Return a warning for each arm, and set of hosts, of which some are slow."""
        found = []
        for (arm, hosts), rows in self._rows.items():
            if len(hosts) < 3:  # of two nothing says which one it is
                continue
            import numpy as np

            from paribus.stats.matrix import lagging

            table = np.array(rows, dtype=np.float64)
            slow = lagging(table)
            usual = np.median(table, axis=0)
            others = np.delete(usual, [one.first for one in slow])
            figures: dict[str, Any] = {
                "arm": arm,
                "launches": len(rows),
                "hosts": len(hosts),
                "share": float(np.exp(-np.median(others))) if len(others) else None,
                "slow": [
                    {"host": hosts[one.first], "share": float(np.exp(-usual[one.first]))}
                    for one in slow
                ],
            }
            if slow:
                labels = tuple(self._labels[arm, hosts])
                found.append(Notice(NoticeName.SLOW_HOSTS, "warning", labels, figures))
        return found


def coarse(
    plan: Plan, evidence: Evidence, cases: Sequence[Finding]
) -> dict[tuple[str, str, str, Case | None], dict[str, Any]]:
    """Return the figures of what is too coarse to judge, by benchmark, arm, metric and case.

    A headline (case None) is too coarse when half of its cases are. Words that would hold even if
    every ratio were off by one step of the values are let stand.
    """
    reference = plan.study.arms[0].name
    found: dict[tuple[str, str, str, Case | None], dict[str, Any]] = {}
    counts: dict[tuple[str, str, str], list[bool]] = {}
    for finding in cases:
        label, arm, metric = finding.benchmark, finding.arm, finding.metric
        if finding.case is None:
            continue
        complete = set(evidence.complete(label, [reference, arm]))
        ours, theirs = (
            evidence.series(label, name, (metric.name, finding.case)) for name in (reference, arm)
        )
        blocks = sorted(ours.keys() & theirs.keys() & complete)
        if len(blocks) < plan.looks.at[0] if plan.looks.at else not blocks:
            continue
        ratios = [math.log(theirs[b] / ours[b]) for b in blocks]
        values = [side[b] for side in (ours, theirs) for b in blocks]
        step = ties(ratios, finding.margin, values)
        coarse = step.too_coarse and not stands(finding, step.quantum)
        of = label, arm, metric.sampled or metric.name
        counts.setdefault(of, []).append(coarse)
        if coarse:
            found[*of, finding.case] = {"share": step.share, "quantum": step.quantum}
    for of, several in counts.items():
        if 2 * sum(several) >= len(several):
            first = next(figures for place, figures in found.items() if place[:3] == of)
            found[*of, None] = first | {"coarse": sum(several), "cases": len(several)}
    return found


def stands(finding: Finding, quantum: float) -> bool:
    """Return whether the word of a case holds even if every ratio is off by a whole quantum."""
    found = finding.comparison
    if found is None or math.isinf(quantum) or found.low <= 0 or math.isinf(found.high):
        return False
    wider = replace(found, low=found.low / (1 + quantum), high=found.high * (1 + quantum))
    verdict = judge(wider, better=finding.metric.better, margin=finding.margin, last=True)
    return verdict.word is finding.verdict.word


def why_withheld(lost: Lost, finding: Finding) -> Reason | None:
    """Return why a verdict cannot rest on what is whole, None if it can.

    Damage takes neighbouring rows, whatever they measured: ratios within blocks lose blocks, and
    gain no bias. What depends on all launches or facts being there is another matter.
    """
    if lost.gathered:
        return Reason.FACTS_LOST
    failing = lost.launches and finding.verdict.word is Word.RELIABILITY
    return Reason.FAILURES_LOST if failing else None


def notices_of_lost(lost: Lost) -> list[Notice]:
    """Return what to say of what is lost: nothing if nothing is."""
    if not lost:
        return []
    figures = {
        "lost": len(lost.launches),
        "whole": lost.whole,
        "launches": sorted({number for number in lost.launches.values() if number is not None}),
        "rows": list(lost.launches),
        "rows_of_unknown": [row for row, number in lost.launches.items() if number is None],
        "facts": list(lost.gathered),
        "unvoided": lost.unvoided,
        "counted": lost.counted,
    }
    return [Notice(NoticeName.LAUNCHES_LOST, "warning", figures=figures)]


STEP = "launch.clock_step_s"
"""The fact of a launch before or during which somebody set the clock: by how many seconds."""

NOTABLE_INTERFERENCE = 0.001
"""Share of a launch's samples beyond five times the median from which a notice says so."""

MOST_DISTURBED = 0.2
"""Share of launches outside the noise gate above which that is a warning: as many blocks are rerun
for it, so beyond it the study could not evade what disturbed it."""

MOST_BUSY = 5
"""Commands that are named as busy beside disturbed launches."""

FEWEST_DISTURBED = 3
"""Disturbed launches below which the share says little."""


def notices(
    plan: Plan,
    evidence: Evidence,
    points: Sequence[Point],
    headlines: Sequence[Finding],
    withheld: Container[Finding] = (),
) -> tuple[Notice, ...]:
    """Return the notices of a study, those that change how its verdicts are read first.

    Of those `headlines` that are `withheld` they give no word either.
    """
    found = [
        *_given_up(plan, evidence),
        *plan.design.notices(plan, evidence),
        *_moved(headlines, withheld),
        *_cut_off(plan, evidence, headlines),
        *modes(plan, evidence, points),
        *_probes(plan, evidence),
        *order_effects(plan, evidence, points),
        *one_sided(plan, evidence, points, headlines, withheld),
        *_drift(plan, points),
        *_outlying(points),
        *_disturbed(plan, evidence, points),
        *_interference(plan, evidence),
        *_not_checked(evidence),
        *_success(plan),
    ]
    return tuple(sorted(found, key=lambda notice: notice.level != "warning"))


def voided(launches: Sequence[Stored]) -> list[Notice]:
    """Return what to say of launches that do not count, by the reason for it."""
    found = []
    for reason in dict.fromkeys(one.void for one in launches):
        mine = [one for one in launches if one.void == reason]
        blocks = {(one.launch.benchmark, one.launch.block) for one in mine}
        labels = tuple(dict.fromkeys(one.launch.benchmark for one in mine))
        figures = {"launches": len(mine), "blocks": len(blocks), "reason": reason}
        found.append(Notice(NoticeName.BLOCKS_RERUN, "note", labels, figures))
    return found


def clock_set(steps_s: Sequence[float]) -> list[Notice]:
    """Return what to say of a time of day that was set, by so many seconds, in mid-study."""
    if not steps_s:
        return []
    return [Notice(NoticeName.CLOCK_SET, "warning", figures={"steps_s": list(steps_s)})]


def shortened(launches: Sequence[Stored]) -> list[Notice]:
    """Return what to say of launches whose logs are not whole, those with as much kept together."""
    of: dict[int, list[Stored]] = {}
    for one in launches:
        if one.outcome.facts.get(LEFT_OUT):
            of.setdefault(int(one.outcome.facts.get(KEPT, KEPT_BYTES)), []).append(one)
    found = []
    for kept, mine in of.items():
        labels = tuple(dict.fromkeys(one.launch.benchmark for one in mine))
        figures = {
            "launches": len(mine),
            "first": mine[0].launch.number,
            "kept_bytes": kept,
            "left_out_bytes": sum(int(one.outcome.facts[LEFT_OUT]) for one in mine),
            "read": kept != UNREAD_BYTES,
        }
        found.append(Notice(NoticeName.LOGS_SHORTENED, "note", labels, figures))
    return found


def changed(facts: Mapping[tuple[str, str], Sequence[str]]) -> list[Notice]:
    """Return what to say of facts that changed between launches: once for arms with the same."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (label, arm), keys in facts.items():
        alike.setdefault((label, tuple(keys)), []).append(arm)
    return [
        Notice(NoticeName.CHANGED_FACTS, "warning", (label,), {"arms": arms, "keys": list(keys)})
        for (label, keys), arms in alike.items()
    ]


def budget(cut_short: Sequence[str]) -> list[Notice]:
    """Return what to say of benchmarks that the time budget, and not the evidence, ended."""
    if not cut_short:
        return []
    return [Notice(NoticeName.BUDGET_USED, "note", tuple(cut_short))]


def silent(nodes: Mapping[str, Mapping[str, Facts]]) -> list[Notice]:
    """Return what to say of arms of which no node gave its facts: nothing of them was compared."""
    unknown = [
        f"the facts of {lists.arm(arm)} ({next(iter(mine.values()))[ERROR]})"
        for arm, mine in nodes.items()
        if mine and all(ERROR in facts for facts in mine.values())
    ]
    return [Notice(NoticeName.NOT_CHECKED, "warning", figures={"unknown": unknown})] * bool(unknown)


def accepted(needless: Sequence[Mapping[str, Any]]) -> list[Notice]:
    """Return what to say of accepted keys of which no difference was found."""
    if not needless:
        return []
    return [Notice(NoticeName.ACCEPTED_WITHOUT_NEED, "note", figures={"keys": list(needless)})]


def _given_up(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    for selection in plan.study.benchmarks:
        failed = given_up(plan, evidence, selection.label)
        if failed:
            figures = {"arm": failed.launch.arm, "error": failed.error}
            yield Notice(NoticeName.GIVEN_UP, "warning", (selection.label,), figures)


def _moved(headlines: Sequence[Finding], withheld: Container[Finding]) -> Iterable[Notice]:
    """Say in a monitored study what the effect was before it changed, and what it is now."""
    for finding in headlines:
        figures, now = finding.verdict.figures, finding.comparison
        before = figures.get("before", ())
        if not before or now is None:
            continue
        since = {
            "first": figures["since"],
            "last": figures["last"],
            "noticed": None,
            "word": finding.verdict.word,
            "ratio": now.ratio,
            "low": now.low,
            "high": now.high,
        }
        effects = [*before, since]
        if finding in withheld:
            effects = [{**one, "word": Word.WITHHELD} for one in effects]
        said = {"arm": finding.arm, "effects": effects}
        yield Notice(NoticeName.RATIO_MOVED, "warning", (finding.benchmark,), said)


def _cut_off(plan: Plan, evidence: Evidence, headlines: Sequence[Finding]) -> Iterable[Notice]:
    """Say how many launches were cut off, and whether that costs a verdict its size.

    A verdict rests on the blocks of its look, which may be fewer than all.
    """
    for selection in plan.study.benchmarks:
        label = selection.label
        blocks = sum(block > 0 for block in evidence.blocks.get(label, {}))
        counts = {arm.name: len(evidence.cut_off(label, arm.name)) for arm in plan.study.arms}
        cut_off = {arm: n for arm, n in counts.items() if n}
        if cut_off:
            worst = max(censored_share(n, blocks) for n in cut_off.values())
            withheld = not all(f.verdict.size_known for f in headlines if f.benchmark == label)
            yield Notice(
                NoticeName.TIME_OUTS,
                "warning" if withheld else "note",
                (label,),
                {"share": worst, "cut_off": cut_off, "blocks": blocks, "size_withheld": withheld},
            )


def _probes(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    """Say in which figures of the state probe an arm differs from the reference."""
    reference = plan.study.arms[0].name
    for found in arms_differ(evidence.probes, reference):
        figures = {**asdict(found), "reference": reference}
        yield Notice(NoticeName.STATE_PROBE, "warning", figures=figures)


def _drift(plan: Plan, points: Sequence[Point]) -> Iterable[Notice]:
    """Say how the machine drifted: what the pairs had to cancel."""
    for selection in plan.study.benchmarks:
        mine = [p for p in points if p.benchmark == selection.label and p.block and p.level]
        reference = plan.study.arms[0].name
        found = drift([p.level for p in mine if p.arm == reference and p.level])
        if found is None or not found.drifting:
            continue
        figures = {
            "reference": reference,
            "lag1": found.lag1,
            "lag5": found.lag5,
            "lags": [list(x) for x in found.lags],
        }
        yield Notice(NoticeName.DRIFT, "note", (selection.label,), figures)


def _outlying(points: Sequence[Point]) -> Iterable[Notice]:
    """Say which launches are unusual by what they measured."""
    outlying = [point for point in points if point.outlying is not None]
    if outlying:
        yield Notice(NoticeName.OUTLYING_LAUNCHES, "note", *_unusual(outlying))


def _disturbed(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Say which launches are outside the noise gate, and what was busy beside them."""
    disturbed = [point for point in points if point.disturbed]
    if not disturbed:
        return
    counted = sum(point.block > 0 for point in points)
    many = len(disturbed) >= FEWEST_DISTURBED and len(disturbed) > MOST_DISTURBED * counted
    numbers = {point.number for point in disturbed}
    busy = Counter(
        command
        for selection in plan.study.benchmarks
        for entry in evidence.entries(selection.label)
        if entry.launch.number in numbers
        for command in dict.fromkeys(entry.busy)
    )
    labels, figures = _unusual(disturbed)
    figures |= {"counted": counted, "busy": dict(busy.most_common(MOST_BUSY)), "many": many}
    level: Literal["warning", "note"] = "warning" if many else "note"
    yield Notice(NoticeName.DISTURBED_LAUNCHES, level, labels, figures)


def _unusual(points: Sequence[Point]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the benchmarks of unusual launches, and their numbers with the first of them."""
    names = ("number", "benchmark", "arm", "block", "outlying", "disturbed")
    figures = {
        "numbers": [point.number for point in points],
        "first": {name: getattr(points[0], name) for name in names},
    }
    return tuple(dict.fromkeys(point.benchmark for point in points)), figures


def _interference(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    shares: dict[str, float] = {}
    for selection in plan.study.benchmarks:
        good = [e for e in evidence.entries(selection.label) if e.state is State.OK]
        worst = max((entry.interference for entry in good), default=0.0)
        if worst > NOTABLE_INTERFERENCE:
            shares[selection.label] = worst
    if shares:
        yield Notice(NoticeName.INTERFERENCE, "note", tuple(shares), shares)


def _not_checked(evidence: Evidence) -> Iterable[Notice]:
    """Say what was not looked at, because nothing was recorded that could show it."""
    if not evidence.recorded:
        unknown = ["launches that failed", "the state probe"]
        yield Notice(NoticeName.NOT_CHECKED, "note", figures={"unknown": unknown})


def _success(plan: Plan) -> Iterable[Notice]:
    """Say of which programs of the user's own no output proves that they succeeded."""
    unproven = [
        one
        for one in plan.study.benchmarks
        if one.file is None and one.benchmark == "command" and not one.parameters.get("success")
    ]
    if unproven:
        by_figure = [one.label for one in unproven if one.parameters.get("regex")]
        labels = tuple(one.label for one in unproven)
        yield Notice(NoticeName.SUCCESS_NOT_CHECKED, "note", labels, {"by_figure": by_figure})
