"""Published figures matched with one's own findings, by factor, arms, benchmark and case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from paribus.core import (
    NO_FACTOR,
    Arm,
    Finding,
    Judgement,
    Notice,
    NoticeName,
    Selection,
    Settings,
    Study,
    nodes_of_ranks,
)
from paribus.lenses.published.reading import Figure, Publication, Published


def beside(judgement: Judgement, publications: Sequence[Publication]) -> Judgement:
    """Return the judgement with rows of published figures; its verdicts stay as they are."""
    rows = [
        row
        for publication in publications
        for figure in publication.figures
        for row in _rows(judgement, publication, figure)
    ]
    notices = (*judgement.notices, *missing(publications))
    lenses = {**judgement.lenses, "published": (*judgement.lenses.get("published", ()), *rows)}
    return replace(judgement, lenses=lenses, notices=notices)


def alone(publication: Publication, directory: str = "") -> Judgement:
    """Return a judgement that holds the figures of a publication and nothing else."""
    study = Study(
        question=f"What was published: {publication.source}",
        factor=publication.factor or NO_FACTOR,
        arms=tuple(Arm(name) for name in publication.arms),
        benchmarks=(),
        settings=Settings(),
        path=str(publication.path),
    )
    empty = Judgement(
        study=study,
        plan_sha256="",
        directory=directory,
        sentence="Only published figures: no verdict is possible.",
        complete=True,
        headlines=(),
        cases=(),
        tallies=(),
        points=(),
        differences=(),
        facts={},
        equal_facts=0,
    )
    return beside(empty, [publication])


def missing(publications: Iterable[Publication]) -> Iterator[Notice]:
    """Yield a notice for each publication that leaves something out."""
    for one in publications:
        if one.missing:
            figures = {"source": one.source, "missing": list(one.missing)}
            yield Notice(NoticeName.NOT_PUBLISHED, "note", figures=figures)


def _rows(judgement: Judgement, publication: Publication, figure: Figure) -> Iterator[Published]:
    """Yield the row of a figure beside each of one's own findings that match, or beside none."""
    several = [one for one in judgement.study.benchmarks if one.benchmark == figure.row.benchmark]
    found = [
        replace(figure.row, finding=finding, turned=turned)
        for arm in judgement.study.arms[1:]
        if (turned := _turned(judgement, publication, figure, arm.name)) is not None
        for selection in several
        if (finding := _of_arm(judgement, figure, selection, arm.name)) is not None
    ]
    yield from found or [figure.row]


def _turned(
    judgement: Judgement, publication: Publication, figure: Figure, arm: str
) -> bool | None:
    """Return whether one's own arm and reference are the published ones the other way round.

    None where something else was compared: another factor, or levels that have other names. With
    the same factor it is enough that one name is equal, if the other is no level of the
    publication. A figure of one arm alone compares nothing: it stands beside the values of any arm.
    """
    if not figure.row.reference:
        return False
    factors = [judgement.study.factor, figure.factor]
    given = [one.casefold().replace("_", " ") for one in factors if one not in ("", NO_FACTOR)]
    if len(set(given)) > 1:
        return None
    levels = {name.casefold() for name in publication.arms}
    here = (judgement.reference.casefold(), arm.casefold())
    pair = (figure.row.reference.casefold(), figure.row.arm.casefold())
    for turned, names in ((False, pair), (True, pair[::-1])):
        others = [mine for mine, name in zip(here, names, strict=True) if mine != name]
        if not others or (len(given) == 2 and len(others) == 1 and others[0] not in levels):
            return turned
    return None


def _of_arm(judgement: Judgement, figure: Figure, selection: Selection, arm: str) -> Finding | None:
    """Return the headline or the case of an arm that matches a figure, None if there is none.

    What is a part of the case in a publication may be a parameter of the benchmark here.
    """
    if figure.hosts and _hosts(judgement, selection, arm) not in (0, figure.hosts):
        return None
    heads, cases = (
        [
            f
            for f in findings
            if (f.benchmark, f.arm) == (selection.label, arm)
            and figure.metric in ("", f.metric.name)
        ]
        for findings in (judgement.headlines, judgement.cases)
    )
    if figure.peak:
        return _peak(cases)
    if figure.case is not None:
        reported = {key: str(value).casefold() for key, value in selection.parameters.items()}
        asked = {(k, v) for k, v in figure.case.items if reported.get(k) != str(v).casefold()}
        if asked:
            return next((f for f in cases if f.case and asked <= set(f.case.items)), None)
    return heads[0] if heads else cases[0] if len(cases) == 1 else None


def _hosts(judgement: Judgement, selection: Selection, name: str) -> int:
    """Return on how many hosts an arm ran a benchmark, 0 where that is not known."""
    arm = next(one for one in judgement.study.arms if one.name == name)
    if selection.hosts:
        return selection.hosts
    if arm.hosts:
        return len(set(nodes_of_ranks(arm.hosts, selection.ranks, arm.ranks_per_host)))
    return 1 if judgement.plan_sha256 else 0


def _peak(cases: Sequence[Finding]) -> Finding | None:
    """Return the case in which the reference is best, None without any."""
    whole = [(f.reference_value.median, f) for f in cases if f.reference_value and f.arm_value]
    if not whole:
        return None
    best = max if whole[0][1].metric.better == "higher" else min
    return best(whole, key=lambda each: each[0])[1]
