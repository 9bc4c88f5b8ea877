"""JSON against its published schema; CSV that reads back exactly."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

import judgements
from paribus.border import csv_cell
from paribus.core import Case, lens
from paribus.report.export import (
    CASE_COLUMNS,
    LAUNCH_COLUMNS,
    TABLE_COLUMNS,
    cases_csv,
    launches_csv,
    to_json,
)
from paribus.words.values import flag_of

DOCS = Path(__file__).parent.parent / "docs"
EVERY = judgements.ALL | judgements.MORE
SCHEMA = json.loads((DOCS / "verdict-schema.json").read_text())


def faults(value: Any, schema: dict[str, Any] = SCHEMA) -> list[str]:
    """Return where `value` breaks a schema of docs/, or one that refers to these."""
    registry: Registry[Any] = Registry(retrieve=_of_docs)  # type: ignore[call-arg]  # attrs renames it
    found = Draft202012Validator(schema, registry=registry).iter_errors(value)
    return [f"{one.json_path}: {one.message[:200]}" for one in found]


def _of_docs(uri: str) -> Resource[Any]:
    return Resource.from_contents(json.loads((DOCS / uri.rpartition("/")[2]).read_text()))


@pytest.mark.parametrize("name", [*EVERY, "large"])
def test_json_follows_the_schema(name: str) -> None:
    value = to_json((EVERY | {"large": judgements.large})[name]())
    again = json.loads(json.dumps(value, allow_nan=False))
    assert again == value
    assert faults(again) == []
    some = {"costs", "energy", "steadiness", "node_hours", "ranges", "calibration"}
    assert again.keys() - some == set(SCHEMA["required"])


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        (("headlines", 0, "verdict", "word"), "better"),
        (("headlines", 0, "comparison", "ratio"), 0),
        (("headlines", 0, "metric"), {"name": "latency", "unit": "us"}),
        (("launches", 0, "state"), "fine"),
        (("launches", 0, "number"), True),
        (("tallies", 0, "failed"), -1),
        (("schema",), "paribus.verdict/2"),
        (("differences", 0, "kind"), "odd"),
        (("study", "arms"), []),
        (("notices", 0, "level"), "error"),
        (("headlines", 0, "metric", "endpoint"), "mean"),
    ],
)
def test_schema_refuses_what_is_wrong(path: tuple[Any, ...], bad: Any) -> None:
    value = to_json(judgements.two_arms())
    inner: Any = value
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = bad
    assert faults(value)


def test_an_open_interval_is_null() -> None:
    value = to_json(judgements.incomplete())
    assert value["headlines"][0]["comparison"]["low"] is None
    assert value["headlines"][0]["comparison"]["high"] is None
    assert value["headlines"][0]["comparison"]["ratio"] == pytest.approx(1.177, abs=0.01)


def test_the_reference_of_every_finding_is_named() -> None:
    value = to_json(judgements.three_arms())
    assert {f["reference"] for f in value["headlines"]} == {"shared-memory"}
    assert {(f["arm"], f["reference"]) for f in value["pairs"]} == {
        ("tcp-loopback", "shared-memory"),
        ("tcp-bridge", "shared-memory"),
        ("tcp-bridge", "tcp-loopback"),
    }
    assert {f["metric"]["endpoint"] for f in value["endpoints"]} == {"p25", "min"}


def test_notices_keep_their_figures() -> None:
    found = judgements.sessions().notices
    (lags,) = [notice.figures["lags"] for notice in found if notice.name == "drift"]
    (notice,) = [n for n in to_json(judgements.sessions())["notices"] if n["name"] == "drift"]
    assert notice["level"] == "note"
    assert notice["figures"]["lags"] == lags
    assert [lag for lag, _ in lags] == [1, 2, 4, 8, 16, 32]


def read(write: Any, judgement: Any) -> list[dict[str, str]]:
    file = io.StringIO(newline="")
    write(judgement, file)
    file.seek(0)
    return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EVERY)
def test_cases_read_back(name: str) -> None:
    judgement = EVERY[name]()
    rows = read(cases_csv, judgement)
    kinds = (
        ("headline", judgement.headlines),
        ("figure", judgement.others),
        ("layer", judgement.layers),
        ("endpoint", judgement.endpoints),
        ("pair", judgement.pairs),
        ("profile", dict(lens.findings(judgement))["profiles"]),
        ("case", judgement.cases),
    )
    findings = [f for _, found in kinds for f in found]
    assert [r["kind"] for r in rows] == [kind for kind, found in kinds for _ in found]
    for row, f in zip(rows, findings, strict=True):
        assert tuple(row) == CASE_COLUMNS
        texts = (f.benchmark, f.arm, f.metric.unit)
        assert (row["benchmark"], row["arm"], row["unit"]) == tuple(map(csv_cell, texts))
        assert (Case.from_json(row["case"]) if row["case"] else None) == f.case
        assert row["verdict"] == f.verdict.word.value
        assert row["reference"] == csv_cell(f.reference or judgement.reference)
        assert row["endpoint"] == f.metric.endpoint
        assert row["size_known"] == ("true" if f.verdict.size_known else "false")
        if f.comparison is None:
            assert row["ratio"] == row["ratio_low"] == row["blocks"] == ""
        else:
            known = math.isfinite(f.comparison.ratio)
            assert (float(row["ratio"]) == f.comparison.ratio) if known else (row["ratio"] == "")
            ends = zip(
                ("ratio_low", "ratio_high"), (f.comparison.low, f.comparison.high), strict=True
            )
            for column, end in ends:
                known = 0 < end < math.inf
                assert (float(row[column]) == end) if known else (row[column] == "")
        if f.arm_value is not None:
            if math.isfinite(f.arm_value.median):
                assert float(row["arm_median"]) == f.arm_value.median
            else:
                assert row["arm_median"] == ""
            assert int(row["arm_launches"]) == f.arm_value.launches


@pytest.mark.parametrize("name", EVERY)
def test_launches_read_back(name: str) -> None:
    judgement = EVERY[name]()
    rows = read(launches_csv, judgement)
    points = sorted([*judgement.points, *judgement.voided], key=lambda p: p.at_s)
    assert len(rows) == len(points)
    for row, p in zip(rows, points, strict=True):
        assert tuple(row) == LAUNCH_COLUMNS
        assert (int(row["number"]), int(row["block"])) == (p.number, p.block)
        assert (row["benchmark"], row["arm"]) == (csv_cell(p.benchmark), csv_cell(p.arm))
        assert row["state"] == p.state.value
        assert row["counted"] == ("true" if p.block and not p.void else "false")
        assert (int(row["attempt"]), row["void"]) == (p.attempt, csv_cell(p.void))
        assert float(row["at_s"]) == p.at_s
        assert (float(row["level"]) if row["level"] else None) == p.level
        assert row["flag"] == csv_cell(flag_of(p))


def test_every_column_is_documented() -> None:
    page = (DOCS / "report.md").read_text()
    for column in (*CASE_COLUMNS, *LAUNCH_COLUMNS, *TABLE_COLUMNS):
        assert f"`{column}`" in page, f"docs/report.md does not explain the column {column}"
