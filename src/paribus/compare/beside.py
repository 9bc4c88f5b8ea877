"""Published figures beside one's own, and as arms of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from paribus.compare.imported import Answers, judge_table
from paribus.compare.logs import Log
from paribus.compare.pairing import PUBLISHED
from paribus.compare.published import Figure, Kind, Publication
from paribus.errors import UserError
from paribus.judgement import Finding, Judgement, Notice, Published
from paribus.model import Arm, Case, Reading, Sample, Selection, Settings, Study
from paribus.tables.cases import in_order
from paribus.tables.table import Row, Source, build


def beside(judgement: Judgement, publications: Sequence[Publication]) -> Judgement:
    """Return the judgement with published figures beside its own; no verdict rests on them."""
    rows = [
        row
        for publication in publications
        for figure in publication.figures
        for row in _rows(judgement, publication, figure)
    ]
    notices = (*judgement.notices, *missing(publications))
    return replace(judgement, published=(*judgement.published, *rows), notices=notices)


def judge_published(
    publication: Publication, answers: Answers, *, directory: str = ""
) -> Judgement:
    """Return the judgement of published figures alone.

    Values of two arms or more give ratios, without an interval. Of the rest nothing is computed.
    """
    first = next((f for f in publication.figures if len(f.values) > 1), None)
    if first is None:
        judgement = _empty(publication, directory)
    else:
        figures = [f for f in publication.figures if set(f.values) == set(first.values)]
        table = build([_source(publication, figures)])
        judgement = judge_table(table, answers, directory=directory)
        factor = answers.factor or publication.factor or judgement.study.factor
        judgement = replace(judgement, study=replace(judgement.study, factor=factor))
    shown = beside(_empty(publication, ""), [publication])
    notices = (*judgement.notices, *shown.notices)
    return replace(judgement, notices=notices, published=shown.published)


def missing(publications: Iterable[Publication]) -> Iterator[Notice]:
    """Yield what is not known of published figures."""
    for one in publications:
        if one.missing:
            told = "; ".join(one.missing)
            text = f"Of {one.source} is not known: {told}."
            yield Notice("not published", "note", text)


def as_logs(publication: Publication, others: Sequence[Log]) -> list[Log]:
    """Return published values as logs, an arm each, that are of every kind that `others` are of.

    What was not printed, such as the number of ranks, is taken to be as in the other logs.
    """
    found = []
    kinds = dict.fromkeys(
        (o.reading.benchmark, tuple(o.reading.parameters.items()), o.reading.ranks) for o in others
    )
    for arm in publication.arms:
        for benchmark, parameters, ranks in kinds:
            samples = tuple(
                Sample(f.metric.name, f.case or Case(), (f.values[arm],))
                for f in publication.figures
                if f.benchmark == benchmark and arm in f.values and f.metric and not f.peak
            )
            reading = Reading(benchmark, PUBLISHED, dict(parameters), ranks, samples)
            if samples:
                path = publication.path
                found.append(Log(arm, path.name, path, 0.0, False, True, reading))
    return found


def with_arms(
    paths: Sequence[Path],
    printed: Mapping[Path, Publication],
    arms: Sequence[str],
    logs: Sequence[Log],
) -> tuple[tuple[str, ...], list[Log]]:
    """Return arms and logs with those of the publications among `paths`, in the order of these.

    Raises UserError for a publication without a value of a benchmark that the logs have, and for
    two arms of one name.
    """
    names: list[str] = []
    found: list[Log] = []
    measured = iter(arms)
    for path in paths:
        if path not in printed:
            name = next(measured)
            names.append(name)
            found += [log for log in logs if log.arm == name]
            continue
        mine = as_logs(printed[path], logs)
        if not mine:
            tools = ", ".join(dict.fromkeys(f.benchmark for f in printed[path].figures if f.values))
            raise UserError(
                "has no value of what the logs are of",
                place=str(path),
                fix=f"it has values of {tools or 'nothing'}; to see its figures beside yours:"
                f" --beside {path}",
            )
        names += dict.fromkeys(log.arm for log in mine)
        found += mine
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError("is the name of two arms", place=twice, fix="rename one of the folders")
    return tuple(names), found


def _empty(publication: Publication, directory: str) -> Judgement:
    arms = tuple(Arm(name) for name in publication.arms)
    return Judgement(
        study=Study(
            question=f"What was published: {publication.source}",
            factor=publication.factor or "not given",
            arms=arms,
            benchmarks=(),
            settings=Settings(),
            path=str(publication.path),
        ),
        plan_sha256="",
        directory=directory,
        sentence="Published figures alone: there is nothing to judge.",
        complete=True,
        headlines=(),
        cases=(),
        tallies=(),
        points=(),
        differences=(),
        facts={},
        equal_facts=0,
    )


def _source(publication: Publication, figures: Sequence[Figure]) -> Source:
    name = publication.path.name
    rows = [
        Row(
            place=f"{name}, value {number}",
            arm=arm,
            benchmark=f.benchmark,
            metric=f.metric.name,
            value=value,
            case=in_order(dict(f.case.items) if f.case else {"point": "peak"} if f.peak else {}),
            block="1",
            unit=f.metric.unit,
            better=f.metric.better,
        )
        for number, (f, arm, value) in enumerate(
            [(f, *one) for f in figures for one in f.values.items()], 1
        )
        if f.metric is not None
    ]
    return Source(name, rows)


# --- rows ------------------------------------------------------------------------------------


def _rows(judgement: Judgement, publication: Publication, figure: Figure) -> Iterator[Published]:
    row = Published(
        source=publication.source,
        benchmark=figure.benchmark,
        what=_what(figure),
        arm=figure.arm,
        reference=figure.reference,
        said=said(figure),
        scale=_SCALES.get(figure.kind, "value"),
        note=figure.note,
    )
    mine = list(_findings(judgement, figure))
    for finding, turned in mine:
        yield replace(row, finding=finding, turned=turned)
    if not mine:
        yield row


_SCALES: Mapping[Kind, Literal["speed", "cost"]] = {"advantage": "speed", "overhead": "cost"}


def _what(figure: Figure) -> str:
    parts = [
        figure.metric.name if figure.metric and figure.kind == "values" else "",
        "peak" if figure.peak else str(figure.case) if figure.case is not None else "",
        figure.what,
    ]
    return ", ".join(part for part in parts if part)


def said(figure: Figure) -> str:
    """Return a figure as it was printed.

    A range has its ends in order and their signs: "+14.9 to +16.1 %".
    """
    if figure.kind == "word":
        return figure.word
    if figure.kind == "values":
        unit = figure.metric.unit if figure.metric else ""
        told = " -> ".join(f"{value:,.15g}" for value in figure.values.values())
        if len(figure.values) != 2:
            return f"{told} {unit}"
        one, other = figure.values.values()
        return f"{told} {unit} ({(other / one - 1) * 100:+.1f} %)"
    if figure.low == float("-inf"):
        return f"at most {figure.high * 100:+.4g} %"
    ends = dict.fromkeys(f"{end * 100:+.4g}" for end in (figure.low, figure.high))
    return f"{' to '.join(ends)} %"


def _findings(judgement: Judgement, figure: Figure) -> Iterator[tuple[Finding, bool]]:
    """Yield one's own findings that belong to a figure, and whether the arms are the other way."""
    mine = [s for s in judgement.study.benchmarks if s.benchmark == figure.benchmark]
    arms = {arm.name.casefold() for arm in judgement.study.arms}
    pair = (figure.reference.casefold(), figure.arm.casefold())
    named = bool(figure.reference) and arms.issuperset(pair)
    for arm in judgement.study.arms[1:]:
        here = (judgement.reference.casefold(), arm.name.casefold())
        if named and here not in (pair, pair[::-1]):
            continue
        for selection in mine:
            found = _of_arm(judgement, figure, selection, arm.name)
            if found is not None:
                yield found, named and here != pair


def _of_arm(judgement: Judgement, figure: Figure, selection: Selection, arm: str) -> Finding | None:
    """Return the headline, or the case that a figure is of; None if there is none such.

    What a publication calls a case may be a parameter of the benchmark here.
    """
    heads = [f for f in judgement.headlines if (f.benchmark, f.arm) == (selection.label, arm)]
    cases = [f for f in judgement.cases if (f.benchmark, f.arm) == (selection.label, arm)]
    if figure.metric is not None:
        heads = [f for f in heads if f.metric.name == figure.metric.name]
        cases = [f for f in cases if f.metric.name == figure.metric.name]
    if figure.peak:
        return _peak(cases)
    if figure.case is not None:
        told = {key: str(value).casefold() for key, value in selection.parameters.items()}
        asked = {(k, v) for k, v in figure.case.items if told.get(k) != str(v).casefold()}
        if asked:
            return next((f for f in cases if f.case and asked <= set(f.case.items)), None)
    return heads[0] if heads else cases[0] if len(cases) == 1 else None


def _peak(cases: Sequence[Finding]) -> Finding | None:
    """Return the best case of the reference against the best of the arm, whichever they are.

    Of two different cases there is no interval.
    """
    both = [(f.reference_value, f.arm_value, f) for f in cases]
    whole = [(r.median, a.median, f) for r, a, f in both if r is not None and a is not None]
    if not whole:
        return None
    sign = 1 if whole[0][2].metric.better == "higher" else -1
    one = max(whole, key=lambda each: sign * each[0])
    other = max(whole, key=lambda each: sign * each[1])
    if one is other or one[2].comparison is None:
        return one[2]
    apart = replace(one[2].comparison, ratio=other[1] / one[0], low=0.0, high=math.inf)
    return replace(one[2], arm_value=other[2].arm_value, comparison=apart)
