"""What else a reader of the figures must know: named findings on the data of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paribus.judge.evidence import Evidence
from paribus.judge.headlines import given_up, pooled_ratios
from paribus.judge.sessions import sessions
from paribus.judgement import Notice, Point
from paribus.model import State
from paribus.plan import Plan
from paribus.stats.betting import confidence_sequence
from paribus.stats.censoring import MOST_CENSORED, censored_share
from paribus.stats.drift import drift
from paribus.stats.order import bias, order_effect
from paribus.stats.probes import arms_differ
from paribus.stats.states import StateRatios, ratio_per_state
from paribus.store import Stored
from paribus.units import count, format_seconds

STEP = "launch.clock_step_s"
"""The fact of a launch before or during which somebody set the clock: by how many seconds."""

NOTABLE_INTERFERENCE = 0.001
"""Share of a launch's samples beyond five times the median from which it is worth a word."""

ORDER_ERROR = 0.05
"""Share of benchmarks in which chance finds an order effect, all arms together."""


def notices(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> tuple[Notice, ...]:
    """Return the notices of a study, those that change how its verdicts are read first."""
    found = [
        *_given_up(plan, evidence),
        *sessions(plan, evidence),
        *_moved(plan, evidence),
        *_cut_off(plan, evidence),
        *_states(plan, points),
        *_probes(plan, evidence),
        *_order(plan, evidence, points),
        *_drift(plan, points),
        *_flagged(points),
        *_interference(plan, evidence),
        *_not_checked(evidence),
    ]
    return tuple(sorted(found, key=lambda notice: notice.level != "warning"))


def voided(launches: Sequence[Stored]) -> list[Notice]:
    """Return what to say of launches that do not count, by the reason for it."""
    found = []
    for reason in dict.fromkeys(one.void for one in launches):
        mine = [one for one in launches if one.void == reason]
        blocks = {(one.launch.benchmark, one.launch.block) for one in mine}
        found.append(
            Notice(
                "blocks rerun",
                "note",
                f"{count(len(mine), 'launch')} in {count(len(blocks), 'block')} left out:"
                f" {reason}.",
                tuple(dict.fromkeys(one.launch.benchmark for one in mine)),
                figures={"launches": len(mine), "blocks": len(blocks)},
                names_benchmarks=False,
            )
        )
    return found


def clock_set(steps_s: Sequence[float]) -> list[Notice]:
    """Return what to say of a time of day that was set, by so many seconds, in mid-study."""
    if not steps_s:
        return []
    by = ", ".join(f"{'-' if s < 0 else '+'}{format_seconds(abs(s))}" for s in steps_s)
    return [
        Notice(
            "clock set",
            "warning",
            f"The clock of this machine was set during the study ({by}). Durations and the"
            " order of launches do not depend on it; times of day after it are those of the clock"
            " as it was before.",
            fix="Find what sets the clock, such as a time daemon that steps it.",
            figures={"steps_s": list(steps_s)},
        )
    ]


def changed(facts: Mapping[tuple[str, str], Sequence[str]]) -> list[Notice]:
    """Return what to say of facts that changed between the launches of one arm."""
    return [
        Notice(
            "changed facts",
            "warning",
            f"{label}, {arm}: changed between launches: {', '.join(keys)}.",
            (label,),
            figures={"keys": list(keys)},
        )
        for (label, arm), keys in facts.items()
    ]


def budget(cut_short: Sequence[str]) -> list[Notice]:
    """Return what to say of benchmarks that the time budget, and not the evidence, ended."""
    if not cut_short:
        return []
    return [
        Notice(
            "budget used",
            "note",
            f"The time budget ended {', '.join(cut_short)}; the verdicts of the last look hold.",
            tuple(cut_short),
        )
    ]


def accepted(in_vain: str) -> list[Notice]:
    """Return what to say of accepted keys of which no difference was found."""
    if not in_vain:
        return []
    return [Notice("accepted in vain", "note", f"Accepted, but no difference: {in_vain}.")]


def _given_up(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    for selection in plan.study.benchmarks:
        why = given_up(plan, evidence, selection.label)
        if why:
            yield Notice(
                "given up",
                "warning",
                f"{selection.label} was given up: {why}",
                (selection.label,),
            )


def _moved(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    """Say in a monitored study when no one ratio agrees with all blocks any more."""
    reference = plan.study.arms[0].name
    for label in plan.metrics if plan.study.settings.monitor else ():
        for arm in plan.study.arms[1:]:
            ratios = pooled_ratios(evidence, label, reference, arm.name, plan.metrics[label][0])
            if not ratios:
                continue
            found = confidence_sequence(list(ratios.values()), plan.looks.confidence)
            if found.moved is not None:
                yield Notice(
                    "the ratio moved",
                    "warning",
                    f"{label}, {arm.name}: since about block {list(ratios)[found.moved - 1]} no"
                    " one ratio agrees with all blocks: the effect itself has changed.",
                    (label,),
                    fix="The interval shown is the last one before; watch on in a new directory.",
                    figures={"block": found.moved},
                )


def _cut_off(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    for selection in plan.study.benchmarks:
        label = selection.label
        told = []
        worst = 0.0
        for arm in plan.study.arms:
            cut = len(evidence.cut_off(label, arm.name))
            blocks = sum(block > 0 for block in evidence.blocks.get(label, {}))
            if cut:
                told.append(f"{arm.name} {cut} of {blocks}")
                worst = max(worst, censored_share(cut, blocks))
        if told:
            bites = worst > MOST_CENSORED
            yield Notice(
                "time-outs",
                "warning" if bites else "note",
                f"{label}: the time limit cut off launches ({', '.join(told)}); they count as"
                " slower than all others."
                + (" So many that by how much the arms differ is withheld." if bites else ""),
                (label,),
                fix="Give the benchmark a longer timeout." if bites else "",
                figures={"share": worst},
            )


def _states(plan: Plan, points: Sequence[Point]) -> Iterable[Notice]:
    """Say in which benchmarks the launches of an arm fall into two states.

    Benchmarks of which the same is to be said are told in one notice.
    """
    alike: dict[bool, dict[str, tuple[str, dict[str, Any]]]] = {}
    reference, *others = (arm.name for arm in plan.study.arms)
    for label in plan.metrics:
        values = {
            arm: {
                p.block: p.level
                for p in points
                if (p.benchmark, p.arm) == (label, arm) and p.block and p.level
            }
            for arm in (reference, *others)
        }
        found = {arm: ratio_per_state(values[reference], values[arm]) for arm in others}
        seen = {arm: ratios for arm, ratios in found.items() if ratios is not None}
        if seen:
            same = not any(ratios.shares_differ for ratios in seen.values())
            alike.setdefault(same, {})[label] = _told_states(label, reference, seen)
    for same, several in alike.items():
        yield Notice(
            "two states",
            "warning",
            f"{'; '.join(text for text, _ in several.values())}. "
            + STATES_OF_MACHINE * same
            + STATES_OF_ARM * (not same),
            tuple(several),
            figures={label: figures for label, (_, figures) in several.items()},
        )


STATES_OF_MACHINE = (
    "All arms are affected equally, so the cause is the machine. The ratio compares neighbours and"
    " holds; absolute figures depend on the mode."
)
STATES_OF_ARM = (
    "The arms are affected unequally: the share of launches in each mode may be the real"
    " difference."
)


def _told_states(
    label: str, reference: str, seen: Mapping[str, StateRatios]
) -> tuple[str, dict[str, Any]]:
    """Return what to say of the states of one benchmark, and the figures of each arm."""
    first = next(iter(seen.values())).reference
    counts = [(reference, first), *((arm, ratios.arm) for arm, ratios in seen.items())]
    apart = max(states.apart for _, states in counts)
    shares = ", ".join(
        f"{states.higher} of {states.launches} launches on {arm}" for arm, states in counts
    )
    text = f"{label} is bimodal (modes {apart:.3g}x apart; upper mode: {shares}"
    for arm, ratios in seen.items():
        both = [(ratios.lower, "lower"), (ratios.higher, "upper")]
        known = [f"{ratio:.3f} in the {state} mode" for ratio, state in both if ratio is not None]
        if len(known) == 2:
            text += f"; {arm} / {reference} {', '.join(known)}"
    figures: dict[str, Any] = {
        arm: {"apart": states.apart, "higher": states.higher, "launches": states.launches}
        for arm, states in counts
    }
    return f"{text})", figures


def _probes(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    """Say in which figures of the state probe an arm differs from the reference."""
    reference = plan.study.arms[0].name
    for found in arms_differ(evidence.probes or (), reference):
        if found.kind == "level":
            text = (
                f"The state probe differs: {found.figure} of {found.arm} is"
                f" {found.ratio:.3f}x that of {reference} in the same block"
                f" ({found.low:.3f} to {found.high:.3f})."
            )
        else:
            text = (
                f"The machine was not in the same state as often: by {found.figure}, {found.arm}"
                f" alone was in the higher state in {found.only_arm} blocks, {reference} alone in"
                f" {found.only_reference} (p = {found.p:.2g})."
            )
        yield Notice(
            "state probe",
            "warning",
            text,
            fix="What the probe measures is not part of any benchmark: look at the cores,"
            " frequencies and neighbours that this arm gets.",
            figures={"figure": found.figure, "arm": found.arm, "ratio": found.ratio, "p": found.p},
        )


def _order(plan: Plan, evidence: Evidence, points: Sequence[Point]) -> Iterable[Notice]:
    """Say in which benchmarks a launch fares differently after the other of its block.

    Every arm is held against the reference, at an error that they share. The arms of a duet have
    no order.
    """
    if plan.study.settings.layout == "duet":
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
                if math.isfinite(ratio)
            }
            first = [ratios[block] for block, after in apart.items() if after < 0]
            second = [ratios[block] for block, after in apart.items() if after > 0]
            effect = order_effect(first, second, confidence)
            if effect is None or not effect.found:
                continue
            moved = bias(effect, first, second)
            much = f"by {moved:+.2%}" if abs(moved) >= 5e-5 else "by less than 0.01 %"
            yield Notice(
                "order effect",
                "warning",
                f"{label}: of {reference} and {arm}, the one launched after the other gives"
                f" {effect.ratio:.4f} times ({effect.low:.4f} to {effect.high:.4f}) what it gives"
                f" before it. {arm} came first in {len(first)} of {effect.blocks} blocks, which"
                f" moves the ratio {much}.",
                (label,),
                fix="A pause or a warm-up command between launches (`before`) helps.",
                figures={"arm": arm, "ratio": effect.ratio, "bias": moved},
            )


def _drift(plan: Plan, points: Sequence[Point]) -> Iterable[Notice]:
    """Say how the machine drifted: what the pairs had to cancel."""
    for selection in plan.study.benchmarks:
        mine = [p for p in points if p.benchmark == selection.label and p.block and p.level]
        reference = plan.study.arms[0].name
        found = drift([p.level for p in mine if p.arm == reference and p.level])
        if found is None or not found.drifting:
            continue
        near, far = found.lags[0], found.lags[-1]
        yield Notice(
            "drift",
            "note",
            f"{selection.label}: launches of {reference} drift (rank autocorrelation"
            f" {found.lag1:.2f}): neighbours differ by {near[1]:.1%}, launches {far[0]} apart by"
            f" {far[1]:.1%}. Pairs cancel it; launches of one arm in a row would not.",
            (selection.label,),
            figures={"lag1": found.lag1, "lag5": found.lag5, "lags": [list(x) for x in found.lags]},
        )


def _flagged(points: Sequence[Point]) -> Iterable[Notice]:
    """Say which launches are unusual, by what they measured or by what disturbed them."""
    outlying = [point for point in points if point.outlying is not None]
    disturbed = [point for point in points if point.disturbed]
    if outlying:
        text = _told_flags(outlying, "far from the others of the same arm")
        labels = tuple(dict.fromkeys(point.benchmark for point in outlying))
        numbers = {"numbers": [point.number for point in outlying]}
        yield Notice("outlying launches", "note", text, labels, figures=numbers)
    if disturbed:
        text = _told_flags(disturbed, "outside the noise gate")
        labels = tuple(dict.fromkeys(point.benchmark for point in disturbed))
        numbers = {"numbers": [point.number for point in disturbed]}
        yield Notice("disturbed launches", "note", text, labels, figures=numbers)


def _told_flags(points: Sequence[Point], what: str) -> str:
    first = points[0]
    return (
        f"{count(len(points), 'launch')} {what}, counted all the same. First: launch"
        f" {first.number} ({first.benchmark}, {first.arm}): {first.flag}; what it printed is in"
        f" logs/{first.number:04d}-*."
    )


def _interference(plan: Plan, evidence: Evidence) -> Iterable[Notice]:
    shares: dict[str, float] = {}
    for selection in plan.study.benchmarks:
        good = [e for e in evidence.entries(selection.label) if e.state is State.OK]
        worst = max((entry.interference for entry in good), default=0.0)
        if worst > NOTABLE_INTERFERENCE:
            shares[selection.label] = worst
    if shares:
        told = ", ".join(f"{label} {share:.1%}" for label, share in shares.items())
        yield Notice(
            "interference",
            "note",
            "Single samples took over five times their launch's median; the most in one launch:"
            f" {told}. Medians absorb that, p99 shows it.",
            tuple(shares),
            figures=shares,
        )


def _not_checked(evidence: Evidence) -> Iterable[Notice]:
    """Say what was not looked at, because nothing was recorded that could show it."""
    unknown = ["launches that failed"] if evidence.failed is None else []
    unknown += ["the state probe"] if evidence.probes is None else []
    if unknown:
        yield Notice(
            "not checked",
            "note",
            f"Nothing is known of {' and '.join(unknown)}: what they would show is not said here.",
            figures={"unknown": unknown},
        )
