"""The judgement for other programs: verdict.json of schema paribus.verdict/1, and CSV tables.

docs/verdict-schema.json is the schema, and docs/report.md describes all of them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, TextIO

from paribus.border import csv_cell
from paribus.core import (
    Case,
    Comparison,
    Finding,
    Judgement,
    Metric,
    Scalar,
    Spread,
    Study,
    lens,
)
from paribus.probes.variables import discreet_env
from paribus.report import lookup, sentences
from paribus.words.values import flag_of, notice_fix, notice_text, reason_of, way_of

SCHEMA = "paribus.verdict/1"

CASE_COLUMNS = (
    *("kind", "benchmark", "metric", "endpoint", "unit", "better", "arm", "reference", "case"),
    *("reference_median", "reference_q1", "reference_q3", "reference_launches"),
    *("arm_median", "arm_q1", "arm_q3", "arm_launches"),
    *("ratio", "ratio_low", "ratio_high", "level", "blocks", "margin"),
    *("verdict", "final", "size_known", "blocks_needed"),
)
TABLE_COLUMNS = (
    *("benchmark", "metric", "unit", "better", "arm", "reference", "reference_value", "arm_value"),
    *("ratio", "ratio_low", "ratio_high", "level", "n", "margin", "verdict", "note"),
)
LAUNCH_COLUMNS = (
    *("number", "block", "counted", "benchmark", "arm", "at_s", "state", "level", "flag"),
    *("attempt", "void"),
)


def to_json(judgement: Judgement) -> dict[str, Any]:
    """Return the judgement as JSON values; every number is finite, an open end is null."""
    core = {
        "schema": SCHEMA,
        "sentence": judgement.sentence,
        "complete": judgement.complete,
        "directory": judgement.directory,
        "plan_sha256": judgement.plan_sha256,
        "started": judgement.started,
        "wall_s": judgement.wall_s,
        "versions": dict(judgement.versions),
        "design": judgement.design,
        "looks": list(judgement.looks),
        "level": judgement.level,
        "notices": [
            {**plain(n), "text": notice_text(n), "fix": notice_fix(n)} for n in judgement.notices
        ],
        "study": _study(judgement.study),
        "headlines": [
            finding_json(judgement, f) for f in (*judgement.headlines, *judgement.others)
        ],
        **{
            key: [finding_json(judgement, f) for f in found]
            for key, found in _findings(judgement)
            if key not in ("headlines", "figures")
        },
        "transports": [{**plain(c), "text": way_of(c)} for c in judgement.carriers],
        "tallies": [plain(t) for t in judgement.tallies],
        "launches": [{**plain(p), "flag": flag_of(p)} for p in judgement.points],
        "voided": [{**plain(p), "flag": flag_of(p)} for p in judgement.voided],
        "distributions": [plain(d) for d in judgement.distributions],
        "differences": [plain(d) for d in judgement.differences],
        "equal_facts": judgement.equal_facts,
        "facts": {arm: plain(facts) for arm, facts in judgement.facts.items()},
    }
    return lens.with_keys(judgement, core)


def _findings(judgement: Judgement) -> tuple[tuple[str, Sequence[Finding]], ...]:
    """Return the keys of the JSON that have findings, with these, in the order of the exports."""
    return (
        ("headlines", judgement.headlines),
        ("figures", judgement.others),
        ("layers", judgement.layers),
        ("endpoints", judgement.endpoints),
        ("pairs", judgement.pairs),
        *lens.findings(judgement),
        ("cases", judgement.cases),
    )


def cases_csv(judgement: Judgement, file: TextIO) -> None:
    """Write every finding as CSV, a row each, the cases last; only they have a `case`.

    Open the file with newline="". A figure that does not exist is an empty cell.
    """
    rows = (
        (key.removesuffix("s"), *_case_row(judgement, finding))
        for key, found in _findings(judgement)
        for finding in found
    )
    write_csv((CASE_COLUMNS, *rows), file)


def launches_csv(judgement: Judgement, file: TextIO) -> None:
    """Write every launch as CSV, in order of time: warm-up, failed ones and reruns included.

    Open the file with newline="". `level` is relative to the reference's usual level, `at_s` in
    seconds since the first launch; both as in `judgement.Point`.
    """
    rows = (
        (
            *(p.number, p.block, p.block > 0 and not p.void, p.benchmark, p.arm, p.at_s),
            *(p.state.value, p.level, flag_of(p), p.attempt, p.void),
        )
        for p in sorted([*judgement.points, *judgement.voided], key=lambda p: p.at_s)
    )
    write_csv((LAUNCH_COLUMNS, *rows), file)


def table_csv(judgement: Judgement, file: TextIO) -> None:
    """Write the table of a paper as CSV with all digits: headlines, and other metrics below each.

    `note` is the footnote; a ratio whose size is withheld is empty. Open the file with newline="".
    """
    from paribus.paper import paper

    rows = list[Sequence[Scalar | None]]()
    for f in lookup.rows(judgement):
        values = [spread_cells(one)[0] for one in (f.reference_value, f.arm_value)]
        ratio = comparison_cells(f.comparison if f.verdict.size_known else None)[:4]
        rows.append(
            (
                *(f.benchmark, f.metric.name, f.metric.unit, f.metric.better),
                *(f.arm, judgement.reference, *values, *ratio),
                *(paper.number(f), f.margin, f.verdict.word.value, paper.note(f)),
            )
        )
    write_csv((TABLE_COLUMNS, *rows), file)


def write_csv(rows: Iterable[Sequence[Scalar | None]], file: TextIO) -> None:
    """Write rows as CSV, figures with all digits. Open the file with newline=""."""
    writer = csv.writer(file, lineterminator="\n")
    for row in rows:
        writer.writerow([_cell(value) for value in row])


def _case_row(judgement: Judgement, f: Finding) -> list[Scalar | None]:
    return [
        *(f.benchmark, f.metric.name, f.metric.endpoint, f.metric.unit, f.metric.better),
        *(f.arm, f.reference or judgement.reference),
        None if f.case is None else f.case.to_json(),
        *spread_cells(f.reference_value),
        *spread_cells(f.arm_value),
        *comparison_cells(f.comparison),
        *(f.margin, f.verdict.word.value, f.verdict.final, f.verdict.size_known),
        f.verdict.blocks_needed,
    ]


def spread_cells(spread: Spread | None) -> list[Scalar | None]:
    if spread is None:
        return [None] * 4
    return [spread.median, spread.low, spread.high, spread.launches]


def comparison_cells(comparison: Comparison | None) -> list[Scalar | None]:
    if comparison is None:
        return [None] * 5
    ends = comparison_json(comparison)
    return [ends[key] for key in ("ratio", "low", "high", "level", "blocks")]


def _cell(value: Scalar | None) -> str:
    """Return a CSV cell: a figure reads back exactly, a text is shown as it is (`csv_cell`)."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return csv_cell(value) if isinstance(value, str) else str(value)


def finding_json(judgement: Judgement, f: Finding) -> dict[str, Any]:
    """Return a finding as JSON values.

    A headline that does not rest on all blocks has their number as `attempted`.
    """
    fewer = f.case is None and sentences.rests_on(judgement, f)
    return {
        "benchmark": f.benchmark,
        "arm": f.arm,
        "reference": f.reference or judgement.reference,
        "metric": plain(f.metric),
        "case": plain(f.case),
        "margin": f.margin,
        "reference_value": plain(f.reference_value),
        "arm_value": plain(f.arm_value),
        "comparison": plain(f.comparison),
        "verdict": {**plain(f.verdict), "reason": reason_of(f.verdict)},
        **({} if f.decides else {"decides": False}),
        **({"history": [comparison_json(one) for one in f.history]} if f.history else {}),
        **({"attempted": lookup.attempted_blocks(judgement, f.benchmark)} if fewer else {}),
    }


def metric_json(metric: Metric) -> dict[str, Any]:
    return {k: getattr(metric, k) for k in ("name", "unit", "better", "endpoint")}


def comparison_json(c: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON values; ends of 0 or infinity, which are not known, are null."""
    ends = (end if 0 < end < math.inf else None for end in (c.ratio, c.low, c.high))
    return {
        **dict(zip(("ratio", "low", "high"), ends, strict=True)),
        "level": c.level,
        "blocks": c.blocks,
    }


def _study(study: Study) -> dict[str, Any]:
    of_study = {one.name for one in fields(Study)}
    return {
        "question": study.question,
        "factor": study.factor,
        "explains": list(study.explains),
        "path": study.path,
        "reference": study.arms[0].name,
        "arms": [plain(replace(a, env=discreet_env(a.env))) for a in study.arms],
        "benchmarks": [plain(s) for s in study.benchmarks],
        "plan": plain(study.settings),
        **{key: plain(getattr(study, key)) for key in lens.names_of("study") if key in of_study},
        **({"hosts": dict(study.hosts)} if study.hosts else {}),
        **({"asked": plain(study.asked)} if study.asked else {}),
    }


def plain(value: Any) -> Any:
    """Return `value` with JSON types only: dataclasses as objects, an infinity as null."""
    if type(value) in _SHAPES:
        return _SHAPES[type(value)](value)
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


_SHAPES: Mapping[type, Callable[[Any], Any]] = {
    Case: lambda case: dict(case.items),
    Comparison: comparison_json,
    Metric: metric_json,
}
"""Dataclasses that are not written field by field."""
