"""From evidence to findings: headlines of benchmarks, endpoints, layers and pairs of arms.

A headline compares one arm with the reference in one metric: the mean log ratio over the cases of
each block goes into an interval, and that, with the margin, into a verdict, at the plan's looks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from paribus.core import (
    Comparison,
    Difference,
    Direction,
    Finding,
    Judgement,
    Metric,
    Reason,
    Selection,
    Spread,
    State,
    Verdict,
    Word,
    grouped,
)
from paribus.designs.standard import Series
from paribus.judge.evidence import Cell, Entry, Evidence, looks_at
from paribus.plan import Plan
from paribus.stats.estimate import compare
from paribus.stats.family import holm, word_p
from paribus.stats.looks import any_look_p, nominal_level
from paribus.stats.pairs import headline_log_ratios
from paribus.stats.reliability import reliability
from paribus.stats.summary import geometric_mean, spread
from paribus.stats.verdict import case_margin, headline_margin, judge
from paribus.words.study import sentence

Because = tuple[Reason, Mapping[str, Any]]
"""Why a verdict is withheld: the code, and the figures that its sentence is made of."""


def unexplained(differences: Iterable[Difference], arms: Collection[str]) -> Because | None:
    """Return the reason to withhold verdicts on these arms: unexplained differences; else None."""
    keys = sorted({d.key for d in differences if d.kind == "unexplained" and d.arm in arms})
    return (Reason.UNEXPLAINED_DIFFERENCES, {"facts": keys}) if keys else None


def withhold(judgement: Judgement, why: Callable[[Finding], Because | None]) -> Judgement:
    """Return the judgement, every verdict withheld for which `why` returns a reason.

    A verdict without data is not withheld. Whether a verdict is final stays as it was.
    """
    return with_findings(judgement, lambda finding: _withheld(finding, why(finding)))


def with_findings(judgement: Judgement, of: Callable[[Finding], Finding]) -> Judgement:
    """Return the judgement with `of` applied to every finding, and the sentence made anew."""
    heads, others = tuple(map(of, judgement.headlines)), tuple(map(of, judgement.others))
    cases = tuple(map(of, judgement.cases))
    return replace(
        judgement,
        sentence=sentence(heads, others, cases),
        headlines=heads,
        others=others,
        cases=cases,
        layers=tuple(map(of, judgement.layers)),
        endpoints=tuple(map(of, judgement.endpoints)),
        pairs=tuple(map(of, judgement.pairs)),
    )


def _withheld(finding: Finding, because: Because | None) -> Finding:
    if because is None or finding.verdict.word is Word.NO_DATA:
        return finding
    code, figures = because
    verdict = Verdict(Word.WITHHELD, code, finding.verdict.final, figures=figures)
    return replace(finding, verdict=verdict)


def no_data(code: Reason, figures: Mapping[str, Any] | None = None) -> Verdict:
    """Return the verdict of a comparison that has nothing to compare."""
    return Verdict(Word.NO_DATA, code, final=True, figures=figures or {})


def decide(
    plan: Plan,
    at: Sequence[int],
    pooled: Mapping[int, float],
    better: Direction,
    margin: float,
    cut: Mapping[str, Sequence[int]],
    *,
    over: bool,
    logs: Any = None,
) -> tuple[Verdict, Comparison | None]:
    """Return the verdict after the latest look, and its comparison.

    `pooled` are log ratios by block, `at` the looks, `cut` the blocks that a time limit cut off, by
    arm; `over`: no launch will come; `logs` are those of Series.
    """
    series = Series(plan, at, dict(sorted(pooled.items())), better, margin, cut, logs)
    verdict, history = replay(series, over=over)
    return verdict, history[-1] if history else None


def replay(series: Series, *, over: bool) -> tuple[Verdict, list[Comparison]]:
    """Return the verdict, and the comparison at each look (Design.replay); without blocks none."""
    if not series.ratios:
        return no_data(Reason.NO_COMPLETE_BLOCK), []
    return series.plan.design.replay(series, over=over)


COST = Metric("cost", "", "lower")
"""The metric of a layer's headline: the time of its benchmarks, of rates their inverse."""


def headlines(
    plan: Plan, evidence: Evidence, selection: Selection, *, over: bool = False
) -> tuple[Finding, ...]:
    """Return the headline of a benchmark for each arm against the reference.

    A verdict is final from the first look at which it was final; with `over` no further launch
    will come, so what is undecided stays so.
    """
    merit = plan.metrics[selection.label][0]
    return tuple(
        headline(plan, evidence, selection.label, arm.name, merit, over=over)
        for arm in plan.study.arms[1:]
    )


def headline(
    plan: Plan, evidence: Evidence, label: str, arm: str, metric: Metric, *, over: bool = False
) -> Finding:
    """Return the headline of one metric for one arm: mean log ratio over cases, per block."""
    reference = plan.study.arms[0].name
    design, cells = plan.design, evidence.cells_of(label, metric.name)
    series = series_of(plan, evidence, label, arm, metric)
    verdict, history = replay(series, over=over)
    comparison = history[-1] if history else None
    if not cells and evidence.complete(label, [reference, arm]):
        verdict = no_data(Reason.TOO_FEW_SAMPLES, {"endpoint": metric.endpoint})
    unreliable = _reliability(plan, evidence, label, arm, over=over)
    if unreliable is not None:
        unreliable = replace(unreliable, size_known=verdict.size_known)
    blocks = design.stands_on(series.blocks, comparison) if comparison else []
    return Finding(
        benchmark=label,
        arm=arm,
        metric=metric,
        case=None,
        margin=series.margin,
        comparison=comparison,
        verdict=verdict if unreliable is None or _no_speed(verdict, unreliable) else unreliable,
        reference_value=typical_level(evidence, label, reference, cells, blocks),
        arm_value=typical_level(evidence, label, arm, cells, blocks),
        history=design.history(series, history),
    )


def series_of(plan: Plan, evidence: Evidence, label: str, arm: str, metric: Metric) -> Series:
    """Return the log ratios of one metric for one arm, with margin and looks to judge them by."""
    reference = plan.study.arms[0].name
    pooled = pooled_ratios(evidence, label, reference, arm, metric)
    return Series(
        plan,
        looks_at(plan, evidence, [label], len(pooled)),
        dict(sorted(pooled.items())),
        metric.better,
        margin_of(plan, evidence, label, metric),
        cut_off(evidence, [label], (reference, arm)),
        plan.design.logs(evidence, (reference, arm), [(label, metric)]),
    )


def endpoints(
    plan: Plan, evidence: Evidence, label: str, *, over: bool = False
) -> tuple[Finding, ...]:
    """Return the headlines at the endpoints that do not decide.

    An endpoint that some cases lack is left out: a p99 of the few cases with 100 samples would
    stand beside a median of all.
    """
    merit, *others = plan.metrics[label]
    every = len(evidence.cells_of(label, merit.name))
    return tuple(
        replace(headline(plan, evidence, label, arm.name, metric, over=over), history=())
        for metric in others
        if metric.endpoint != merit.endpoint
        and 0 < every == len(evidence.cells_of(label, metric.name))
        for arm in plan.study.arms[1:]
    )


def layers(plan: Plan, evidence: Evidence, *, over: bool = False) -> tuple[Finding, ...]:
    """Return the headline of each layer with two benchmarks or more, for each arm.

    Its ratio is the mean over the benchmarks of the layer, block by block, as times: a rate
    enters as its inverse. It rests on the blocks that all of them have, and delays none of them.
    """
    members = grouped((layer, label) for label, layer in plan.layers.items())
    found = []
    for layer, labels in members.items():
        for arm in plan.study.arms[1:] if layer and len(labels) > 1 else ():
            found.append(_layer(plan, evidence, layer, labels, arm.name, over=over))
    return tuple(found)


def cut_off(
    evidence: Evidence, labels: Iterable[str], arms: Iterable[str]
) -> dict[str, Sequence[int]]:
    """Return the blocks in which the time limit cut any of these benchmarks off, by arm."""
    names = list(labels)
    return {
        arm: sorted({block for label in names for block in evidence.cut_off(label, arm)})
        for arm in arms
    }


def _layer(
    plan: Plan, evidence: Evidence, layer: str, labels: Sequence[str], arm: str, *, over: bool
) -> Finding:
    reference = plan.study.arms[0].name
    series, margins = [], []
    for label in labels:
        metric = plan.metrics[label][0]
        pooled = pooled_ratios(evidence, label, reference, arm, metric)
        sign = 1 if metric.better == "lower" else -1
        series.append({block: sign * ratio for block, ratio in pooled.items()})
        margins.append(margin_of(plan, evidence, label, metric))
    margin = headline_margin(margins)
    pooled = headline_log_ratios(series)
    at = looks_at(plan, evidence, labels, len(pooled))
    of = [(label, plan.metrics[label][0]) for label in labels]
    logs = plan.design.logs(evidence, (reference, arm), of)
    cut = cut_off(evidence, labels, (reference, arm))
    verdict, comparison = decide(plan, at, pooled, COST.better, margin, cut, over=over, logs=logs)
    return Finding(layer, arm, COST, None, margin, comparison, verdict, None, None)


def pairs(plan: Plan, evidence: Evidence, label: str) -> tuple[Finding, ...]:
    """Return each arm against each other, if there are more than two, as a ranking needs them.

    The verdicts hold together at the study's confidence (Holm over the pairs, adjusted for the
    looks). Intervals are at the level of the pair's step, so that each agrees with its word.
    """
    names = [arm.name for arm in plan.study.arms]
    if len(names) < 3 or not (plan.design.has_end and plan.design.ranks):
        return ()
    metric = plan.metrics[label][0]
    margin = margin_of(plan, evidence, label, metric)
    ratios = {
        (one, other): pooled_ratios(evidence, label, one, other, metric)
        for i, one in enumerate(names)
        for other in names[i + 1 :]
    }
    measured = {pair: [*of.values()] for pair, of in ratios.items() if of}
    p = {
        pair: any_look_p(word_p(values, margin), plan.looks.at) for pair, values in measured.items()
    }
    error = 1 - plan.study.settings.confidence
    adjusted = dict(zip(p, holm(list(p.values())), strict=True))
    ranked = sorted(p, key=lambda pair: (adjusted[pair], p[pair]))
    supported = sum(value <= error for value in adjusted.values())
    found = []
    for pair, values in measured.items():
        step = min(ranked.index(pair), supported, len(p) - 1)
        level = 1 - nominal_level(error / (len(p) - step), plan.looks.at)
        comparison = compare(values, level)
        size = plan.design.size_known([*ratios[pair]], cut_off(evidence, [label], pair))
        verdict = judge(comparison, better=metric.better, margin=margin, last=True, size_known=size)
        if adjusted[pair] > error and verdict.word is not Word.UNDECIDED:
            verdict = Verdict(Word.UNDECIDED, Reason.NOT_SUPPORTED_AMONG_PAIRS, final=True)
        finding = Finding(label, pair[1], metric, None, margin, comparison, verdict, None, None)
        found.append(replace(finding, reference=pair[0]))
    return tuple(found)


MOST_IN_A_ROW = 6
"""Failed blocks in a row after which a benchmark is given up: the fewest that are significant if
only one arm failed (McNemar, p = .031)."""


def given_up(plan: Plan, evidence: Evidence, label: str) -> Entry | None:
    """Return the failed launch after which `label` is not launched again, None if it goes on.

    It is given up if the warm-up failed twice, or MOST_IN_A_ROW blocks in a row did. A warm-up
    that the study's own time limit cut off does not count, as launches get faster after it.
    """
    arms = [one.name for one in plan.design.stages()]
    limited = any(s.label == label and s.timeout_s for s in plan.study.benchmarks)
    failed = 0
    for block, entries in sorted(evidence.blocks.get(label, {}).items()):
        bad = [entries[arm] for arm in arms if arm in entries and entries[arm].state != State.OK]
        failed = failed + 1 if bad else 0
        cold = block == 0 and not (limited and all(one.state is State.TIMEOUT for one in bad))
        if bad and (cold or failed == MOST_IN_A_ROW):
            return bad[0]
    return None


def _no_speed(verdict: Verdict, unreliable: Verdict) -> bool:
    """Return whether failures, as frequent in both arms, left no figure that could be withheld."""
    return verdict.word is Word.NO_DATA and unreliable.word is Word.WITHHELD


def pooled_ratios(
    evidence: Evidence, label: str, reference: str, arm: str, metric: Metric
) -> dict[int, float]:
    """Return the mean log ratio over the cells of `metric`, per block that both arms completed."""
    cells = evidence.cells_of(label, metric.name)
    return headline_log_ratios(
        list(log_ratios(evidence, label, reference, arm, metric.better, cells).values())
    )


def log_ratios(
    evidence: Evidence,
    label: str,
    reference: str,
    arm: str,
    better: Direction,
    cells: Sequence[Cell],
) -> dict[Cell, dict[int, float]]:
    """Return the log ratios of each cell over the blocks that both arms completed.

    A launch that the time limit cut off is taken as infinitely slow, so its ratio is inf or -inf.
    """
    complete = set(evidence.complete(label, [reference, arm]))
    slow = float("inf") if better == "lower" else float("-inf")
    limits = dict.fromkeys(evidence.cut_off(label, arm), slow)
    limits |= dict.fromkeys(evidence.cut_off(label, reference), -slow)
    found = {}
    for cell in cells:
        ratios = evidence.log_ratios(label, reference, arm, cell) | limits
        found[cell] = {block: ratios[block] for block in sorted(ratios) if block in complete}
    return found


def margin_of(plan: Plan, evidence: Evidence, label: str, metric: Metric) -> float:
    """Return the margin of a metric's headline: the mean of its cases', on the log scale."""
    cells = evidence.cells_of(label, metric.name)
    margins = [cell_margin(plan, evidence, label, metric, cell) for cell in cells]
    return headline_margin(margins) if margins else metric.margin


def cell_margin(plan: Plan, evidence: Evidence, label: str, metric: Metric, cell: Cell) -> float:
    """Return the margin of a cell: the study's, or that of the metric at its reference value.

    The value is that of the warm-up, which is known before any launch that counts. The study's
    margin is for the endpoint that decides; a p99 beside it keeps its own, wider one.
    """
    beside = metric.endpoint != plan.metrics[label][0].endpoint
    if plan.study.settings.margin is not None and not (beside and metric.endpoint == "p99"):
        return plan.study.settings.margin
    series = evidence.series(label, plan.study.arms[0].name, cell)
    return case_margin(metric, series[min(series)]) if series else metric.margin


def case_spread(
    evidence: Evidence, label: str, arm: str, cell: Cell, blocks: Sequence[int]
) -> Spread | None:
    """Return the spread of a cell over the launches of `blocks`."""
    series = evidence.series(label, arm, cell)
    values = [series[block] for block in blocks if block in series]
    return spread(values) if values else None


def _reliability(
    plan: Plan, evidence: Evidence, label: str, arm: str, *, over: bool
) -> Verdict | None:
    """Return the verdict on failures, None if there are too few to matter.

    Of a block that was rerun the first attempt counts here: the second one gives its speed, and
    must not hide how often launches fail. In a study of sessions, which are not rerun, a session
    counts.
    """
    if not evidence.recorded:
        return None
    names = (plan.study.arms[0].name, arm)
    states: dict[str, dict[int, State]]
    if evidence.session:
        units = evidence.blocks.get(label, {})
        states = {n: {b: of[n].state for b, of in units.items() if n in of} for n in names}
    else:
        first = evidence.first.get(label, {})
        states = {n: {b: state for (b, _), state in first.get(n, {}).items()} for n in names}
    reference, other = states.values()
    attempted = [block for block in reference.keys() & other.keys() if block > 0]
    bad = [[b for b in attempted if of[b] is not State.OK] for of in (reference, other)]
    found = reliability(bad[0], bad[1], len(attempted), last=over)
    if found is None or not evidence.session:
        return found
    return replace(found, figures={**found.figures, "unit": plan.design.unit})


def typical_level(
    evidence: Evidence, label: str, arm: str, cells: Sequence[Cell], blocks: Sequence[int]
) -> Spread | None:
    """Return the spread over launches of the geometric mean over cells."""
    series = [evidence.series(label, arm, cell) for cell in cells]
    values = [
        geometric_mean([one[block] for one in series])
        for block in blocks
        if series and all(block in one for one in series)
    ]
    return spread(values) if values else None
