"""Pool studies of one question from several sites: their common ratio, and how they scatter.

In go study directories, or files of `paribus pack`; out comes a `Pool` with a `Row` for each
benchmark and arm, whose figures pooling.py computes.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

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
    matches,
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
"""The least standard error of a site: a program may give the same figure each time."""

SCATTERED = 0.05
"""The p value up to which sites count as scattering more than their own errors explain."""

LOCAL = ("arm.hosts", "arm.nodes", "arm.scheduler", "arm.adapter", "arm.build")
"""How keys of settings begin that say where an arm is measured: other sites may have others."""

OF_MACHINES = ("machine.", "cpu.", "memory.", "net.", "os.", "storage.")
"""How keys of facts begin that say which machine it is."""

GIVE = f"give at least {FEWEST} study directories, or files of `paribus pack`, of one question"


@dataclass(frozen=True, slots=True)
class Site:
    """One site in a row: arm / reference with its 95 % interval, and the error and weight of it.

    `error` is the standard error of the log ratio, `weight` a share.
    """

    name: str
    comparison: Comparison
    error: float
    weight: float


@dataclass(frozen=True, slots=True)
class Row:
    """One benchmark and arm over all sites.

    `sites`: those that have a figure; `left`: why others have none, by name.
    `pooled`: what the sites say together, None with too few of them. `comparison` and `another` are
    its ratio and the range for another site, as arm / reference.
    `apart`: where the sites scatter, those above the widest gap between them; `facts`: what differs
    between them and the others, the likeliest to matter first.
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

    `not_pooled` names the benchmarks that not all sites have, or not alike; `alike` the sites whose
    machine facts all equal those of an earlier site: they may be one machine.
    """

    sites: tuple[Measured, ...]
    rows: tuple[Row, ...]
    not_pooled: tuple[str, ...]
    alike: tuple[str, ...]


def pool_of(paths: Sequence[Path]) -> Pool:
    """Return what studies, given as directories or files of `paribus pack`, say together.

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
    machines = [_machines(one) for one in sites]
    alike = (one.name for n, one in enumerate(sites) if machines[n] in filter(None, machines[:n]))
    return Pool(sites, tuple(rows), tuple(left), tuple(alike))


def _machines(one: Measured) -> frozenset[tuple[str, str]]:
    """Return the facts by which the machines of the reference are known; none if unread."""
    return frozenset(
        (key, text_of(facts, key))
        for facts in one.nodes.get(one.judgement.reference, {}).values()
        for key in facts
        if matches(key, OF_MACHINES) and classify(key).kind == "identical"
    )


def _opened(path: Path, stack: ExitStack) -> Path:
    """Return the directory of a study; a file is unpacked into one that the `stack` removes."""
    if is_directory(path):
        return path
    from paribus.store.pack import unpack

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="paribus-pool-")))
    unpack(path, folder / "study")
    return folder / "study"


def _shared(first: Measured, other: Measured) -> tuple[list[str], list[NotCompared]]:
    """Return the labels of the benchmarks of both studies, and what is not compared.

    Raises UserError unless both compare the same arms, which differ from the reference in the same
    way.
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
    """Return the keys of settings in which an arm differs from the reference in another way."""
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
    """Return whether values are paths, which are others at each site."""
    return values is not None and all(isinstance(v, str) and os.sep in v for v in values if v)


# --- one benchmark and arm -------------------------------------------------------------------


class _Known(NamedTuple):
    """A study whose log ratio of a row is known, with its standard error."""

    study: Measured
    log: float
    error: float


def _row(sites: Sequence[Measured], label: str, arm: str) -> Row:
    """Return the row of a benchmark and arm; without `pooled` for too few sites with a figure."""
    first = sites[0]
    metric = first.plan.metrics[label][0]
    margin = margin_of(first.plan, first.evidence, label, metric)
    known, left = list[_Known](), dict[str, str]()
    for study in sites:
        finding = next(f for f in study.judgement.headlines if (f.benchmark, f.arm) == (label, arm))
        if site := usable(finding):
            log = math.log(site.ratio)
            known.append(_Known(study, log, error_of(study, finding, log)))
        else:
            left[study.name] = f"{finding.verdict.word.value}: {reason_of(finding.verdict)}"
    row = Row(label, arm, metric, margin, (), left)
    if len(known) < FEWEST:
        return row
    found = pool([one.log for one in known], [one.error for one in known])
    comparison = _comparison(len(known), found.log_ratio, found.low, found.high)
    apart, facts = _dividing(first, known, found)
    return replace(
        row,
        sites=tuple(
            Site(
                study.name,
                _comparison(1, log, log - 1.96 * error, log + 1.96 * error),
                error,
                weight,
            )
            for (study, log, error), weight in zip(known, found.weights, strict=True)
        ),
        pooled=found,
        comparison=comparison,
        another=found.another and (math.exp(found.another[0]), math.exp(found.another[1])),
        verdict=judge(comparison, better=metric.better, margin=margin, last=True),
        apart=apart,
        facts=facts,
    )


def _comparison(sites: int, log: float, low: float, high: float) -> Comparison:
    """Return the comparison of a log ratio with its interval; `sites` stands for its blocks."""
    return Comparison(sites, math.exp(log), math.exp(low), math.exp(high), LEVEL)


def error_of(one: Measured, finding: Finding, log: float) -> float:
    """Return the standard error of a site's log ratio `log`, over the looks of its plan.

    A study that ended undecided, such as by its budget, is simulated with the blocks that it has.
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
    first: Measured, known: Sequence[_Known], found: Pooled
) -> tuple[tuple[str, ...], tuple[Difference, ...]]:
    """Return the names of the sites above the widest gap, and facts with other values there.

    None where the sites do not scatter. None of these facts is an explanation: the fewer the sites,
    the more facts divide them by chance.
    """
    if found.scattered > SCATTERED:
        return (), ()
    ordered = sorted(known, key=lambda one: one.log)
    cut = max(range(1, len(ordered)), key=lambda n: ordered[n].log - ordered[n - 1].log)
    below, above = (
        {
            f"{study.name} {name}": facts
            for study, *_ in side
            for name, facts in study.nodes.get(study.judgement.reference, {}).items()
        }
        for side in (ordered[:cut], ordered[cut:])
    )
    apart = tuple(one.study.name for one in ordered[cut:])
    if not below or not above:
        return apart, ()
    study = Study("", "nothing", (Arm("sites"),), first.plan.study.benchmarks, Settings())
    layers = list(first.plan.layers.values())
    differing = audit(below, above, Question(study, "sites", layers)).differences
    facts = [one for one in differing if one.kind != "unknown" and _divides(one.key, below, above)]
    return apart, tuple(sorted(facts, key=lambda one: -one.rank))


def _divides(key: str, below: Mapping[str, Facts], above: Mapping[str, Facts]) -> bool:
    """Return whether the two sides have no value of a fact in common; a volatile fact never."""
    if classify(key).kind == "volatile":
        return False
    one, other = ({text_of(facts, key) for facts in side.values()} for side in (below, above))
    return not one & other
