"""values.csv and values.parquet: every figure of every launch that counts, and reading them."""

from __future__ import annotations

import csv
import math
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import judgements
import log_folders
import paribus
from paribus.border import csv_cell, printable
from paribus.core import Case, Figures, Judgement, Metric, StoreError, UserError
from paribus.logs.imported import Answers, judge_table
from paribus.logs.tables.files import read_tables
from paribus.report import export, lookup
from paribus.report.values import COLUMNS, OF_CELL, OF_LAUNCH, write_values
from processes import ran
from studies import paribus as verb

DOCS = Path(__file__).parent.parent / "docs"
EVERY = judgements.ALL | judgements.MORE


def written(judgement: Judgement, folder: Path) -> list[dict[str, str]]:
    """Return the rows of values.csv; values.parquet lies beside it."""
    write_values(judgement.figures, folder, files=not lookup.measured(judgement))
    with (folder / "values.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EVERY)
def test_both_files_hold_every_figure_of_every_launch(name: str, tmp_path: Path) -> None:
    judgement = EVERY[name]()
    every = [
        (one, case, one.metrics[metric], value)
        for one in judgement.figures
        for (metric, case), value in one.values.items()
    ]
    rows, columns = written(judgement, tmp_path), paribus.load(tmp_path)
    names = COLUMNS if not lookup.measured(judgement) else COLUMNS[:-1]
    assert tuple(columns) == names
    assert {len(column) for column in columns.values()} == {len(rows)} == {len(every)}
    for i, (row, (one, case, metric, value)) in enumerate(zip(rows, every, strict=True)):
        assert tuple(row) == names
        texts = {
            "arm": one.arm, "benchmark": one.benchmark, "case": case.to_json(),
            "metric": metric.name, "unit": metric.unit, "better": metric.better, "file": one.file,
        }  # fmt: skip
        for column in [column for column in names if column in texts]:
            assert row[column] == csv_cell(texts[column])
            assert columns[column][i] == printable(texts[column])
        numbers = {"block": one.block, "launch": one.launch, "time": one.at_s, "value": value}
        for column, number in numbers.items():
            found = float(columns[column][i])
            assert math.isnan(found) if number is None else found == number
            assert row[column] == "" if number is None else float(row[column]) == number


@pytest.mark.parametrize("name", ["two_arms", "three_arms", "sessions", "troubled", "damaged"])
def test_launches_that_count_are_there_once_and_no_others(name: str, tmp_path: Path) -> None:
    judgement = EVERY[name]()
    rows = written(judgement, tmp_path)
    good = {str(p.number) for p in judgement.points if p.block and p.level is not None}
    assert {row["launch"] for row in rows} == good
    places = Counter((row["launch"], row["case"], row["metric"]) for row in rows)
    assert set(places.values()) == {1}
    started = {str(p.number): p.at_s for p in judgement.points}
    assert all(float(row["time"]) == started[row["launch"]] for row in rows)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_compare_reads_the_values_of_a_study(ending: str, tmp_path: Path) -> None:
    judgement = judgements.two_arms()
    written(judgement, tmp_path)
    again = judge_table(read_tables([tmp_path / f"values.{ending}"]), Answers())
    assert again.reference == judgement.reference
    theirs = {head.benchmark: head for head in judgement.headlines}
    compared = []
    for head in again.headlines:
        one = theirs[head.benchmark]
        assert head.metric.name == one.metric.name
        if head.comparison.blocks == one.comparison.blocks:
            assert head.comparison.ratio == pytest.approx(one.comparison.ratio, rel=1e-12)
            compared.append(head.benchmark)
    assert len(compared) > 3
    assert not [n.name for n in again.notices if n.name == "columns ignored"]


def test_each_log_is_named_also_where_a_file_holds_several(tmp_path: Path) -> None:
    for arm, effect in (("old", 1.0), ("new", 1.06)):
        texts = list(log_folders.many(effect, count=9).values())
        log_folders.write(tmp_path / arm, {"all.log": "".join(texts[:8]), "last.log": texts[8]})
    judgement = log_folders.judged(tmp_path / "old", tmp_path / "new")
    rows = written(judgement, tmp_path)
    files = {row["file"] for row in rows if row["arm"] == "old"}
    base = tmp_path / "old"
    assert files == {str(base / "last.log"), *(f"{base}/all.log#{n}" for n in range(1, 9))}
    launches = {(row["file"], row["launch"]) for row in rows}
    assert len(launches) == len({row["file"] for row in rows}) == 18


@pytest.mark.parametrize("pairs", ["time", ""])
def test_logs_that_have_no_neighbour_are_there_as_well(pairs: str, tmp_path: Path) -> None:
    """Twelve of one arm and nine of the other: three have no block, and count unpaired."""
    for place, (arm, count) in enumerate((("old", 12), ("new", 9))):
        times = [1_763_683_200.0 + 600 * n + 200 * place for n in range(count)]
        log_folders.write(tmp_path / arm, log_folders.many(1 + place / 9, count=count), times)
    judgement = log_folders.judged(tmp_path / "old", tmp_path / "new", pair=pairs)
    rows = written(judgement, tmp_path)
    assert len({row["file"] for row in rows}) == 21
    assert len({row["launch"] for row in rows}) == 21
    without = {row["file"] for row in rows if not row["block"]}
    assert len(without) == 3


def test_both_verbs_write_them(tmp_path: Path) -> None:
    rows = ["arm,benchmark,metric,value,unit,better,block"]
    draw = Random(1)
    rows += [
        f"{arm},b,t,{9 + place + draw.random()},s,lower,{block}"
        for block in range(1, 10)
        for place, arm in enumerate("xy")
    ]
    (tmp_path / "numbers.csv").write_text("\n".join(rows))
    done = verb("compare", "numbers.csv", "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    values = paribus.load(tmp_path / "out")
    assert set(values["file"]) == {"numbers.csv"}
    assert values["block"].tolist() == [*range(1, 10)] * 2
    assert values["unit"].tolist() == ["s"] * 18


def test_a_spreadsheet_computes_nothing_and_a_program_gets_the_text(tmp_path: Path) -> None:
    metric = Metric("=1+1", "@u", "lower")
    one = Figures("-O2", 1, 1, 0.0, "+b", {"=1+1": metric}, {("=1+1", Case()): 2.5}, "=file")
    write_values([one], tmp_path, files=True)
    text = (tmp_path / "values.csv").read_text().splitlines()[1]
    assert text == "'-O2,1,1,0.0,'+b,{},'=1+1,'@u,lower,2.5,'=file"
    values = paribus.load(tmp_path)
    texts = [values[name][0] for name in ("arm", "benchmark", "metric", "unit", "file")]
    assert texts == ["-O2", "+b", "=1+1", "@u", "=file"]


def test_ten_thousand_launches_are_written_and_read_without_slowness(tmp_path: Path) -> None:
    metrics = {name: Metric(name, "us", "lower") for name in ("latency", "latency p99")}
    cases = [Case.of(bytes=2**n) for n in range(22)]
    many = [
        Figures(
            *("host", n // 2, n, n * 1.1, "latency", metrics),
            {(name, case): n + 0.1 for case in cases for name in metrics},
        )
        for n in range(1, 10_001)
    ]
    began = time.monotonic()
    write_values(many, tmp_path, files=False)
    values = paribus.load(tmp_path)
    assert time.monotonic() - began < 20  # 1.1 s where nothing else is going on
    assert len(values["value"]) == 440_000
    assert values["value"][-1] == 10_000.1


def test_what_is_not_there_is_an_error_with_its_fix(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file or directory\n  `paribus report DIR`"):
        paribus.load(tmp_path)
    (tmp_path / "values.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(StoreError, match="is not whole"):
        paribus.load(str(tmp_path))
    (tmp_path / "values.parquet").unlink()
    os.mkfifo(tmp_path / "values.parquet")
    with pytest.raises(StoreError, match="it is a pipe"):
        paribus.load(tmp_path)


def test_another_table_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    write_table(pa.table({"arm": ["x"]}), str(tmp_path / "values.parquet"))
    with pytest.raises(StoreError, match="has no column block"):
        paribus.load(tmp_path)


def test_a_frame_has_the_columns_as_they_are(tmp_path: Path) -> None:
    written(judgements.three_arms(), tmp_path)
    values = paribus.load(tmp_path)
    frame = values.to_pandas()
    assert list(frame.columns) == list(values)
    assert all(list(frame[name]) == list(column) for name, column in values.items())


def test_a_frame_needs_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(judgements.three_arms(), tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pandas is not installed\n  pip install pandas"):
        paribus.load(tmp_path).to_pandas()


IN_R = """\
read <- NULL
if (requireNamespace("nanoparquet", quietly = TRUE)) read <- nanoparquet::read_parquet
if (requireNamespace("arrow", quietly = TRUE)) read <- arrow::read_parquet
if (is.null(read)) quit(status = 3)
values <- as.data.frame(read(commandArgs(TRUE)[1]))
kinds <- vapply(values, function(one) if (is.numeric(one)) "number" else "text", "")
as_text <- function(one) if (is.numeric(one)) format(one, digits = 17) else as.character(one)
write.csv(rbind(kinds, as.data.frame(lapply(values, as_text))), row.names = FALSE)
"""


def seen_by_r(file: Path) -> dict[str, list[str]]:
    """Return the columns of a Parquet file as R sees them, the kind of each first."""
    program = shutil.which("Rscript")
    if program is None:
        pytest.skip("no Rscript on this machine")
    argv = [program, "-e", IN_R, str(file)]
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = ran(argv, env=env)
    if done.returncode == 3:
        pytest.skip("R has neither nanoparquet nor arrow, which read Parquet")
    assert done.returncode == 0, done.stderr
    head, *rows = csv.reader(done.stdout.splitlines())
    return dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.parametrize("name", ["two_arms", "three_arms", "logs_untimed", "hostile"])
def test_r_opens_the_file(name: str, tmp_path: Path) -> None:
    written(EVERY[name](), tmp_path)
    values = paribus.load(tmp_path)
    columns = seen_by_r(tmp_path / "values.parquet")
    assert [*columns] == [*values]
    for column, (kind, *cells) in columns.items():
        if kind == "text":
            assert cells == [*values[column]], column
        else:
            found = [math.nan if cell.strip() == "NA" else float(cell) for cell in cells]
            assert found == pytest.approx([*values[column]], rel=1e-15, nan_ok=True), column
    numbers = {column for column, (kind, *_) in columns.items() if kind == "number"}
    assert numbers == {"block", "launch", "time", "value"}


def test_r_opens_a_file_whose_texts_grow(tmp_path: Path) -> None:
    """Each thousand launches brings texts that were not in the dictionary before."""
    metrics = {"latency": Metric("latency", "us", "lower")}
    many = [
        Figures(*(f"arm{n // 700}", n, n, n * 1.0, "b", metrics), {("latency", Case()): n + 0.5})
        for n in range(1, 2501)
    ]
    write_values(many, tmp_path, files=False)
    columns = seen_by_r(tmp_path / "values.parquet")
    assert columns["arm"][1:] == [f"arm{n // 700}" for n in range(1, 2501)]
    assert [float(one) for one in columns["value"][1:]] == [n + 0.5 for n in range(1, 2501)]


def test_every_column_is_documented() -> None:
    page = (DOCS / "report.md").read_text().partition("## Values of every")[2].partition("\n## ")[0]
    table = [line.partition(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", " ".join(table)) == [*OF_LAUNCH, *OF_CELL, "value", "file"]


# --- a table in memory


@pytest.mark.parametrize("name", sorted(EVERY))
def test_columns_in_memory_say_what_their_file_says(tmp_path: Path, name: str) -> None:
    """Also as a data frame, where pandas writes gaps as NaN."""
    pandas = pytest.importorskip("pandas")
    judgement = EVERY[name]()
    written(judgement, tmp_path)
    first = judgement.study.arms[0].name
    columns = paribus.load(tmp_path)

    def outcome(compare: Callable[[], dict[str, Any]]) -> object:
        try:
            return compare()["headlines"]
        except UserError as error:
            return error.cause

    def of_file() -> dict[str, Any]:
        table = read_tables([tmp_path / "values.csv"])
        return export.to_json(judge_table(table, Answers(reference=first)))

    of = outcome(of_file)
    assert outcome(lambda: paribus.compare(columns, reference=first)) == of
    frame = pandas.read_csv(tmp_path / "values.csv")
    assert outcome(lambda: paribus.compare(frame, reference=first)) == of


def test_columns_that_are_no_table_are_refused() -> None:
    with pytest.raises(UserError, match="columns of"):
        paribus.compare({"arm": ["a"], "value": [1, 2]})
    with pytest.raises(UserError, match="no column 'benchmark'"):
        paribus.compare({"arm": ["a"], "value": [1]})
