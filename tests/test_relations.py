"""Two inputs of one question get answers that agree, whatever the answers are.

No figure is known beforehand here: a table in another format, beside another benchmark, or in
another unit says the same.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from log_folders import FIXTURES
from paribus.core import Judgement
from paribus.logs.imported import Answers, judge_table
from paribus.logs.reading import read_files
from paribus.logs.tables.files import read_tables

Row = dict[str, Any]


def rows_of(
    benchmark: str, design: str, count: int, *, effect: float, noise: float, seed: int
) -> list[Row]:
    """Return rows of two arms: in "blocks", in "turns", "apart", or in no order that is known."""
    draw = random.Random(seed)
    of = {"benchmark": benchmark, "metric": "time", "unit": "us", "better": "lower"}
    rows = []
    for number in range(1, count + 1):
        for place, (arm, factor) in enumerate((("host", 1.0), ("bridged", effect))):
            launch = draw.lognormvariate(0, noise)
            designs: dict[str, Row] = {
                "blocks": {"block": number},
                "turns": {"time": 100 * number + place},
                "apart": {"time": 1e6 * place + number},
                "unordered": {},
            }
            rows += [
                {"arm": arm, **of, "case": f"bytes={size}", "value": level * factor * launch}
                | designs[design]
                for size, level in ((8, 5.0), (1024, 6.0))
            ]
    return rows


def judged(folder: Path, rows: Sequence[Row], **answers: Any) -> Judgement:
    path = folder / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return judge_table(read_tables([path]), Answers(**answers))


def said(judgement: Judgement, benchmark: str = "ping") -> list[Any]:
    """Return the answer on a benchmark: words, reasons and figures of all its findings."""
    return [
        (f.metric.name, f.case, f.verdict.word, f.verdict.code, f.comparison, f.margin)
        for f in (*judgement.headlines, *judgement.others, *judgement.cases)
        if f.benchmark == benchmark
    ]


@settings(max_examples=12, deadline=None)
@given(
    design=st.sampled_from(("blocks", "turns", "turns", "apart", "unordered")),
    beside=st.sampled_from(("turns", "apart")),
    counts=st.tuples(*[st.sampled_from((1, 2, 5, 7, 8, 12))] * 2),
    effect=st.floats(0.8, 1.25),
    seed=st.integers(0, 2**32),
)
def test_a_benchmark_beside_it_changes_no_verdict(
    tmp_path_factory: pytest.TempPathFactory,
    design: str,
    beside: str,
    counts: tuple[int, int],
    effect: float,
    seed: int,
) -> None:
    """Whether the arms of one alternate, and how often it ran, says nothing of another."""
    folder = tmp_path_factory.mktemp("beside")
    timed = design in ("turns", "apart")
    rows = rows_of("ping", design, counts[0], effect=effect, noise=0.01, seed=seed)
    others = rows_of(
        "pong", beside if timed else design, counts[1], effect=1.1, noise=0.01, seed=seed + 1
    )
    alone = judged(folder, rows)
    for both in ([*rows, *others], [*others, *rows]):
        assert said(judged(folder, both, reference="host")) == said(alone)


def test_times_in_seconds_are_no_date_however_many_benchmarks_there_are(tmp_path: Path) -> None:
    """They count from any time: a report names no day on which the launches began."""
    rows = rows_of("ping", "turns", 12, effect=1.1, noise=0.01, seed=1)
    others = rows_of("pong", "turns", 4, effect=1.1, noise=0.01, seed=2)
    for some in (rows, [*rows, *others]):
        assert judged(tmp_path, some).started is None


def as_parquet(folder: Path, rows: Sequence[Row]) -> Path:
    path = folder / "table.parquet"
    parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def test_columns_of_other_names_count_in_parquet_as_in_csv(tmp_path: Path) -> None:
    """Columns that distinguish cases, facts of the arms, and some that are neither."""
    arms = {"host": "6.1", "bridged": "6.6"}
    rows = [
        {**row, "case": "", "value": row["value"] * nodes, "nodes": nodes,
         "kernel": arms[row["arm"]], "jobid": 10 * number + nodes, "debug": None, "tuned": True}
        for number, row in enumerate(rows_of("ping", "blocks", 8, effect=1.1, noise=0.01, seed=1))
        if row["case"] == "bytes=8"
        for nodes in (1, 2, 4)
    ]  # fmt: skip
    for row in rows:
        row["parts"] = [1, 2]
    table = judge_table(read_tables([as_parquet(tmp_path, rows)]), Answers())
    expected = judged(tmp_path, rows)
    assert said(table) == said(expected)
    assert [dict(f.case.items) for f in table.cases if f.case] == [
        {"nodes": nodes} for nodes in (1, 2, 4)
    ]
    assert table.differences == expected.differences != ()
    assert [n for n in table.notices if n.name == "columns ignored"] == [
        n for n in expected.notices if n.name == "columns ignored"
    ]


# --- values in coarse steps -----------------------------------------------------------------


@pytest.mark.parametrize("blocks", [6, 7, 8, 12, 30])
@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((("1.3", "1.3"), ("1.4", "1.4")), "withheld"),  # one step of 7 % is all there is
        ((("20.0", "20.4"), ("10.0", "10.2")), "faster"),  # no step of 2 % makes that doubtful
    ],
)
def test_few_blocks_are_as_coarse_as_many(
    tmp_path: Path, blocks: int, values: Sequence[Sequence[str]], word: str
) -> None:
    """Too few blocks for a verdict on a case change nothing in how coarse its values are."""
    rows = [
        {**row, "value": values[row["arm"] == "bridged"][row["block"] % 2]}
        for row in rows_of("ping", "blocks", blocks, effect=1.0, noise=0.0, seed=1)
        if row["case"] == "bytes=8"
    ]
    assert [f.verdict.word.value for f in judged(tmp_path, rows).headlines] == [word]


# --- launches at one time -------------------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(count=st.sampled_from((4, 6, 9)), tied=st.booleans(), seed=st.integers(0, 2**32))
def test_launches_at_one_time_do_not_favour_the_reference(
    tmp_path_factory: pytest.TempPathFactory, count: int, tied: bool, seed: int
) -> None:
    """Times to the minute are often those of both arms: which was first, they do not show."""
    draw = random.Random(seed)
    rows = [
        {**row, "time": row["time"] // 100 * 60 + (0 if tied else draw.choice((0, 0, 1)))}
        for row in rows_of("ping", "turns", count, effect=1.03, noise=0.02, seed=seed)
        if row["case"] == "bytes=8"
    ]
    one, other = (
        judged(tmp_path_factory.mktemp("ties"), rows, reference=arm) for arm in ("host", "bridged")
    )
    pairs = [judgement.headlines[0].comparison for judgement in (one, other)]
    assert pairs[0] is not None
    assert pairs[1] is not None
    assert pairs[0].ratio == pytest.approx(1 / pairs[1].ratio)
    names = [[n.name for n in judgement.notices] for judgement in (one, other)]
    assert names[0] == names[1]
    assert "order fixed" not in names[0] or not tied


@pytest.mark.parametrize("order", ["hb", "hhb", "hhhb", "hbb"])
def test_times_that_pair_one_block_take_no_launch_away(tmp_path: Path, order: str) -> None:
    draw = random.Random(order)
    of = {"benchmark": "ping", "metric": "time", "unit": "us", "better": "lower"}
    arms = {"h": "host", "b": "bridged"}
    rows: list[Row] = [
        {"arm": arms[letter], **of, "value": draw.uniform(1, 2), "time": 60 * place}
        for place, letter in enumerate(order)
    ]
    timed = judged(tmp_path, rows)
    bare = judged(tmp_path, [{k: v for k, v in row.items() if k != "time"} for row in rows])
    assert said(timed) == said(bare)
    counts = [f.reference_value.launches for f in timed.headlines if f.reference_value]
    assert counts == [order.count("h")]


def test_blanks_at_the_ends_of_lines_hide_nothing(tmp_path: Path) -> None:
    """As in what was pasted from a terminal: HPL, fio and IMB were refused."""
    path = tmp_path / "x.log"
    for folder in sorted(FIXTURES.iterdir()):
        for good in sorted(folder.glob("good-*.out"))[:1]:
            found = []
            for text in (good.read_text(), good.read_text().replace("\n", "  \t\n")):
                path.write_text(text)
                (held,) = read_files([(str(path), path.stat().st_size)])
                found.append([log.reading for log in held.found])
            assert found[0] == found[1], good
