"""JSON against its published schema; CSV that reads back exactly."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pytest

import judgements
from paribus.model import Case
from paribus.outside import csv_cell
from paribus.report.export import (
    CASE_COLUMNS,
    LAUNCH_COLUMNS,
    TABLE_COLUMNS,
    cases_csv,
    launches_csv,
    to_json,
)

DOCS = Path(__file__).parent.parent / "docs"
EVERY = judgements.ALL | judgements.MORE
SCHEMA = json.loads((DOCS / "verdict-schema.json").read_text())
TYPES: dict[str, Any] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}
NOTES = {"$schema", "$id", "$defs", "title", "description"}


def is_a(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and not (
        isinstance(value, bool) and name in ("number", "integer")
    )


def faults(
    value: Any, schema: dict[str, Any], place: str = "$", whole: dict[str, Any] = SCHEMA
) -> list[str]:
    """Return where `value` breaks `schema`; knows the keywords that the schema uses, no others.

    `whole` holds the definitions that `schema` refers to, if not those of the verdict.
    """
    found: list[str] = []
    for keyword, wanted in schema.items():
        match keyword:
            case "$ref":
                file, name = wanted.split("#/$defs/")
                defs = SCHEMA if file == "verdict-schema.json" else whole
                found += faults(value, defs["$defs"][name], place, defs)
            case "type":
                names = [wanted] if isinstance(wanted, str) else wanted
                if not any(is_a(value, n) for n in names):
                    return [f"{place}: {value!r} is not {names}"]
            case "const":
                found += [] if value == wanted else [f"{place}: not {wanted!r}"]
            case "enum":
                found += [] if value in wanted else [f"{place}: {value!r} not in {wanted}"]
            case "minimum" | "exclusiveMinimum" | "maximum" if is_a(value, "number"):
                low = {"minimum": value >= wanted, "exclusiveMinimum": value > wanted}
                found += [] if low.get(keyword, value <= wanted) else [f"{place}: {value}"]
            case "minItems":
                found += [] if len(value) >= wanted else [f"{place}: too few"]
            case "items":
                for i, item in enumerate(value):
                    found += faults(item, wanted, f"{place}[{i}]", whole)
            case "required" if isinstance(value, dict):
                found += [f"{place}: {k} is missing" for k in wanted if k not in value]
            case "properties" if isinstance(value, dict):
                for k in wanted.keys() & value.keys():
                    found += faults(value[k], wanted[k], f"{place}.{k}", whole)
            case "additionalProperties" if isinstance(value, dict):
                for k in value.keys() - schema.get("properties", {}).keys():
                    if wanted is False:
                        found.append(f"{place}: {k} is unknown")
                    else:
                        found += faults(value[k], wanted, f"{place}.{k}", whole)
            case _:
                known = NOTES | {"required", "properties", "additionalProperties"}
                known |= {"minimum", "exclusiveMinimum", "maximum"}
                assert keyword in known, f"the validator does not know {keyword}"
    return found


@pytest.mark.parametrize("name", [*EVERY, "large"])
def test_json_follows_the_schema(name: str) -> None:
    value = to_json((EVERY | {"large": judgements.large})[name]())
    again = json.loads(json.dumps(value, allow_nan=False))
    assert again == value
    assert faults(again, SCHEMA) == []
    assert again.keys() - {"costs", "energy", "node_hours"} == set(SCHEMA["required"])


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
    assert faults(value, SCHEMA)


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
        ("layer", judgement.layers),
        ("endpoint", judgement.endpoints),
        ("pair", judgement.pairs),
        ("profile", judgement.profiles),
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
    assert len(rows) == len(judgement.points)
    for row, p in zip(rows, judgement.points, strict=True):
        assert tuple(row) == LAUNCH_COLUMNS
        assert (int(row["number"]), int(row["block"])) == (p.number, p.block)
        assert (row["benchmark"], row["arm"]) == (csv_cell(p.benchmark), csv_cell(p.arm))
        assert row["state"] == p.state.value
        assert row["counted"] == ("true" if p.block else "false")
        assert float(row["at_s"]) == p.at_s
        assert (float(row["level"]) if row["level"] else None) == p.level
        assert row["flag"] == csv_cell(p.flag)


def test_every_column_is_documented() -> None:
    page = (DOCS / "report.md").read_text()
    for column in (*CASE_COLUMNS, *LAUNCH_COLUMNS, *TABLE_COLUMNS):
        assert f"`{column}`" in page, f"docs/report.md does not explain the column {column}"
