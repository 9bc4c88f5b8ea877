"""Looking up what belongs together in a judgement: cases of a headline, launches of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from paribus.core import Finding, Judgement, NoticeName, Point, State, Total, total
from paribus.designs import design_of
from paribus.report import wording


def measured(judgement: Judgement) -> bool:
    """Return whether Paribus launched this itself: only a frozen plan has a seed."""
    return judgement.study.settings.seed is not None


def several_looks(judgement: Judgement) -> bool:
    """Return whether verdicts had several looks (in a table each group of benchmarks has one)."""
    return len(judgement.looks) > 1 and measured(judgement)


def unit(judgement: Judgement) -> str:
    """Return the noun for one value of an arm: "launch", "session", "build", "value" of a table."""
    return design_of(judgement.study).unit if measured(judgement) else "value"


def case_findings(judgement: Judgement, headline: Finding) -> tuple[Finding, ...]:
    """Return the cases that a headline summarises: its benchmark, arm and metric."""
    return tuple(
        f
        for f in _of_row(judgement, headline, judgement.cases)
        if f.metric.name == headline.metric.name
    )


def rows(judgement: Judgement) -> tuple[Finding, ...]:
    """Return the headlines, each followed by those of its benchmark's other metrics."""
    return tuple(
        row
        for head in judgement.headlines
        for row in (head, *_of_row(judgement, head, judgement.others))
    )


def row_name(judgement: Judgement, row: Finding) -> str:
    """Return the name of a headline's row: its benchmark, with the metric if it has several."""
    several = _of_row(judgement, row, judgement.others)
    return f"{row.benchmark}: {row.metric.name}" if several else row.benchmark


def _of_row(judgement: Judgement, row: Finding, findings: Sequence[Finding]) -> list[Finding]:
    """Return those of the judgement's `findings` that are of the same benchmark and arm."""
    return [f for f in judgement.of_benchmark(row.benchmark, findings) if f.arm == row.arm]


def nothing_came(judgement: Judgement) -> bool:
    """Return whether launches were made, and not one that counts gave usable output."""
    return bool(judgement.points) and all(p.state is not State.OK for p in judgement.points)


def benchmarks(judgement: Judgement) -> tuple[str, ...]:
    """Return the labels of the study's benchmarks, in its order, then any others found."""
    found = [s.label for s in judgement.study.benchmarks]
    for finding in (*judgement.headlines, *judgement.cases):
        if finding.benchmark not in found:
            found.append(finding.benchmark)
    return tuple(found)


def decided_by(judgement: Judgement, benchmark: str) -> str:
    """Return the endpoint that decides a benchmark, if it is not the median; "" otherwise."""
    heads = judgement.of_benchmark(benchmark, judgement.headlines)
    return next(
        (wording.ENDPOINTS[h.metric.endpoint] for h in heads if h.metric.endpoint != "median"), ""
    )


def total_of(judgement: Judgement, row: Finding) -> Total:
    """Return the launches of a row's benchmark, both arms together."""
    arms = (row.reference or judgement.reference, row.arm)
    return total(t for t in judgement.tallies if t.benchmark == row.benchmark and t.arm in arms)


def units_of(judgement: Judgement, row: Finding) -> int:
    """Return the number of launches of a row; in a study of sessions that of sessions."""
    if unit(judgement) == "launch":
        return total_of(judgement, row).launches
    return sum(v.launches for v in (row.reference_value, row.arm_value) if v)


def complete_blocks(judgement: Judgement, row: Finding) -> int:
    """Return how many counted blocks have a launch with samples in both arms of `row`."""
    counted = [p for p in judgement.points if p.benchmark == row.benchmark and p.block]
    blocks = [
        {p.block for p in counted if p.arm == arm and p.level is not None}
        for arm in (row.reference or judgement.reference, row.arm)
    ]
    return len(blocks[0] & blocks[1])


def blocks_there(judgement: Judgement, row: Finding) -> int:
    """Return how many complete blocks `row` has, those after the last look included."""
    compared = row.comparison.blocks if row.comparison else 0
    return max(compared, complete_blocks(judgement, row))


def fewest_blocks(judgement: Judgement, row: Finding) -> int:
    """Return the fewest blocks with which there can be a verdict on `row`."""
    level = row.comparison.level if row.comparison else judgement.level
    looks = judgement.looks if measured(judgement) else ()
    return design_of(judgement.study).fewest_blocks(level, looks)


def attempted_blocks(judgement: Judgement, benchmark: str) -> int:
    """Return how many counted blocks have values, incomplete blocks included; 0 if unknown.

    For a table only its notice on blocks that were left out has that number.
    """
    if measured(judgement):
        return len({p.block for p in judgement.points if p.benchmark == benchmark and p.block})
    for notice in judgement.notices:
        if notice.name is NoticeName.BLOCKS_LEFT_OUT and benchmark in notice.benchmarks:
            return int(notice.figures["of"])
    return 0


def launches(judgement: Judgement) -> list[Point]:
    """Return all launches in the order of time; `level` is of times: that of rates is inverted."""
    rates = {h.benchmark for h in judgement.headlines if h.metric.better == "higher"}
    every = sorted((*judgement.points, *judgement.voided), key=lambda p: p.at_s)
    return [replace(p, level=1 / p.level) if p.level and p.benchmark in rates else p for p in every]
