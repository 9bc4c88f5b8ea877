"""Judge a table of numbers from elsewhere, as far as its design allows.

In goes a `Table`, say the CSV file of a user with a row for each launch; out comes a `Judgement` in
the form of a study's. Blocks of the table are judged as those of a study that took one look.
Launches without blocks are judged unpaired, and in pairs of neighbours in time where there are any.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from paribus import __version__
from paribus.benchmarks import BENCHMARKS
from paribus.core import (
    NO_FACTOR,
    Arm,
    Case,
    DatedBy,
    Direction,
    Figures,
    Finding,
    Judgement,
    Launch,
    Metric,
    Notice,
    NoticeName,
    Reason,
    Selection,
    Settings,
    State,
    Study,
    UserError,
    Word,
    grouped,
)
from paribus.judge.conclude import judgement_of
from paribus.judge.evidence import Entry, Evidence
from paribus.judge.headlines import Because, withhold
from paribus.logs import provenance, words
from paribus.logs.intervals import (
    Made,
    enough,
    not_in_turns,
    numbered,
    reserved,
    stopping,
    with_launches,
)
from paribus.logs.recordings import beside_facts
from paribus.logs.settings import AS_READ, Moves, audited_columns
from paribus.logs.tables.columns import Facts, sort_columns
from paribus.logs.tables.launches import Arrangement, Group, arrange, without_lacking
from paribus.logs.tables.table import Table, shown
from paribus.logs.unpaired import unpaired
from paribus.plan import Plan
from paribus.stats.looks import Looks
from paribus.stats.reliability import reliability
from paribus.words.lists import listed


def _evidence(
    metrics: Mapping[str, Sequence[Metric]], groups: Sequence[Group], before: int
) -> Evidence:
    """Return the evidence of launches in blocks, all complete, numbered from `before` + 1 on.

    If the table has no times, the number of its block stands for the time of a launch.
    """
    found = Evidence(metrics, recorded=False)
    for group in groups:
        for arm in next(iter(group.figures.values())):
            for block in group.numbers:
                before += 1
                found.add_entry(
                    Entry(
                        launch=Launch(before, block, group.benchmark, arm, seed=0),
                        state=State.OK,
                        started=group.times[arm][block] if group.times else float(block),
                        wall_s=0.0,
                        error="",
                        medians={cell: of[arm][block] for cell, of in group.figures.items()},
                    )
                )
    return found


def _figures(found: Arrangement, metrics: Mapping[str, Sequence[Metric]]) -> list[Figures]:
    """Return the figures of every launch that counts, in order of benchmark, arm and block."""
    times = [t for group in found.groups for t in (group.times or {}).values()]
    begin = min((at for of in times for at in of.values()), default=0.0)
    several: list[Figures] = []
    for group in found.groups:
        known = {metric.name: metric for metric in metrics[group.benchmark]}
        for arm in found.arms:
            values: dict[object, dict[tuple[str, Case], float]] = {}
            for cell, of_arms in group.figures.items():
                for launch, value in of_arms[arm].items():
                    values.setdefault(launch, {})[cell] = value
            for launch, cells in values.items():
                block = launch if group.numbers and isinstance(launch, int) else None
                at_s = group.times[arm][block] - begin if group.times and block else None
                file = group.files.get(arm, {}).get(launch, "")
                several.append(Figures(arm, block, 0, at_s, group.benchmark, known, cells, file))
    return numbered(several)


def _joined(parts: Sequence[Judgement]) -> list[Figures]:
    """Return the figures of several parts in a row, with their times since the first of all."""
    begin = min((one.started for one in parts if one.started is not None), default=0.0)
    several: list[Figures] = []
    for part in parts:
        later = (part.started or begin) - begin
        several += (
            one if one.at_s is None else one._replace(at_s=one.at_s + later) for one in part.figures
        )
    return numbered(several)


CONFIDENCE = 0.95
"""Confidence of the one look that a finished table allows."""

MOST_BLOCKS = 10_000
"""Blocks for which an interval is made, at most (stats/estimate.py)."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The options that answer what logs and tables leave open; "" and None are no answer.

    `better` is which values of all metrics are better, `directions` those of single metrics by
    name. `margin` is a share; `moves` are settings that are facts of the arms, or keys.
    """

    reference: str = ""
    factor: str = ""
    unit: str = ""
    better: Direction | None = None
    margin: float | None = None
    directions: Mapping[str, Direction] = field(default_factory=dict)
    moves: Moves = AS_READ


def judge_table(table: Table, answers: Answers, *, directory: str = "") -> Judgement:
    """Return the judgement of a user's table, in the same form as that of a study.

    Blocks are paired as the table says. All other launches are judged as logs are (intervals.py):
    unpaired, and in pairs where the arms alternate in time. Raises UserError for what the table
    does not say and a comparison needs.
    """
    table, facts = sort_columns(table, answers.moves.keys, answers.moves.part_of_arm)
    table, lacking = without_lacking(table)
    found = arrange(table, answers.reference)
    if found[0].kind == "blocks":
        judgement = _judged(table, found[0], answers, directory, of="table")
    else:
        judgement = _of_launches(table, found, answers, directory)
    judgement = replace(judgement, notices=(*_left_out(lacking), *judgement.notices))
    return _with_columns(judgement, facts, answers.moves)


def _of_launches(
    table: Table, several: Sequence[Arrangement], answers: Answers, directory: str
) -> Judgement:
    """Return the judgement of launches without blocks, which are judged as logs are."""
    unpaired_too, *_ = several
    if several[0].kind == "neighbours":
        (unpaired_too,) = arrange(table, answers.reference, paired=False)
    every = {group.benchmark: group for group in unpaired_too.groups}
    launches = {
        label: [max(len(of[arm]) for of in group.figures.values()) for arm in unpaired_too.arms]
        for label, group in every.items()
    }
    parts = []
    for found in several:
        by_number = grouped((enough(launches[g.benchmark]), g) for g in found.groups)
        for many, groups in sorted(by_number.items(), reverse=True):
            share = 0.5 if many else 1.0
            mine = replace(found, groups=tuple(groups))
            part = _judged(table, mine, answers, directory, of="table", share=share)
            if many and found.kind == "neighbours":
                alone = replace(unpaired_too, groups=tuple(every[g.benchmark] for g in groups))
                of_launches = _judged(table, alone, answers, directory, of="table", share=share)
                part = with_launches(part, of_launches)
            elif many:
                part = replace(part, notices=(stopping("table"), *part.notices))
            parts.append(part)
    of = {group.benchmark: group for found in several for group in found.groups}
    together = replace(several[0], groups=tuple(of[label] for label in every))
    whole = merged(parts, _study(table, together, answers, {}))
    made = _made(table, unpaired_too.arms)
    heads = [f.benchmark for f in whole.headlines if f.verdict.word is not Word.WITHHELD]
    reported = not_in_turns(
        unpaired_too.arms, {label: made[label] for label in heads if not made[label].in_turns}
    )
    whole = replace(whole, notices=(*reported, *whole.notices))
    return reserved(whole, made)


def _made(table: Table, arms: Sequence[str]) -> dict[str, Made]:
    """Return by benchmark when the launches of each arm were made."""
    times: dict[str, dict[str, dict[Any, float]]] = {}
    for row in table.rows:
        of_arm = times.setdefault(row.benchmark, {arm: {} for arm in arms})[row.arm]
        if row.time is not None:
            one = row.launch or row.time
            of_arm[one] = min(of_arm.get(one, row.time), row.time)
    by = DatedBy.COLUMN if table.timed else None
    return {
        label: Made(by, {arm: [*of.values()] for arm, of in of_arms.items()}, dates=table.dated)
        for label, of_arms in times.items()
    }


def judge_rows(
    table: Table,
    answers: Answers,
    *,
    directory: str,
    tools: Mapping[str, str],
    share: float,
) -> Judgement:
    """Return the judgement of logs whose figures are a table, paired in one way or not at all.

    `tools` names the benchmark of Paribus that a label of the table stands for. `share` is the
    part of the error that this interval may take: 0.5 where the launches are enough to be judged
    unpaired as well (intervals.py), else 1.
    Raises UserError as `judge_table`.
    """
    table, lacking = without_lacking(table)
    found, *others = arrange(table, answers.reference)
    if others:  # times of logs that were paired alike are rounded to those of a table
        (found,) = arrange(table, answers.reference, paired=False)
    judgement = _judged(table, found, answers, directory, of="logs", tools=tools, share=share)
    return replace(judgement, notices=(*_left_out(lacking), *judgement.notices))


def _judged(
    table: Table,
    found: Arrangement,
    answers: Answers,
    directory: str,
    *,
    of: provenance.Source,
    tools: Mapping[str, str] = MappingProxyType({}),
    share: float = 1.0,
) -> Judgement:
    """Return the judgement of the groups of `found`, with one interval each.

    A benchmark with more than one block is paired, and one look is taken; otherwise its launches
    are judged unpaired (unpaired.py). `of` is what the user gave.
    """
    metrics = _metrics(table, answers, tools)
    study = _study(table, found, answers, tools)
    _check_blocks(found, table)
    # Arms share the error of one comparison: each is held against the reference.
    error = (1 - CONFIDENCE) / max(1, len(found.arms) - 1) * share
    parts = []
    for groups in grouped(
        ((len(group.names) > 1, provenance.one_each([group])), group) for group in found.groups
    ).values():
        mine = replace(found, groups=tuple(groups))
        if len(groups[0].names) > 1:
            part = _with_times(_paired(mine, study, metrics, directory, error), table)
        else:
            part = unpaired(mine, study, metrics, directory, error)
        parts.append(_described(part, table, mine, metrics, of, error))
    return merged(parts, study)


def _described(
    judgement: Judgement,
    table: Table,
    found: Arrangement,
    metrics: Mapping[str, Sequence[Metric]],
    of: provenance.Source,
    error: float,
) -> Judgement:
    """Return the judgement of groups with what the table says of them, and fails to say."""
    single = provenance.one_each(found.groups)
    lost = {} if single else _lacking(found, of)
    reported = list(provenance.notices(table, found, error, of, {label for label, _ in lost}))
    judgement = replace(
        judgement,
        tallies=(),  # how many launches failed, a table does not show
        design=provenance.design(table, found, of),
        figures=_figures(found, metrics),
        notices=(*reported, *provenance.without_confounded(judgement.notices, reported)),
        versions={"python": platform.python_version(), "reported by": __version__},
    )

    def why(f: Finding) -> Because | None:
        if single:
            return Reason.ONE_LAUNCH_EACH, {}
        return lost.get((f.benchmark, f.arm)) or lost.get((f.benchmark, f.reference))

    return withhold(judgement, why)


def _check_blocks(found: Arrangement, table: Table) -> None:
    if any(len(group.names) > MOST_BLOCKS for group in found.groups):
        raise UserError(
            f"has more than {MOST_BLOCKS:,} blocks of one benchmark",
            place=", ".join(table.sources),
            fix="if rows are samples of one launch, give a launch's rows one block and number"
            " them in a column `sample`",
        )


def _with_columns(judgement: Judgement, facts: Facts, moves: Moves) -> Judgement:
    """Return the judgement of a table with the facts of the arms that its other columns show."""
    if not facts and not moves:
        return judgement
    answer, by_arm = audited_columns(facts, judgement.study, moves)
    regarded = words.regarded(moves.part_of_arm, moves.keys)
    design = " ".join(filter(None, [judgement.design, regarded]))
    return beside_facts(replace(judgement, design=design), answer, by_arm)


def _left_out(lacking: Sequence[tuple[str, str, str]]) -> list[Notice]:
    """Return the notice on metrics that not every arm has, or no notice.

    `lacking` are benchmark, arm and metric of each that was left out.
    """
    of = grouped(((benchmark, arm), metric) for benchmark, arm, metric in lacking)
    every = [{"label": label, "arm": arm, "cases": names} for (label, arm), names in of.items()]
    figures = {"all": every, "number": len(every)}
    return [Notice(NoticeName.CASES_LEFT_OUT, "warning", figures=figures)] if every else []


def _lacking(found: Arrangement, of: provenance.Source) -> dict[tuple[str, str], Because]:
    """Return by benchmark and arm why missing launches withhold a verdict."""
    lost: dict[tuple[str, str], Because] = {}
    for group in found.groups:
        for arm, missing in zip(found.arms[1:], group.lacking[1:], strict=False):
            if reliability(group.lacking[0], missing, group.attempted, last=True):
                of_arm = {"arm": arm, "missing": len(missing), "blocks": group.attempted}
                others = {"reference": found.arms[0], "reference_missing": len(group.lacking[0])}
                lost[group.benchmark, arm] = (
                    Reason.LAUNCHES_MISSING,
                    {**of_arm, **others, "source": of},
                )
    return lost


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
    for name, given in (("unit", answers.unit), ("better", answers.better)):
        if given and name in table.columns:
            raise UserError(
                f"the {name} is given there, and --{name} says {shown(given)} too",
                place=table.sources[0],
                fix=f"leave --{name} out",
            )
    names = {row.metric for row in table.rows}
    if strange := [name for name in answers.directions if name not in names]:
        raise UserError(
            f"has no metric {shown(strange[0])}, which --better names",
            place=table.sources[0],
            fix=f"it has: {', '.join(map(shown, sorted(names)))}",
        )
    found: dict[str, list[Metric]] = {}
    asked: list[str] = []
    for row in {(row.benchmark, row.metric): row for row in table.rows}.values():
        known = _known(tools.get(row.benchmark, row.benchmark), row.metric)
        unit = row.unit or answers.unit or (known.unit if known else "")
        better = row.better or answers.directions.get(row.metric) or answers.better
        better = better or (known.better if known else "")
        reported = table.columns | ({"better"} if row.metric in answers.directions else set())
        if not known and row.metric not in asked and not {"unit", "better"} <= reported:
            asked.append(row.metric)
        if not unit or not better or len(asked) > 1:
            raise UserError(
                f"does not say the unit of {shown(row.metric)} of {shown(row.benchmark)}, or"
                " whether lower or higher is better",
                place=table.sources[0],
                fix="add columns `unit` and `better`"
                + ("" if len(asked) > 1 else ", or give for example --unit us --better lower"),
            )
        direction: Direction = "lower" if better == "lower" else "higher"
        same = known is not None and (known.unit, known.better) == (unit, direction)
        metric = known if known and same else Metric(row.metric, unit, direction)
        found.setdefault(row.benchmark, []).append(metric)
    return {benchmark: tuple(metrics) for benchmark, metrics in found.items()}


def _known(benchmark: str, name: str) -> Metric | None:
    """Return the metric of that name of a benchmark of Paribus, None if it has none."""
    metrics = BENCHMARKS[benchmark].metrics if benchmark in BENCHMARKS else ()
    return next((metric for metric in metrics if metric.name == name), None)


# --- paired ---------------------------------------------------------------------------------


def _paired(
    found: Arrangement,
    study: Study,
    metrics: Mapping[str, tuple[Metric, ...]],
    directory: str,
    error: float,
) -> Judgement:
    """Return the judgement of blocks: benchmarks with equally many blocks are judged together.

    Their one look is after all blocks.
    """
    groups = grouped((len(group.names), group) for group in found.groups)
    parts: list[Judgement] = []
    before = 0
    for blocks, mine in groups.items():
        labels = [group.benchmark for group in mine]
        plan = Plan(
            study=replace(
                study, benchmarks=tuple(s for s in study.benchmarks if s.label in labels)
            ),
            looks=Looks((blocks,), error),
            launches=(),
            metrics={label: metrics[label] for label in labels},
            software={},
        )
        evidence = _evidence(plan.metrics, mine, before)
        before += len(mine) * blocks * len(found.arms)
        over = dict.fromkeys(labels, True)
        parts.append(judgement_of(plan, evidence, directory=directory, over=over))
    return merged(parts, study)


def merged(parts: Sequence[Judgement], study: Study) -> Judgement:
    """Return one judgement of several on different benchmarks, these in the order of the study."""
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
    # Of notices that say the same of the same benchmarks the last one stays.
    every = (notice for part in parts for notice in part.notices)
    once = {(n.name, n.benchmarks, repr(n.figures)): n for n in every}
    return replace(
        first,
        study=study,
        design=" ".join(dict.fromkeys(part.design for part in parts)),
        headlines=together("headlines"),
        others=together("others"),
        cases=together("cases"),
        pairs=together("pairs"),
        points=tuple(points),
        notices=tuple(once.values()),
        started=begin,
        wall_s=points[-1].at_s if points else 0.0,
        looks=tuple(sorted({look for part in parts for look in part.looks})),
        figures=_joined(parts),
    )


def _with_times(judgement: Judgement, table: Table) -> Judgement:
    """Return the judgement, without a time axis and what rests on one if the table has no times."""
    judgement = replace(judgement, notices=tuple(_outlying(n) for n in judgement.notices))
    if table.timed:
        return replace(judgement, started=judgement.started if table.dated else None)
    kept = tuple(n for n in judgement.notices if n.name not in provenance.NEED_TIMES)
    return replace(judgement, points=(), started=None, wall_s=0.0, notices=kept)


def _outlying(notice: Notice) -> Notice:
    """Return the notice of outlying launches by block: a table has no logs to look into."""
    if notice.name is not NoticeName.OUTLYING_LAUNCHES:
        return notice
    return replace(notice, figures={**notice.figures, "source": "table"})
