"""Pool studies of one question from several sites: their common ratio, and how they scatter.

In go study directories, or files of `paribus pack`; out comes a `Pool` with a `Row` for each
benchmark and arm, whose figures pooling.py computes. It is shown on a terminal, as JSON of schema
paribus.pool/1, and as an HTML page.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
    matches,
    units,
    usable,
)
from paribus.judge.headlines import margin_of, replay, series_of
from paribus.logs.change import Measured, NotCompared
from paribus.logs.logs import arms_of
from paribus.logs.pooling import FEWEST, FEWEST_FOR_RANGE, Pooled, pool, standard_error
from paribus.logs.studies import NOT_COMPARABLE, check_apart, in_both, read, settings_of
from paribus.report import first as one_axis
from paribus.report import tables, wording
from paribus.report.markup import (
    Html,
    document,
    element,
    escape,
    forest_of,
    forest_row,
    join,
    table,
)
from paribus.report.printing import Row as Printed
from paribus.report.printing import heading, item, line, print_rows
from paribus.report.unequal import LIKELY
from paribus.stats.verdict import judge
from paribus.words.lists import listed
from paribus.words.values import reason_of

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "paribus.pool/1"
MOST_FACTS = 5
NOTE = (
    "Each ratio is arm / reference, with 95 %. A site's interval knows at which looks its study"
    " could end; the interval of all sites allows for sites that differ. The weight of a site"
    " follows from its own error and from the scatter between sites."
)

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
        many = units.count(len(paths), "site")
        raise UserError(f"{many}: too few to pool", place="pool", fix=GIVE)
    with ExitStack() as stack:
        folders = [_opened(path, stack) for path in paths]
        sites = tuple(
            read(name, folder) for name, folder in zip(arms_of(paths, GIVE), folders, strict=True)
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
        raise UserError(f"{NOT_COMPARABLE}: {why}", place="pool", fix=GIVE)
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
        for arm, _ in both
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


# --- a terminal ------------------------------------------------------------------------------


def print_pool(pool: Pool, console: Console) -> None:
    """Print a sentence for each benchmark and arm, then the sites, one below the other."""
    first = pool.sites[0]
    for row in pool.rows:
        line(console, sentence(row), style="bold")
    line(console, f"{len(pool.sites)} sites: {first.plan.study.question}", style="dim")
    for one in pool.sites:
        item(console, about(one), name=one.name, indent=0)
    for row in pool.rows:
        heading(console, title(row))
        rows = [
            Printed((name, wording.ratio_text(known), wording.interval_text(known), share))
            for name, known, share in lines(row)
        ]
        if rows:
            head = ("site", "times as slow", "[interval]", "weight")
            print_rows(console, head, rows, right={1, 2, 3}, coloured=(0,))
        for text in notes(row):
            line(console, text)
    for text in _at_the_end(pool):
        line(console, text)
    line(console, NOTE, style="dim")


def _at_the_end(pool: Pool) -> Iterator[str]:
    """Yield what is not pooled, and which sites may be one machine."""
    yield from (f"Not pooled: {text}" for text in pool.not_pooled)
    if pool.alike:
        known = f"{listed(pool.alike, 5)}: the machine of an earlier site, by all that is recorded"
        yield f"{known}. One machine is one site."


def sentence(row: Row) -> str:
    """Return what all sites say of a benchmark, or why they say nothing together."""
    what = f"{row.benchmark}: {row.arm}"
    if row.verdict is None or row.comparison is None:
        return f"{what}: fewer than {FEWEST} sites have a figure; nothing is pooled."
    size = wording.estimate(row.comparison.times(row.metric.better))
    return f"{what} is {row.verdict.word.value} over {len(row.sites)} sites: {size} times as slow."


def title(row: Row) -> str:
    """Return benchmark, arm, metric and margin of a row."""
    better = f"{row.metric.name}, {row.metric.better} is better"
    return f"{row.benchmark}, {row.arm}: {better}, margin {units.percent(row.margin)}"


def about(one: Measured) -> str:
    """Return when a site measured, and the sentence of its own study."""
    began = one.judgement.started
    day = "" if began is None else time.strftime("%Y-%m-%d, ", time.gmtime(began))
    return f"{day}{one.judgement.sentence}"


def lines(row: Row) -> Iterator[tuple[str, Comparison, str]]:
    """Yield for each site, then for all and for another site, its name, times as slow, and weight.

    The weight is a text, "" for all sites.
    """
    better = row.metric.better
    for one in row.sites:
        yield one.name, one.comparison.times(better), units.percent(one.weight)
    if row.comparison is not None:
        yield "all sites", row.comparison.times(better), ""
        if row.another:
            another = Comparison(0, row.comparison.ratio, *row.another, LEVEL)
            yield "another site", another.times(better), ""


def notes(row: Row) -> Iterator[str]:
    """Yield sentences on a row: its scatter, the facts that divide the sites, those left out."""
    for name, why in row.left.items():
        yield f"Left out: {name}, {why}"
    if row.pooled is None:
        return
    between = units.percent(math.expm1(row.pooled.between))
    if row.pooled.scattered > SCATTERED:
        yield "The sites scatter no more than their own errors explain."
    else:
        yield f"The sites scatter by {between} (standard deviation) beyond their own errors."
    if len(row.sites) < FEWEST_FOR_RANGE:
        yield f"From {FEWEST_FOR_RANGE} sites on there is a range for another one."
    if row.facts:
        named = [one.key for one in row.facts[:MOST_FACTS]]
        others = len(row.facts) - len(named)
        more = f", and {units.count(others, 'fact')} more" if others else ""
        yield (
            f"Beyond the widest gap: {listed(row.apart, 5)}. There these facts are otherwise:"
            f" {', '.join(named)}{more}. With {len(row.sites)} sites many facts divide them by"
            " chance: none of this is an explanation."
        )


# --- JSON ------------------------------------------------------------------------------------


def to_json(pool: Pool) -> dict[str, Any]:
    """Return the pool as JSON values; docs/pool-schema.json describes them."""
    study = pool.sites[0].plan.study
    return {
        "schema": SCHEMA,
        "question": study.question,
        "factor": study.factor,
        "reference": study.arms[0].name,
        "level": LEVEL,
        "sites": [
            {
                "name": one.name,
                "plan_sha256": one.judgement.plan_sha256,
                "started": one.judgement.started,
                "sentence": one.judgement.sentence,
            }
            for one in pool.sites
        ],
        "rows": [_row_json(row) for row in pool.rows],
        "not_pooled": list(pool.not_pooled),
        "alike": list(pool.alike),
    }


def _row_json(row: Row) -> dict[str, Any]:
    comparison = row.comparison
    return {
        "benchmark": row.benchmark,
        "arm": row.arm,
        "metric": {"name": row.metric.name, "unit": row.metric.unit, "better": row.metric.better},
        "margin": row.margin,
        "word": row.verdict.word.value if row.verdict else Word.NO_DATA.value,
        "reason": reason_of(row.verdict) if row.verdict else "too few sites",
        "ratio": comparison.ratio if comparison else None,
        "low": comparison.low if comparison else None,
        "high": comparison.high if comparison else None,
        "another_site": list(row.another) if row.another else None,
        "between": row.pooled.between if row.pooled else None,
        "scattered_p": row.pooled.scattered if row.pooled else None,
        "sites": [
            {
                "name": one.name,
                "ratio": one.comparison.ratio,
                "log_error": one.error,
                "weight": one.weight,
            }
            for one in row.sites
        ],
        "left_out": dict(row.left),
        "apart": list(row.apart),
        "dividing_facts": [one.key for one in row.facts],
    }


# --- HTML ------------------------------------------------------------------------------------


def page(pool: Pool) -> str:
    """Return the whole HTML page."""
    study = pool.sites[0].plan.study
    sites = (
        element("div", element("b", escape(one.name)), escape(f" {about(one)}"), kind="line")
        for one in pool.sites
    )
    header = element(
        "header",
        element("p", escape(study.question), kind="question"),
        *_answer(pool),
        *sites,
    )
    left = (element("p", escape(text)) for text in _at_the_end(pool))
    note = element("p", escape(NOTE), kind="small")
    return document(study.question, join(header, *map(_section, pool.rows), *left, note))


def _answer(pool: Pool) -> Iterator[Html]:
    """Yield the answer: a sentence, or a list of them below the number of sites."""
    texts = [escape(sentence(row)) for row in pool.rows]
    yield element("h1", texts[0] if len(texts) == 1 else escape(f"{len(pool.sites)} sites"))
    if len(texts) > 1:
        yield element("ul", *(element("li", one) for one in texts))


def _section(row: Row) -> Html:
    parts = [element("h2", escape(title(row)))]
    shown = list(lines(row))
    if shown and row.verdict:
        scale = one_axis.Scale((row.margin, times) for _, times, _ in shown)
        head = (
            (one_axis.axis(scale), "axis"),
            *((Html(t), "number") for t in ("Times as slow", "Weight")),
        )
        chip = tables.chip(row.verdict.word, reason_of(row.verdict))
        body = [
            forest_row(
                escape(name),
                chip if name == "all sites" else Html(""),
                (one_axis.bar(scale, row.margin, [(times, "open")]), "axis"),
                (tables.ratio_of(times), "number"),
                (Html(share), "number used"),
            )
            for name, times, share in shown
        ]
        caption = f"How many times as slow {row.arm} is at each site, the margin shaded"
        parts.append(forest_of("Site", caption, head, body))
    parts += [element("p", escape(text)) for text in notes(row)]
    if row.facts:
        facts = [
            [escape(t) for t in (d.key, d.reference_value, d.arm_value, LIKELY[d.rank])]
            for d in row.facts
        ]
        head_of = ["Fact", "Other sites", "Beyond the gap", "Weight"]
        parts.append(table(head_of, facts, "Facts that divide the sites", range(4)))
    return element("section", *parts)
