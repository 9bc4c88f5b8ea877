"""Notices: what else a reader of the verdicts must know about the data of a study.

Such as two states of the machine, an order effect, drift, disturbed launches. A Notice has a name
and figures; words/notices.py makes the sentence of it.
"""

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
"""The chance of a false order effect in a benchmark, over all arms together."""

FEWEST_OTHERWISE = 2
"""The fewest blocks of the rarer order that separate an effect of the order from the arm's."""


def order_effects(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Yield a warning for each benchmark whose ratio depends on which arm came first in a block.

    Every arm is compared with the reference, at an error that they share. Arms that are launched at
    once have no order; in a shuffled block other launches stand between the two.
    """
    if plan.design.at_once:
        return
    reference, *others = (arm.name for arm in plan.study.arms)
    confidence = 1 - ORDER_ERROR / len(others)
    for label, (merit, *_) in plan.metrics.items():
        at = {(p.block, p.arm): p.at_s for p in points if p.benchmark == label and p.block}
        for arm in others:
            ratios = pooled_ratios(evidence, label, reference, arm, merit)
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
                "moved": moved if merit.better == "lower" else -moved / (1 + moved),
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
    """Yield a warning for each verdict on blocks in nearly all of which the same arm came first."""
    if plan.design.at_once:
        return
    reference = plan.study.arms[0].name
    for head in headlines:
        claims = head.verdict.word in (Word.FASTER, Word.SLOWER, Word.EQUIVALENT)
        if not claims or head.comparison is None or head in withheld:
            continue
        label, arm = head.benchmark, head.arm
        ratios = pooled_ratios(evidence, label, reference, arm, head.metric)
        blocks = plan.design.stands_on(sorted(ratios), head.comparison)
        at = {(p.block, p.arm): p.at_s for p in points if p.benchmark == label}
        apart = [at[block, arm] - at[block, reference] for block in blocks]
        first = sum(after < 0 for after in apart)
        if any(map(plan.shuffled, blocks)) or not all(apart):
            continue  # launches that are shuffled, or have the same time, have no order
        if min(first, len(blocks) - first) < FEWEST_OTHERWISE:
            figures = {"arm": arm, "reference": reference, "first": first, "blocks": len(blocks)}
            yield Notice(NoticeName.ORDER_ONE_SIDED, "warning", (label,), figures)


ByBlock = Mapping[str, Mapping[str, Mapping[int, Any]]]
"""Values of launches by benchmark, arm (the reference first) and block."""


def modes(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Yield warnings on benchmarks whose launches fall into two modes, and what switches these."""
    levels: dict[str, dict[str, dict[int, float]]] = {
        label: {one.name: {} for one in plan.design.stages()} for label in plan.metrics
    }
    probes: dict[str, dict[str, dict[int, Mapping[str, float]]]] = {
        label: {one.name: {} for one in plan.design.stages()} for label in plan.metrics
    }
    seen = {e.launch.number: e for label in plan.metrics for e in evidence.entries(label)}
    cells = {label: evidence.cells_of(label, of[0].name) for label, of in plan.metrics.items()}
    for p in points:
        if p.block and p.level:
            one, several = seen[p.number], cells[p.benchmark]
            # Figures as they are printed show their steps, and levels do not.
            level = one.medians[several[0]] if len(several) == 1 else p.level
            levels[p.benchmark][p.arm][p.block] = level
            probes[p.benchmark][p.arm][p.block] = one.probe
    return two_states(levels, probes)


def two_states(
    levels: ByBlock, probes: ByBlock | None = None, *, paired: bool = True
) -> Iterable[Notice]:
    """Yield a warning for benchmarks in which the launches of an arm fall into two modes.

    `levels` are levels of launches, `probes` figures of their state probes. If they are not
    `paired`, equal numbers of blocks do not mean the same block. Benchmarks with the same cause
    share one notice.
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
    """Return what switches the launches of all arms alike, and the figures of the state probe.

    Arms whose launches have one mode only are left out.
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
    """Return a notice on ranks that share cores, for benchmarks with equal numbers and arms.

    `facts` are those of the launches by benchmark and arm. It is a warning if ranks share cores in
    some arms only.
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
    """Return how many ranks share a core in a launch, and how many cores; None if none do."""
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
"""With more preemptions a second, a rank was kept from its core; with fewer, it slept itself."""


class Lag:
    """Finds hosts that are slow because other programs take their cores.

    Of each launch and host it notes the log of wall time over CPU time of the host's worst rank.
    """

    def __init__(self) -> None:
        self._rows: dict[tuple[str, tuple[str, ...]], list[array[float]]] = {}
        self._labels: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}

    def add(self, one: Stored) -> None:
        """Add a launch, unless it is void or its ranks report nothing."""
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
            if len(hosts) < 3:  # of two hosts it is unknown which one is slow
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
    """Return figures on values whose steps are too coarse, by benchmark, arm, metric and case.

    A headline (case None) is too coarse if half of its cases are. A case whose word would hold
    even if every ratio were off by one step of the values is not too coarse.
    """
    reference = plan.study.arms[0].name
    found: dict[tuple[str, str, str, Case | None], dict[str, Any]] = {}
    counts: dict[tuple[str, str, str], list[bool]] = {}
    for finding in cases:
        label, arm, metric = finding.benchmark, finding.arm, finding.metric
        if finding.case is None:
            continue
        complete = set(evidence.complete(label, [reference, arm]))
        of_reference, of_arm = (
            evidence.series(label, name, (metric.name, finding.case)) for name in (reference, arm)
        )
        blocks = sorted(of_reference.keys() & of_arm.keys() & complete)
        if len(blocks) < (plan.looks.at[0] if plan.looks.at else 1):
            continue
        ratios = [math.log(of_arm[b] / of_reference[b]) for b in blocks]
        values = [side[b] for side in (of_reference, of_arm) for b in blocks]
        step = ties(ratios, finding.margin, values)
        too_coarse = step.too_coarse and not stands(finding, step.quantum)
        key = label, arm, metric.sampled or metric.name
        counts.setdefault(key, []).append(too_coarse)
        if too_coarse:
            found[*key, finding.case] = {"share": step.share, "quantum": step.quantum}
    for key, cases_coarse in counts.items():
        if 2 * sum(cases_coarse) >= len(cases_coarse):
            first = next(figures for place, figures in found.items() if place[:3] == key)
            found[*key, None] = first | {"coarse": sum(cases_coarse), "cases": len(cases_coarse)}
    return found


def stands(finding: Finding, quantum: float) -> bool:
    """Return whether what a case's interval says holds even if every ratio is off by a quantum.

    The word of the case is no measure: where its family supports none, its interval still decides
    the headline.
    """
    found = finding.comparison
    if found is None or math.isinf(quantum) or found.low <= 0 or math.isinf(found.high):
        return False
    wider = replace(found, low=found.low / (1 + quantum), high=found.high * (1 + quantum))
    better, margin = finding.metric.better, finding.margin
    word, wide = (judge(c, better=better, margin=margin, last=True).word for c in (found, wider))
    return word is wide


def why_withheld(lost: Lost, finding: Finding) -> Reason | None:
    """Return why a verdict cannot rest on the rows that are whole, None if it can.

    Damage hits neighbouring rows, whatever they measured: ratios within blocks lose blocks, and
    gain no bias. The audit needs all facts, though, and a verdict on reliability all launches.
    """
    if lost.gathered:
        return Reason.FACTS_LOST
    failing = lost.launches and finding.verdict.word is Word.RELIABILITY
    return Reason.FAILURES_LOST if failing else None


def notices_of_lost(lost: Lost) -> list[Notice]:
    """Return the warning on lost rows of a damaged database, none if nothing is lost."""
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
"""The share of a launch's samples beyond five times the median that is worth a notice."""

MOST_DISTURBED = 0.2
"""A larger share of launches outside the noise gate is a warning: as many blocks are rerun for it,
so beyond that the study could not evade the disturbance."""

MOST_BUSY = 5
"""The most commands that are named as busy beside disturbed launches."""

FEWEST_DISTURBED = 3
"""The fewest disturbed launches of which the share means anything."""


def notices(
    plan: Plan,
    evidence: Evidence,
    points: Sequence[Point],
    headlines: Sequence[Finding],
    withheld: Container[Finding] = (),
) -> tuple[Notice, ...]:
    """Return the notices of a study, warnings first; they give no word of `withheld` headlines."""
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
    """Return a note on void `launches` for each reason."""
    found = []
    for reason in dict.fromkeys(one.void for one in launches):
        alike = [one for one in launches if one.void == reason]
        blocks = {(one.launch.benchmark, one.launch.block) for one in alike}
        labels = tuple(dict.fromkeys(one.launch.benchmark for one in alike))
        figures = {"launches": len(alike), "blocks": len(blocks), "reason": reason}
        found.append(Notice(NoticeName.BLOCKS_RERUN, "note", labels, figures))
    return found


def clock_set(steps_s: Sequence[float]) -> list[Notice]:
    """Return a warning if the time of day was set during a study, by these seconds."""
    if not steps_s:
        return []
    return [Notice(NoticeName.CLOCK_SET, "warning", figures={"steps_s": list(steps_s)})]


def shortened(launches: Sequence[Stored]) -> list[Notice]:
    """Return a note on launches whose logs were shortened, for each number of kept bytes."""
    by_kept: dict[int, list[Stored]] = {}
    for one in launches:
        if one.outcome.facts.get(LEFT_OUT):
            by_kept.setdefault(int(one.outcome.facts.get(KEPT, KEPT_BYTES)), []).append(one)
    found = []
    for kept, alike in by_kept.items():
        labels = tuple(dict.fromkeys(one.launch.benchmark for one in alike))
        figures = {
            "launches": len(alike),
            "first": alike[0].launch.number,
            "kept_bytes": kept,
            "left_out_bytes": sum(int(one.outcome.facts[LEFT_OUT]) for one in alike),
            "read": kept != UNREAD_BYTES,
        }
        found.append(Notice(NoticeName.LOGS_SHORTENED, "note", labels, figures))
    return found


def changed(facts: Mapping[tuple[str, str], Sequence[str]]) -> list[Notice]:
    """Return a warning on facts that changed between launches; arms with the same keys share it.

    `facts` are keys by benchmark and arm.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (label, arm), keys in facts.items():
        alike.setdefault((label, tuple(keys)), []).append(arm)
    return [
        Notice(NoticeName.CHANGED_FACTS, "warning", (label,), {"arms": arms, "keys": list(keys)})
        for (label, keys), arms in alike.items()
    ]


def budget(cut_short: Sequence[str]) -> list[Notice]:
    """Return a note on benchmarks that the time budget, and not the evidence, ended."""
    if not cut_short:
        return []
    return [Notice(NoticeName.BUDGET_USED, "note", tuple(cut_short))]


def silent(nodes: Mapping[str, Mapping[str, Facts]]) -> list[Notice]:
    """Return a warning on arms of which no node gave its facts, so that none were compared.

    `nodes` are facts by arm and node.
    """
    unknown = [
        f"the facts of {lists.arm(arm)} ({next(iter(its.values()))[ERROR]})"
        for arm, its in nodes.items()
        if its and all(ERROR in facts for facts in its.values())
    ]
    return [Notice(NoticeName.NOT_CHECKED, "warning", figures={"unknown": unknown})] * bool(unknown)


def accepted(needless: Sequence[Mapping[str, Any]]) -> list[Notice]:
    """Return a note on accepted keys of which no difference was found."""
    if not needless:
        return []
    return [Notice(NoticeName.ACCEPTED_WITHOUT_NEED, "note", figures={"keys": list(needless)})]


def _given_up(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    for selection in plan.study.benchmarks:
        failed = given_up(plan, evidence, selection.label)
        if failed:
            figures: dict[str, Any] = {"arm": failed.launch.arm, "error": failed.error}
            if blamed := _blamed(plan, evidence, selection.label):
                figures["with"] = blamed
            yield Notice(NoticeName.GIVEN_UP, "warning", (selection.label,), figures)


def _blamed(plan: Plan, evidence: Evidence, label: str) -> list[str]:
    """Return the changes that all launches that failed have switched together, and no others."""
    entries = [one for block in evidence.blocks[label].values() for one in block.values()]
    on = {one.launch.arm: plan.design.switched(one.launch.arm) for one in entries}
    bad = {one.launch.arm for one in entries if one.state != State.OK}
    shared = set.intersection(*(set(on[arm]) for arm in bad))
    spared = any(shared <= set(on[one.launch.arm]) for one in entries if one.state == State.OK)
    return [] if spared else [name for name in on[min(bad)] if name in shared]


def _moved(headlines: Sequence[Finding], withheld: Container[Finding]) -> Iterable[Notice]:
    """Yield a warning for each effect of a monitored study that has changed, with its values."""
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
        moved = {"arm": finding.arm, "effects": effects}
        yield Notice(NoticeName.RATIO_MOVED, "warning", (finding.benchmark,), moved)


def _cut_off(plan: Plan, evidence: Evidence, headlines: Sequence[Finding]) -> Iterable[Notice]:
    """Yield a notice on launches that were cut off: a warning if a verdict has no size for that.

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
    """Yield a warning for each figure of the state probe in which an arm differs."""
    reference = plan.study.arms[0].name
    for found in arms_differ(evidence.probes, reference):
        figures = {**asdict(found), "reference": reference}
        yield Notice(NoticeName.STATE_PROBE, "warning", figures=figures)


def _drift(plan: Plan, points: Sequence[Point]) -> Iterable[Notice]:
    """Yield a note for each benchmark whose reference drifted, which the pairs had to cancel."""
    reference = plan.study.arms[0].name
    for selection in plan.study.benchmarks:
        counted = [p for p in points if p.benchmark == selection.label and p.block]
        found = drift([p.level for p in counted if p.arm == reference and p.level])
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
    """Yield a note on launches whose figures lie far from the others."""
    outlying = [point for point in points if point.outlying is not None]
    if outlying:
        yield Notice(NoticeName.OUTLYING_LAUNCHES, "note", *_unusual(outlying))


def _disturbed(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Yield a notice on launches outside the noise gate, with the programs beside them."""
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
    """Yield a note on what could not be checked in figures from elsewhere."""
    if not evidence.recorded:
        unknown = ["launches that failed", "the state probe"]
        yield Notice(NoticeName.NOT_CHECKED, "note", figures={"unknown": unknown})


def _success(plan: Plan) -> Iterable[Notice]:
    """Yield a note on the user's own programs whose success no output proves."""
    unproven = [
        one
        for one in plan.study.benchmarks
        if one.file is None and one.benchmark == "command" and not one.parameters.get("success")
    ]
    if unproven:
        by_figure = [one.label for one in unproven if one.parameters.get("regex")]
        labels = tuple(one.label for one in unproven)
        yield Notice(NoticeName.SUCCESS_NOT_CHECKED, "note", labels, {"by_figure": by_figure})
