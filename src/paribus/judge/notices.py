"""What else a reader of the figures must know: named findings on the data of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from paribus.audit.values import ERROR
from paribus.benchmarks import command
from paribus.border import KEPT_BYTES, LEFT_OUT
from paribus.core import Facts, Finding, Notice, NoticeName, Point, State, Word
from paribus.judge.evidence import Evidence
from paribus.judge.headlines import given_up
from paribus.judge.modes import modes
from paribus.judge.order import one_sided, order_effects
from paribus.plan import Plan
from paribus.stats.censoring import censored_share
from paribus.stats.drift import drift
from paribus.stats.probes import arms_differ
from paribus.store import Stored
from paribus.words import lists

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
    """Return what to say of launches whose logs are not whole."""
    mine = [one for one in launches if one.outcome.facts.get(LEFT_OUT)]
    if not mine:
        return []
    labels = tuple(dict.fromkeys(one.launch.benchmark for one in mine))
    figures = {
        "launches": len(mine),
        "first": mine[0].launch.number,
        "kept_bytes": KEPT_BYTES,
        "left_out_bytes": sum(int(one.outcome.facts[LEFT_OUT]) for one in mine),
    }
    return [Notice(NoticeName.LOGS_SHORTENED, "note", labels, figures)]


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
    for found in arms_differ(evidence.probes or (), reference):
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
    unknown = ["launches that failed"] if evidence.first is None else []
    unknown += ["the state probe"] if evidence.probes is None else []
    if unknown:
        yield Notice(NoticeName.NOT_CHECKED, "note", figures={"unknown": unknown})


def _success(plan: Plan) -> Iterable[Notice]:
    """Say of which programs of the user's own no output proves that they succeeded."""
    unproven = [
        one
        for one in plan.study.benchmarks
        if one.file is None and one.benchmark == command.NAME and not one.parameters.get("success")
    ]
    if unproven:
        by_figure = [one.label for one in unproven if one.parameters.get("regex")]
        labels = tuple(one.label for one in unproven)
        yield Notice(NoticeName.SUCCESS_NOT_CHECKED, "note", labels, {"by_figure": by_figure})
