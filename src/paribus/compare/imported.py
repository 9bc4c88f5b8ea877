"""The judgement of numbers from elsewhere, as far as their design allows."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paribus import __version__
from paribus.benchmarks import BENCHMARKS
from paribus.compare import provenance
from paribus.compare.gridded import Grid, GriddedEvidence
from paribus.errors import UserError
from paribus.judge.conclude import judgement_of
from paribus.judge.withhold import Because, withhold
from paribus.judgement import Comparison, Finding, Judgement, Notice, Spread, Verdict, Word
from paribus.model import NO_FACTOR, Arm, Direction, Metric, Selection, Settings, Study
from paribus.plan import Plan
from paribus.reasons import NoticeName, Reason
from paribus.stats.looks import Looks
from paribus.stats.margin import case_margin, headline_margin
from paribus.stats.reliability import reliability
from paribus.stats.summary import geometric_mean
from paribus.tables.launches import Arrangement, Group, arrange
from paribus.tables.table import Table, shown
from paribus.words.lists import listed

CONFIDENCE = 0.95
"""Of the one look that a finished table allows."""

MOST_BLOCKS = 10_000
"""Blocks beyond which the interval is not made (stats/estimate.py)."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the user says beside the table; what is "" or None, the table or a default says."""

    reference: str = ""
    factor: str = ""
    unit: str = ""
    better: Direction | None = None
    margin: float | None = None


def judge_table(
    table: Table,
    answers: Answers,
    *,
    directory: str = "",
    tools: Mapping[str, str] | None = None,
    of: provenance.Source = "table",
) -> Judgement:
    """Return the judgement of `table`, in the same form as that of a study.

    `of` is what the user gave that the table is of; `tools` names the benchmark of Paribus that a
    label of the table stands for, where it differs.

    With blocks, or launches that alternate in time, the arms are paired and one look is taken;
    otherwise the ratios stand without an interval and every verdict is withheld. Raises
    UserError for what the table does not say and a comparison needs.
    """
    tools = tools or {}
    metrics = _metrics(table, answers, tools)
    found = arrange(table, answers.reference)
    study = _study(table, found, answers, tools)
    if any(len(group.names) > MOST_BLOCKS for group in found.groups):
        raise UserError(
            f"has more than {MOST_BLOCKS:,} blocks of one benchmark",
            place=", ".join(table.sources),
            fix="if rows are samples of one launch, give a launch's rows one block and number"
            " them in a column `sample`",
        )
    if max(len(group.names) for group in found.groups) > 1:
        judgement = _with_times(_paired(found, study, metrics, directory), table)
    else:
        judgement = _apart(found, study, metrics, directory)
    told = provenance.notices(table, found, _error(found), of)
    judgement = replace(
        judgement,
        tallies=(),  # how many launches failed, a table does not tell
        design=provenance.design(table, found, of),
        notices=(*told, *provenance.without_confounded(judgement.notices, told)),
        versions={"python": platform.python_version(), "reported by": __version__},
    )
    code = provenance.why_withheld(found)
    lacking = {} if code else _lacking(found, of)

    def why(f: Finding) -> Because | None:
        if code:
            return code, {}
        return lacking.get((f.benchmark, f.arm)) or lacking.get((f.benchmark, f.reference))

    return withhold(judgement, why)


def _lacking(found: Arrangement, of: provenance.Source) -> dict[tuple[str, str], Because]:
    """Return by benchmark and arm why missing launches withhold a verdict."""
    return {
        (group.benchmark, arm): (Reason.LAUNCHES_MISSING, {**figures, "source": of})
        for group in found.groups
        for i, arm in enumerate(found.arms[1:], 1)
        if (figures := _too_many_missing(group, found.arms, i))
    }


def _study(table: Table, found: Arrangement, answers: Answers, tools: Mapping[str, str]) -> Study:
    reference, *others = found.arms
    return Study(
        question=f"What do {listed(table.sources, last=' and ')} say of"
        f" {listed(others, last=' and ')} against {reference}?",
        factor=answers.factor or NO_FACTOR,
        arms=tuple(Arm(name) for name in found.arms),
        benchmarks=tuple(
            Selection(label, tools.get(label, label), 0, {}, endpoints=("median",))
            for label in (group.benchmark for group in found.groups)
        ),
        settings=Settings(
            margin=answers.margin,
            confidence=CONFIDENCE,
            blocks=max(len(group.names) for group in found.groups),
        ),
        path=table.sources[0],
    )


# --- metrics --------------------------------------------------------------------------------


def _metrics(
    table: Table, answers: Answers, tools: Mapping[str, str]
) -> dict[str, tuple[Metric, ...]]:
    """Return the metrics of each benchmark, the one that appears first deciding.

    Unit and direction are the table's, or the user's, or those of the benchmark of that name
    that Paribus has. Raises UserError where nobody says.
    """
    import numpy as np

    for name, told in (("unit", answers.unit), ("better", answers.better)):
        if told and getattr(table, name) is not None:
            raise UserError(
                f"has a column {name!r}, and --{name} says {shown(told)} too",
                place=table.sources[0],
                fix=f"leave --{name} out",
            )
    key = table.benchmark.codes.astype(np.int64) * len(table.metric.names) + table.metric.codes
    rows = np.sort(np.unique(key, return_index=True)[1]).tolist()
    found: dict[str, list[Metric]] = {}
    asked: list[str] = []
    for row in rows:
        benchmark = table.benchmark.names[table.benchmark.codes[row]]
        name = table.metric.names[table.metric.codes[row]]
        known = _known(tools.get(benchmark, benchmark), name)
        unit = _cell(table, "unit", row) or answers.unit or (known.unit if known else "")
        better = _cell(table, "better", row) or answers.better or (known.better if known else "")
        if not known and name not in asked and (table.unit is None or table.better is None):
            asked.append(name)
        if not unit or not better or len(asked) > 1:
            raise UserError(
                f"does not say the unit of {shown(name)} of {shown(benchmark)}, or whether lower"
                " or higher is better",
                place=table.sources[0],
                fix="add columns `unit` and `better`"
                + ("" if len(asked) > 1 else ", or give for example --unit us --better lower"),
            )
        direction: Direction = "lower" if better == "lower" else "higher"
        same = known is not None and (known.unit, known.better) == (unit, direction)
        metric = known if known and same else Metric(name, unit, direction)
        found.setdefault(benchmark, []).append(metric)
    return {benchmark: tuple(metrics) for benchmark, metrics in found.items()}


def _known(benchmark: str, name: str) -> Metric | None:
    metrics = BENCHMARKS[benchmark].metrics if benchmark in BENCHMARKS else ()
    return next((metric for metric in metrics if metric.name == name), None)


def _cell(table: Table, name: str, row: int) -> str:
    column = getattr(table, name)
    return column.names[column.codes[row]] if column is not None else ""


def _error(found: Arrangement) -> float:
    """Return the error of one comparison: arms share it, for each is held against the reference."""
    return (1 - CONFIDENCE) / max(1, len(found.arms) - 1)


# --- paired ---------------------------------------------------------------------------------


def _paired(
    found: Arrangement, study: Study, metrics: Mapping[str, tuple[Metric, ...]], directory: str
) -> Judgement:
    """Return the judgement of blocks: benchmarks with equally many share their one look."""
    groups: dict[int, list[Group]] = {}
    for group in found.groups:
        groups.setdefault(len(group.names), []).append(group)
    error = _error(found)
    parts: list[Judgement] = []
    before = 0
    for blocks, mine in groups.items():
        grids = {group.benchmark: _grid(group, found.arms) for group in mine}
        plan = Plan(
            study=replace(study, benchmarks=tuple(s for s in study.benchmarks if s.label in grids)),
            looks=Looks((blocks,), error),
            launches=(),
            metrics={label: metrics[label] for label in grids},
            software={},
        )
        evidence = GriddedEvidence(plan.metrics, grids, before=before)
        before += sum(grid.values.shape[0] * grid.values.shape[1] for grid in grids.values())
        over = dict.fromkeys(grids, True)
        parts.append(judgement_of(plan, evidence, directory=directory, over=over))
    return merged(parts, study)


def _grid(group: Group, arms: tuple[str, ...]) -> Grid:
    if group.values is None:
        raise ValueError(f"{group.benchmark} is not in blocks")
    return Grid(arms, group.numbers, group.cells, group.values, group.times)


def merged(parts: Sequence[Judgement], study: Study) -> Judgement:
    """Return one judgement of several, their benchmarks in the order of the study."""
    first = parts[0]
    if len(parts) == 1:
        return replace(first, study=study)
    order = {selection.label: i for i, selection in enumerate(study.benchmarks)}

    def together(name: str) -> tuple[Finding, ...]:
        several = [finding for part in parts for finding in getattr(part, name)]
        return tuple(sorted(several, key=lambda finding: order[finding.benchmark]))

    dated = [(part.started or 0.0, part) for part in parts if part.points]
    begin = min((started for started, _ in dated), default=None)
    points = [
        replace(point, at_s=point.at_s + started - (begin or 0.0))
        for started, part in dated
        for point in part.points
    ]
    points.sort(key=lambda point: point.at_s)
    return replace(
        first,
        study=study,
        headlines=together("headlines"),
        cases=together("cases"),
        pairs=together("pairs"),
        points=tuple(points),
        notices=_once([n for part in parts for n in part.notices]),
        started=begin,
        wall_s=points[-1].at_s if points else 0.0,
        looks=tuple(sorted({look for part in parts for look in part.looks})),
    )


def _once(notices: Sequence[Notice]) -> tuple[Notice, ...]:
    """Return notices without those that say the same of the same benchmarks; the last one stays."""
    kept: list[Notice] = []
    for new in notices:
        same = (new.name, new.benchmarks, new.figures)
        at = next((i for i, n in enumerate(kept) if (n.name, n.benchmarks, n.figures) == same), -1)
        if at < 0:
            kept.append(new)
        else:
            kept[at] = new
    return tuple(kept)


def _with_times(judgement: Judgement, table: Table) -> Judgement:
    """Return the judgement without a time axis, and what rests on one, if there are no times."""
    judgement = replace(judgement, notices=tuple(_outlying(n) for n in judgement.notices))
    if table.times is not None:
        return replace(judgement, started=judgement.started if table.dated else None)
    kept = tuple(n for n in judgement.notices if n.name not in provenance.NEED_TIMES)
    return replace(judgement, points=(), started=None, wall_s=0.0, notices=kept)


def _outlying(notice: Notice) -> Notice:
    """Return the notice of outlying launches by block: a table has no logs to look into."""
    if notice.name is not NoticeName.OUTLYING_LAUNCHES:
        return notice
    return replace(notice, figures={**notice.figures, "source": "table"})


def _too_many_missing(group: Group, arms: Sequence[str], arm: int) -> dict[str, Any] | None:
    """Return the counts of missing launches that forbid a verdict on an arm, None if none do."""
    if not group.attempted:
        return None
    if reliability(group.lacking[0], group.lacking[arm], group.attempted, last=True) is None:
        return None
    return {
        "arm": arms[arm],
        "missing": len(group.lacking[arm]),
        "reference": arms[0],
        "reference_missing": len(group.lacking[0]),
        "blocks": group.attempted,
    }


# --- not paired -----------------------------------------------------------------------------


def _apart(
    found: Arrangement, study: Study, metrics: Mapping[str, tuple[Metric, ...]], directory: str
) -> Judgement:
    """Return ratios of medians without an interval, for launches that nothing pairs."""
    heads, cases = [], []
    for group in found.groups:
        merit = metrics[group.benchmark][0]
        for i, arm in enumerate(found.arms[1:], 1):
            rows = [_unpaired(group, metrics, study, j, i, arm) for j in range(len(group.cells))]
            cases += rows
            heads.append(_headline([row for row in rows if row.metric.name == merit.name]))
    return Judgement(
        study=study,
        plan_sha256="",
        directory=directory,
        sentence="",
        complete=True,
        headlines=tuple(heads),
        cases=tuple(cases),
        tallies=(),
        points=(),
        differences=(),
        facts={},
        equal_facts=0,
        level=CONFIDENCE,
    )


def _unpaired(
    group: Group,
    metrics: Mapping[str, tuple[Metric, ...]],
    study: Study,
    cell: int,
    arm: int,
    name: str,
) -> Finding:
    """Return the ratio of medians of one cell; `judge_table` says why there is no verdict."""
    metric = next(m for m in metrics[group.benchmark] if m.name == group.cells[cell][0])
    reference, mine = (_spread(group, cell, i) for i in (0, arm))
    return Finding(
        benchmark=group.benchmark,
        arm=name,
        metric=metric,
        case=group.cells[cell][1],
        margin=study.settings.margin or case_margin(metric, reference.median),
        comparison=_ratio(mine.median / reference.median),
        verdict=Verdict(Word.UNDECIDED, Reason.ORDER_UNKNOWN, final=True),
        reference_value=reference,
        arm_value=mine,
    )


def _headline(rows: Sequence[Finding]) -> Finding:
    """Return the geometric mean over the cases of a figure of merit."""
    references = [row.reference_value for row in rows if row.reference_value]
    arms = [row.arm_value for row in rows if row.arm_value]
    ratio = geometric_mean([row.comparison.ratio for row in rows if row.comparison])
    return replace(
        rows[0],
        case=None,
        margin=headline_margin([row.margin for row in rows]),
        comparison=_ratio(ratio),
        reference_value=_mean_spread(references),
        arm_value=_mean_spread(arms),
    )


def _mean_spread(spreads: Sequence[Spread]) -> Spread:
    return Spread(
        min(one.launches for one in spreads),
        geometric_mean(one.median for one in spreads),
        geometric_mean(one.low for one in spreads),
        geometric_mean(one.high for one in spreads),
    )


def _ratio(ratio: float) -> Comparison:
    """Return a ratio without an interval: no block, so nothing to make one of."""
    return Comparison(blocks=0, ratio=ratio, low=0.0, high=float("inf"), level=CONFIDENCE)


def _spread(group: Group, cell: int, arm: int) -> Spread:
    import numpy as np

    values = group.piles[cell][arm] if group.values is None else group.values[arm, :, cell]
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return Spread(len(values), middle, low, high)
