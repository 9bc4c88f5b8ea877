"""One question, several sites: the ratio that their studies have together, and how they scatter."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from paribus.audit.audit import Question, audit
from paribus.audit.classes import classify
from paribus.audit.values import text_of
from paribus.border import is_directory
from paribus.core import (
    Arm,
    Comparison,
    Difference,
    Facts,
    Finding,
    Metric,
    Settings,
    Study,
    UserError,
    Verdict,
    Word,
    count,
    usable,
)
from paribus.judge.headlines import margin_of, replay, series_of
from paribus.logs.change import Measured, NotCompared
from paribus.logs.logs import arms_of
from paribus.logs.pooling import FEWEST, Pooled, pool, standard_error
from paribus.logs.studies import (
    NOT_COMPARABLE,
    check_apart,
    in_both,
    read,
    settings_of,
)
from paribus.stats.verdict import judge
from paribus.words.values import reason_of

LEVEL = 0.95
LEAST_ERROR = 1e-6
"""Of a program that gives the same figure each time: a weight has a bound."""

SCATTERED = 0.05
"""The chance below which the sites count as scattering more than their own errors explain."""

LOCAL = ("arm.hosts", "arm.nodes", "arm.scheduler", "arm.adapter", "arm.build")
"""What the same arm may have otherwise at another site: where it is measured."""

GIVE = f"give at least {FEWEST} study directories, or files of `paribus pack`, of one question"


@dataclass(frozen=True, slots=True)
class Site:
    """What one site says of a row: arm / reference, with 95 %, its standard error and weight."""

    name: str
    comparison: Comparison
    error: float
    weight: float


@dataclass(frozen=True, slots=True)
class Row:
    """One benchmark and arm over all sites; `pooled` is None with too few of them.

    `comparison` and `another` are arm / reference: of the sites together, and the range for another
    site. Where the sites scatter, those above the widest gap between them are `apart`, and `facts`
    are what is otherwise there, the likeliest first.
    """

    benchmark: str
    arm: str
    metric: Metric
    margin: float
    sites: tuple[Site, ...]
    left: Mapping[str, str]
    pooled: Pooled | None = None
    comparison: Comparison | None = None
    another: tuple[float, float] | None = None
    verdict: Verdict | None = None
    apart: tuple[str, ...] = ()
    facts: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """Studies of one question from several sites, and what they say together.

    `not_pooled` names the benchmarks that not all sites have, or not alike.
    """

    sites: tuple[Measured, ...]
    rows: tuple[Row, ...]
    not_pooled: tuple[str, ...]


def pool_of(paths: Sequence[Path]) -> Pool:
    """Return what studies say together: directories, or files of `paribus pack`.

    Raises UserError for fewer than three, one given twice, and studies of different questions.
    """
    if len(paths) < FEWEST:
        many = count(len(paths), "site")
        raise UserError(f"{many}: too few to pool", place="paribus pool", fix=GIVE)
    with ExitStack() as stack:
        folders = [_opened(path, stack) for path in paths]
        sites = tuple(
            read(name, folder) for name, folder in zip(arms_of(paths), folders, strict=True)
        )
    first, *others = sites
    labels, left = list(first.plan.metrics), dict[str, None]()
    for number, other in enumerate(others, 1):
        for one in sites[:number]:
            check_apart(one, other)
        mine, apart = _shared(first, other)
        labels = [label for label in labels if label in mine]
        left |= dict.fromkeys(one.text for one in apart)
    if not labels:
        why = f"no benchmark is at all sites: {'; '.join(left)}"
        raise UserError(f"{NOT_COMPARABLE}: {why}", place="paribus pool", fix=GIVE)
    arms = [one.name for one in first.plan.study.arms[1:]]
    rows = (_row(sites, label, arm) for label in labels for arm in arms)
    return Pool(sites, tuple(rows), tuple(left))


def _opened(path: Path, stack: ExitStack) -> Path:
    """Return the directory of a study, unpacked until the `stack` ends where it is a file."""
    if is_directory(path):
        return path
    from paribus.store.pack import unpack

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paribus-pool-")))
    unpack(path, folder / "study")
    return folder / "study"


def _shared(first: Measured, other: Measured) -> tuple[list[str], list[NotCompared]]:
    """Return the benchmarks of both studies, and what of others differs.

    Raises UserError unless both compare the same arms, which differ in the same way.
    """
    both, labels, left = in_both(first, other)
    reference, *arms = [one.name for one in first.plan.study.arms]
    why = [
        f"{key} of {arm} against {reference} is not the same"
        for arm in arms
        for key in _differing(first, other, reference, arm)
    ]
    if len(both) < max(len(arms), len(other.plan.study.arms) - 1):
        why += [one.text for one in left]
    if why:
        place = f"{first.name} and {other.name}"
        raise UserError(f"{NOT_COMPARABLE}: {'; '.join(why)}", place=place, fix=GIVE)
    return labels, left


def _differing(first: Measured, other: Measured, reference: str, arm: str) -> list[str]:
    """Return the keys by which an arm differs from the reference in one study in another way."""
    ways = []
    for study in (first, other):
        ours, theirs = (settings_of(study, name) for name in (reference, arm))
        ways.append(
            {
                key: (ours.get(key, ("",))[0], theirs.get(key, ("",))[0])
                for key in ours.keys() | theirs.keys()
                if not key.startswith(LOCAL) and ours.get(key) != theirs.get(key)
            }
        )
    return sorted(
        key
        for key in ways[0].keys() | ways[1].keys()
        if ways[0].get(key) != ways[1].get(key) and not _are_paths(ways[0].get(key))
    )


def _are_paths(values: tuple[object, ...] | None) -> bool:
    """Return whether values say where something lies: that is another at each site."""
    return values is not None and all(isinstance(v, str) and os.sep in v for v in values if v)


# --- one benchmark and arm -------------------------------------------------------------------


def _row(sites: Sequence[Measured], label: str, arm: str) -> Row:
    first = sites[0]
    metric = first.plan.metrics[label][0]
    margin = margin_of(first.plan, first.evidence, label, metric)
    known, left = [], {}
    for one in sites:
        finding = next(f for f in one.judgement.headlines if (f.benchmark, f.arm) == (label, arm))
        if (said := usable(finding)) is None:
            left[one.name] = f"{finding.verdict.word.value}: {reason_of(finding.verdict)}"
            continue
        log = math.log(said.ratio)
        known.append((one, log, error_of(one, finding, log)))
    row = Row(label, arm, metric, margin, (), left)
    if len(known) < FEWEST:
        return row
    found = pool([log for _, log, _ in known], [error for *_, error in known])
    comparison = _comparison(len(known), found.log_ratio, found.low, found.high)
    apart, facts = _dividing(first, known, found)
    return replace(
        row,
        sites=tuple(
            Site(one.name, _comparison(1, log, log - 1.96 * e, log + 1.96 * e), e, weight)
            for (one, log, e), weight in zip(known, found.weights, strict=True)
        ),
        pooled=found,
        comparison=comparison,
        another=found.another and (math.exp(found.another[0]), math.exp(found.another[1])),
        verdict=judge(comparison, better=metric.better, margin=margin, last=True),
        apart=apart,
        facts=facts,
    )


def _comparison(sites: int, log: float, low: float, high: float) -> Comparison:
    return Comparison(sites, math.exp(log), math.exp(low), math.exp(high), LEVEL)


def error_of(one: Measured, finding: Finding, log: float) -> float:
    """Return the standard error of a site's log ratio, as its plan lets a study end.

    A study that was ended before it was decided, such as by its budget, has the blocks that it has.
    """
    series = series_of(one.plan, one.evidence, finding.benchmark, finding.arm, finding.metric)
    finite = [value for value in series.values if math.isfinite(value)]

    def estimated(drawn: Sequence[float]) -> float:
        again = replace(series, ratios=dict(enumerate(drawn, 1)), cut={finding.arm: ()}, logs=None)
        _, history = replay(again, over=True)
        return math.log(history[-1].ratio)

    decided = finding.verdict.word is not Word.UNDECIDED and series.at
    most = series.at[-1] if decided else len(finite)
    seed = one.plan.study.settings.seed or 0
    return max(LEAST_ERROR, standard_error(finite, log, most, estimated, seed))


# --- what divides the sites ------------------------------------------------------------------


def _dividing(
    first: Measured, known: Sequence[tuple[Measured, float, float]], found: Pooled
) -> tuple[tuple[str, ...], tuple[Difference, ...]]:
    """Return the sites beyond the widest gap, and the facts that have other values there.

    Only where the sites scatter. None of these facts is an explanation: the fewer the sites, the
    more facts divide them by chance.
    """
    if found.scattered > SCATTERED:
        return (), ()
    ordered = sorted(known, key=lambda one: one[1])
    cut = max(range(1, len(ordered)), key=lambda n: ordered[n][1] - ordered[n - 1][1])
    below, above = (
        {
            f"{one.name} {name}": facts
            for one, *_ in side
            for name, facts in one.nodes.get(one.judgement.reference, {}).items()
        }
        for side in (ordered[:cut], ordered[cut:])
    )
    apart = tuple(one.name for one, *_ in ordered[cut:])
    if not below or not above:
        return apart, ()
    study = Study("", "nothing", (Arm("sites"),), first.plan.study.benchmarks, Settings())
    layers = list(first.plan.layers.values())
    differing = audit(below, above, Question(study, "sites", layers)).differences
    facts = [one for one in differing if one.kind != "unknown" and _divides(one.key, below, above)]
    return apart, tuple(sorted(facts, key=lambda one: -one.rank))


def _divides(key: str, below: Mapping[str, Facts], above: Mapping[str, Facts]) -> bool:
    """Return whether no site on one side has a value of the other, for a fact that lasts."""
    if classify(key).kind == "volatile":
        return False
    one, other = ({text_of(facts, key) for facts in side.values()} for side in (below, above))
    return not one & other
