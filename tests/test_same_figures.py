"""The figures of stored studies, tables and logs stay what an earlier version made of them.

`python tests/test_same_figures.py` writes what this version says; see data/README.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import judgements
from paribus.core import Finding, Judgement, lens

RECORDED = Path(__file__).parent / "data" / "figures.json"
EVERY = judgements.ALL | judgements.MORE


def figures(judgement: Judgement) -> dict[str, list[Any]]:
    """Return ratio, interval, word and p of every finding by what it is of."""
    several: dict[str, Sequence[Finding]] = {
        "headline": judgement.headlines,
        "layer": judgement.layers,
        "endpoint": judgement.endpoints,
        "pair": judgement.pairs,
        "case": judgement.cases,
        "profile": dict(lens.findings(judgement))["profiles"],
        "scaling": tuple(row.against for row in judgement.lenses.get("scaling", ()) if row.against),
    }
    return {
        f"{kind}, {f.benchmark}, {f.arm}, {f.reference}, {f.metric.name}, {f.case}": _row(f)
        for kind, findings in several.items()
        for f in findings
    }


def _row(finding: Finding) -> list[Any]:
    found = finding.comparison
    numbers = [found.blocks, found.ratio, found.low, found.high] if found else [None] * 4
    verdict = finding.verdict
    p = _number(verdict.figures.get("p"))
    return [*map(_number, numbers), verdict.word.value, verdict.code.value, p]


def _number(value: float | None) -> float | str | None:
    """Return a number to nine digits, which is what another machine's libm leaves alone."""
    if value is None or math.isinf(value):
        return None if value is None else str(value)
    return float(f"{value:.9g}")


@pytest.mark.parametrize("name", EVERY)
def test_figures_are_those_of_the_record(name: str) -> None:
    recorded = json.loads(RECORDED.read_text())[name]
    assert figures(EVERY[name]()) == recorded


if __name__ == "__main__":
    every = {name: figures(made()) for name, made in EVERY.items()}
    lines = [
        f'"{name}": {{\n'
        + ",\n".join(f"{json.dumps(of)}: {json.dumps(row)}" for of, row in rows.items())
        + "\n}"
        for name, rows in every.items()
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
