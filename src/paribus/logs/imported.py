"""Judge a table of numbers from elsewhere, as far as its design allows.

In goes a `Table`, say the CSV file of a user with a row for each launch; out comes a `Judgement` in
the form of a study's. Blocks of the table are judged as those of a study that took one look.
Launches without blocks are judged unpaired, and in pairs of neighbours in time where there are any.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    Point,
    Reason,
    Selection,
    Settings,
    State,
    Study,
    UserError,
    grouped,
    parse_share,
)
from paribus.judge.conclude import judgement_of
from paribus.judge.evidence import Entry, Evidence
from paribus.judge.headlines import Because, withhold
from paribus.logs import provenance, words
from paribus.logs.provenance import SAID, Made, not_in_turns, reserved
from paribus.logs.recordings import with_reported
from paribus.logs.settings import AS_READ, Moves
from paribus.logs.shift import LEAST_LAUNCHES
from paribus.logs.tables.columns import COLUMN, Facts, sort_columns
from paribus.logs.tables.launches import Arrangement, Group, arrange, without_lacking
from paribus.logs.tables.table import Table, shown
from paribus.logs.unpaired import unpaired
from paribus.plan import Plan
from paribus.stats.looks import Looks
from paribus.stats.reliability import reliability
from paribus.words.lists import listed

CONFIDENCE = 0.95
"""Confidence of the one look that a finished table allows."""

MOST_BLOCKS = 10_000
"""Blocks for which an interval is made, at most (stats/estimate.py)."""


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
    return _numbered(several)


def _numbered(several: Iterable[Figures]) -> list[Figures]:
    """Return figures with the numbers of their launches, from 1."""
    return [one._replace(launch=number) for number, one in enumerate(several, 1)]


def _with_unpaired(paired: Sequence[Figures], every: Iterable[Figures]) -> list[Figures]:
    """Return the figures of paired launches, and behind them those of the others in `every`.

    Launches are the same if benchmark, arm and file are.
    """
    seen = {(one.benchmark, one.arm, one.file) for one in paired}
    others = (one for one in every if (one.benchmark, one.arm, one.file) not in seen)
    return _numbered([*paired, *others])


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

    def __post_init__(self) -> None:
        # Callers of paribus.compare can give anything: 2 for 2 %, or a word that is no direction.
        if self.better not in (None, "lower", "higher"):
            cause = f"{shown(self.better)} is no direction"
            raise UserError(cause, place="better", fix="give lower or higher")
        try:
            _ = self.margin is None or parse_share(self.margin)
        except ValueError as error:
            raise UserError(str(error), place="margin", fix="for example 0.02") from error


def judge_table(table: Table, answers: Answers, *, directory: str = "") -> Judgement:
    """Return the judgement of a user's table, in the same form as that of a study.

    Blocks are paired as the table says. All other launches are judged as logs are: unpaired, and in
    pairs where the arms alternate in time. `directory` is where the reports are written, "" for
    nowhere. Raises UserError for what the table does not say and a comparison needs.
    """
    table, facts = sort_columns(table, answers.moves.keys, answers.moves.part_of_arm)
    table, lacking = without_lacking(table)
    several = arrange(table, answers.reference)
    parts = [part for found in several for part in judge_arranged(table, found, answers)]
    labels = dict.fromkeys(row.benchmark for row in table.rows)
    order = {label: place for place, label in enumerate(labels)}
    groups = [group for found in several for group in found.groups]
    groups.sort(key=lambda group: order[group.benchmark])
    whole = merged(parts, _study(table, several[0].arms, groups, answers))
    reported: list[Notice] = []
    if several[0].kind != "blocks":
        made = _made(table, several[0].arms)
        reported += not_in_turns(whole, made)
        whole = reserved(whole, made, table.of)
    notices = (*_left_out(lacking), *reported, *whole.notices)
    whole = replace(whole, directory=directory, notices=notices)
    return _with_columns(whole, facts, answers.moves)


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


def enough(counts: Sequence[int]) -> bool:
    """Return whether the reference and another arm have launches enough for an unpaired interval.

    `counts` are the launches of each arm, those of the reference first.
    """
    reference, *others = counts
    return min(reference, max(others)) >= LEAST_LAUNCHES


def judge_arranged(table: Table, found: Arrangement, answers: Answers) -> Iterator[Judgement]:
    """Yield the judgements of an arrangement: of benchmarks with launches enough, then of others.

    Where they are enough, they are judged unpaired, and in pairs if there are any: each interval
    has half of the error. A verdict that the unpaired launches support stands, and pairs can only
    add one where they do not. So the same figures get the same verdict as logs and as a table,
    with and without their times.
    """
    by_number = grouped((enough(g.launches(found.arms)), g.benchmark) for g in found.alone)
    if not by_number:
        yield _judged(table, found, answers)
    for many, labels in sorted(by_number.items(), reverse=True):
        mine = [g for g in found.groups if g.benchmark in labels]
        share = 0.5 if many else 1.0
        part = _judged(table, replace(found, groups=tuple(mine)), answers, share)
        if many and found.paired:
            every = tuple(g for g in found.alone if g.benchmark in labels)
            alone = _judged(table, replace(found, kind="apart", groups=every), answers, share)
            part = _with_launches(part, alone)
            if table.of == "logs":
                part = replace(part, figures=_with_unpaired([*part.figures], alone.figures))
        elif many:
            part = replace(part, notices=(provenance.stopping(table.of), *part.notices))
        yield part


def _with_launches(paired: Judgement, alone: Judgement) -> Judgement:
    """Return the judgement of pairs, with the findings of launches `alone` that have a verdict."""

    def stronger(name: str) -> tuple[Finding, ...]:
        of = {(f.benchmark, f.arm, f.metric.name, f.case): f for f in getattr(alone, name)}
        both = [(of[f.benchmark, f.arm, f.metric.name, f.case], f) for f in getattr(paired, name)]
        return tuple(one if one.verdict.word in SAID else pair for one, pair in both)

    return replace(
        paired,
        headlines=stronger("headlines"),
        others=stronger("others"),
        cases=stronger("cases"),
        design=f"{paired.design} {words.TWO_INTERVALS}",
    )


def _judged(table: Table, found: Arrangement, answers: Answers, share: float = 1.0) -> Judgement:
    """Return the judgement of the groups of `found`, with one interval each.

    A benchmark with more than one block is paired, and one look is taken; otherwise its launches
    are judged unpaired (unpaired.py). `share` is the part of the error that the interval may take.
    """
    metrics = _metrics(table, answers)
    study = _study(table, found.arms, found.groups, answers)
    _check_blocks(found, table)
    # Arms share the error of one comparison: each is held against the reference.
    error = (1 - CONFIDENCE) / max(1, len(found.arms) - 1) * share
    parts = []
    for (paired, single), groups in grouped(
        ((len(group.names) > 1, group.one_each), group) for group in found.groups
    ).items():
        mine = replace(found, groups=tuple(groups))
        judge = _paired if paired else unpaired
        part = judge(mine, study, metrics, error)
        if paired:
            part = _with_times(part, table)
        parts.append(_described(part, table, mine, metrics, error, single=single))
    return merged(parts, study)


def _described(
    judgement: Judgement,
    table: Table,
    found: Arrangement,
    metrics: Mapping[str, Sequence[Metric]],
    error: float,
    *,
    single: bool,
) -> Judgement:
    """Return the judgement of groups with what the table says of them, and fails to say.

    `single` is whether each arm has one launch.
    """
    lost = {} if single else _lacking(found, table.of)
    reported = list(provenance.notices(table, found, error, {label for label, _ in lost}))
    judgement = replace(
        judgement,
        tallies=(),  # how many launches failed, a table does not show
        design=provenance.design(table, found),
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
    regarded = words.regarded(moves.part_of_arm, moves.keys)
    design = " ".join(filter(None, [judgement.design, regarded]))
    accepted = (f"{COLUMN}{name}" for name in moves.part_of_arm)
    return with_reported(replace(judgement, design=design), facts, accepted)


def _left_out(lacking: Mapping[tuple[str, str], list[str]]) -> list[Notice]:
    """Return the notice on metrics that not every arm has, by benchmark and an arm that has them.

    It is none if there are none.
    """
    every = [{"label": label, "arm": arm, "cases": of} for (label, arm), of in lacking.items()]
    figures = {"all": every, "number": len(every)}
    return [Notice(NoticeName.CASES_LEFT_OUT, "warning", figures=figures)] if every else []


def _lacking(found: Arrangement, of: str) -> dict[tuple[str, str], Because]:
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


def _study(table: Table, arms: Sequence[str], groups: Sequence[Group], answers: Answers) -> Study:
    reference, *others = arms
    return Study(
        question=f"What do {listed(table.sources, last=' and ')} say of"
        f" {listed(others, last=' and ')} against {reference}?",
        factor=answers.factor or NO_FACTOR,
        arms=tuple(map(Arm, arms)),
        benchmarks=tuple(
            Selection(label, table.tools.get(label, label), 0, {}, endpoints=("median",))
            for label in (group.benchmark for group in groups)
        ),
        settings=Settings(
            margin=answers.margin,
            confidence=CONFIDENCE,
            blocks=max(len(group.names) for group in groups),
        ),
        path=table.sources[0],
    )


# --- metrics --------------------------------------------------------------------------------


def _metrics(table: Table, answers: Answers) -> dict[str, tuple[Metric, ...]]:
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
        known = _known(table.tools.get(row.benchmark, row.benchmark), row.metric)
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
        parts.append(judgement_of(plan, evidence, directory="", over=over))
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

    # Times of a part count from its start, or where no dates are known from no start at all.
    begin = min((part.started for part in parts if part.started is not None), default=None)
    zero = begin or 0.0
    points: list[Point] = []
    figures: list[Figures] = []
    for part in parts:
        started = part.started or zero
        points += (replace(one, at_s=one.at_s + started - zero) for one in part.points)
        figures += (
            one if one.at_s is None else one._replace(at_s=one.at_s + (started - zero))
            for one in part.figures
        )
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
        figures=_numbered(figures),
    )


def _with_times(judgement: Judgement, table: Table) -> Judgement:
    """Return the judgement, without a time axis and what rests on one if the table has no times.

    Outlying launches are named by block: a table has no logs to look into.
    """
    notices = (
        replace(n, figures={**n.figures, "source": "table"})
        if n.name is NoticeName.OUTLYING_LAUNCHES
        else n
        for n in judgement.notices
        if table.timed or n.name not in provenance.NEED_TIMES
    )
    judgement = replace(judgement, notices=tuple(notices))
    if table.timed:
        return replace(judgement, started=judgement.started if table.dated else None)
    return replace(judgement, points=(), started=None, wall_s=0.0)
