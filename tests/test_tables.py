"""Tables from elsewhere: what is read, how it is paired, and the error of every damaged one."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from paribus.core import Case, UserError
from paribus.logs.tables import files
from paribus.logs.tables.columns import distinguishes, sort_columns
from paribus.logs.tables.files import MOST_LINE, read_tables
from paribus.logs.tables.launches import Arrangement, arrange
from paribus.logs.tables.table import read_case

Row = dict[str, Any]
COLUMNS = ("arm", "block", "benchmark", "case", "metric", "unit", "better", "value")


def rows_of(
    blocks: int = 3, arms: Sequence[str] = ("host", "bridged"), cases: Sequence[str] = ("bytes=8",)
) -> list[Row]:
    """Return a small table: every value says where it stands."""
    return [
        {
            "arm": arm,
            "block": block,
            "benchmark": "ping",
            "case": case,
            "metric": "latency",
            "unit": "us",
            "better": "lower",
            "value": 1 + block + 0.1 * index + 0.01 * place,
        }
        for block in range(1, blocks + 1)
        for index, arm in enumerate(arms)
        for place, case in enumerate(cases)
    ]


def as_csv(rows: Iterable[Mapping[str, Any]], delimiter: str = ",") -> str:
    listed = list(rows)
    columns = list(dict.fromkeys(name for row in listed for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def arranged(*paths: Path, reference: str = "") -> Arrangement:
    (found,) = arrange(read_tables(paths), reference)
    return found


def figures(found: Arrangement, benchmark: int = 0) -> list[list[list[float]]]:
    """Return the figures of a benchmark in blocks, by arm, block and cell."""
    group = found.groups[benchmark]
    return [
        [[of[arm][number] for of in group.figures.values()] for number in group.numbers]
        for arm in found.arms
    ]


def refusal(*paths: Path, reference: str = "") -> str:
    with pytest.raises(UserError) as caught:
        arranged(*paths, reference=reference)
    assert caught.value.fix, "an error says what to do"
    return str(caught.value)


def changed(rows: list[Row], index: int, **cells: Any) -> list[Row]:
    return [{**row, **cells} if i == index else row for i, row in enumerate(rows)]


# --- formats --------------------------------------------------------------------------------


def write_parquet(folder: Path, rows: Sequence[Row]) -> Path:
    path = folder / "t.parquet"
    parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


FORMATS: Mapping[str, Callable[[Path, list[Row]], Path]] = {
    "comma": lambda folder, rows: written(folder, as_csv(rows)),
    "tab": lambda folder, rows: written(folder, as_csv(rows, "\t")),
    "semicolon": lambda folder, rows: written(folder, as_csv(rows, ";")),
    "byte order mark": lambda folder, rows: written(
        folder, b"\xef\xbb\xbf" + as_csv(rows).encode()
    ),
    "carriage returns": lambda folder, rows: written(folder, as_csv(rows).replace("\n", "\r\n")),
    "old line ends": lambda folder, rows: written(folder, as_csv(rows).replace("\n", "\r")),
    "no line end": lambda folder, rows: written(folder, as_csv(rows).rstrip("\n")),
    "quoted": lambda folder, rows: written(
        folder, as_csv(rows).replace("ping", '"ping"').replace("block", '"block"')
    ),
    "json lines": lambda folder, rows: written(folder, as_json(rows), "t.jsonl"),
    "json lines, wrong ending": lambda folder, rows: written(folder, as_json(rows), "t.csv"),
    "json lines, blank lines": lambda folder, rows: written(
        folder, "\n" + as_json(rows).replace("\n", "\n\n"), "t.json"
    ),
    "parquet": write_parquet,
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_launches(tmp_path: Path, name: str) -> None:
    rows = rows_of(cases=("bytes=8", "bytes=1024"))
    found = arranged(FORMATS[name](tmp_path, rows))
    assert (found.kind, found.arms) == ("blocks", ("host", "bridged"))
    (group,) = found.groups
    assert group.benchmark == "ping"
    assert [*group.figures] == [("latency", Case.of(bytes=8)), ("latency", Case.of(bytes=1024))]
    assert group.names == ("1", "2", "3")
    expected = [
        [[1 + b + 0.1 * arm + 0.01 * case for case in range(2)] for b in (1, 2, 3)]
        for arm in range(2)
    ]
    assert figures(found) == expected


def test_two_files_are_two_arms_named_after_them(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "arm"} for row in rows_of(arms=("x",))]
    host = written(tmp_path, as_csv(rows), "host.csv")
    bridged = written(tmp_path, as_json(rows), "bridged.jsonl")
    assert arranged(host, bridged).arms == ("host", "bridged")
    assert arranged(bridged, host).arms == ("bridged", "host")
    assert arranged(host, bridged, reference="bridged").arms == ("bridged", "host")
    (tmp_path / "old").mkdir()
    old = written(tmp_path / "old", as_csv(rows), "host.csv")
    assert arranged(host, old).arms == (str(host), str(old))


def test_a_parquet_category_that_no_row_has_is_no_arm(tmp_path: Path) -> None:
    arms = pa.DictionaryArray.from_arrays(
        pa.array([2, 1] * 3, pa.int8()), pa.array(["unused", "bridged", "host"])
    )
    table = pa.Table.from_pylist(rows_of()).set_column(0, "arm", arms)
    parquet.write_table(table, tmp_path / "t.parquet")
    assert arranged(tmp_path / "t.parquet").arms == ("host", "bridged")


def test_nested_cases_of_json_are_parameters(tmp_path: Path) -> None:
    rows = [{**row, "case": {"ranks": 2, "bytes": 8}} for row in rows_of()]
    for path in (written(tmp_path, as_json(rows), "t.jsonl"), write_parquet(tmp_path, rows)):
        assert [*arranged(path).groups[0].figures] == [("latency", Case.of(bytes=8, ranks=2))]
    lists = [{**row, "case": {"ranks": [2, 4]}} for row in rows]
    for path in (written(tmp_path, as_json(lists), "t.jsonl"), write_parquet(tmp_path, lists)):
        assert "column case: has a parameter that holds a list, not a name" in refusal(path)


def test_a_column_of_json_may_begin_below_the_lines_that_are_looked_at(tmp_path: Path) -> None:
    rows = [{**row, "value": 1.0 + row["block"]} for row in rows_of(blocks=600)]
    late = [{**row, "launch": "a"} if i >= 1100 else row for i, row in enumerate(rows)]
    reported = refusal(written(tmp_path, as_json(late), "t.jsonl"))
    assert "row 1 (line 1), column launch: is empty" in reported


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("", Case()),
        ("bytes=8", Case.of(bytes=8)),
        ("ranks = 2; bytes=8", Case.of(bytes=8, ranks=2)),
        ('{"bytes": 8}', Case.of(bytes=8)),
        ("{}", Case()),
        ("large", Case.of(case="large")),
        ("4096", Case.of(case=4096)),
        ("=", Case.of(case="=")),
        ("{not json", Case.of(case="{not json")),
        ("9" * 40, Case.of(case="9" * 40)),
    ],
)
def test_cases_are_read_as_they_are_written(text: str, case: Case) -> None:
    assert read_case(text) == case


def test_blocks_are_in_the_order_of_their_numbers_or_times(tmp_path: Path) -> None:
    rows = rows_of(blocks=11)
    random.Random(1).shuffle(rows)
    assert arranged(written(tmp_path, as_csv(rows))).groups[0].names[-2:] == ("10", "11")
    timed = [{**row, "time": -row["block"]} for row in rows]
    assert arranged(written(tmp_path, as_csv(timed))).groups[0].names[:2] == ("11", "10")


def test_blocks_are_in_order_however_long_their_numbers_are(tmp_path: Path) -> None:
    long = {1: "8" * 5000, 2: "9" * 5000, 3: "x"}
    rows = [{**row, "block": long[row["block"]]} for row in reversed(rows_of())]
    assert arranged(written(tmp_path, as_csv(rows))).groups[0].names == (long[1], long[2], "x")


def test_samples_count_by_their_median_and_launches_by_theirs(tmp_path: Path) -> None:
    rows = [
        {**row, "launch": launch, "iteration": i, "value": row["value"] * launch * (1 + i**2)}
        for row in rows_of()
        for launch in (1, 2, 3)
        for i in range(3)
    ]
    found = arranged(written(tmp_path, as_csv(rows)))
    assert found.several
    assert found.sampled
    assert np.array(figures(found))[:, :, 0] == pytest.approx(
        np.array([[2.0, 3.0, 4.0], [2.1, 3.1, 4.1]]) * 2 * 2, rel=1e-12
    )


# --- what pairs -----------------------------------------------------------------------------


def timed(order: str, *, at: Callable[[int], Any] = float) -> list[Row]:
    """Return one launch for each letter of `order`, a second apart."""
    return [
        {
            "arm": letter,
            "time": at(i),
            "benchmark": "ping",
            "metric": "latency",
            "unit": "us",
            "better": "lower",
            "value": 1.0 + i,
        }
        for i, letter in enumerate(order)
    ]


@pytest.mark.parametrize(
    ("order", "pairs", "unpaired"),
    [
        ("ABABABAB", 4, 0),
        ("ABBABAAB", 4, 0),
        ("AABBAABB", 3, 2),
        ("ABABBAB", 3, 1),
        ("BCACABABC", 3, 0),
    ],
)
def test_launches_that_alternate_are_paired_with_their_neighbours(
    tmp_path: Path, order: str, pairs: int, unpaired: int
) -> None:
    rows = timed(order)
    random.Random(2).shuffle(rows)
    found = arranged(written(tmp_path, as_csv(rows)), reference="A")
    assert (found.kind, found.unpaired) == ("neighbours", unpaired)
    assert len(found.groups[0].names) == pairs
    times = found.groups[0].times
    assert times is not None
    for number in found.groups[0].numbers:
        starts = [times[arm][number] for arm in found.arms]
        assert max(starts) - min(starts) == len(found.arms) - 1
    assert found.gap_s == 1.0


@pytest.mark.parametrize("order", ["AAAABBBB", "AAAAABBBBBAAAAABBBBB", "AAAAAAB"])
def test_launches_in_a_row_are_not_paired(tmp_path: Path, order: str) -> None:
    assert arranged(written(tmp_path, as_csv(timed(order)))).kind == "apart"


@pytest.mark.parametrize(
    "at",
    [
        float,
        lambda i: f"2026-11-21T08:00:{i:02d}Z",
        lambda i: f"2026-11-21T09:00:{i:02d}+01:00",
        lambda i: f"2026-11-21 08:00:{i:02d}",
    ],
)
def test_times_are_seconds_or_dates(tmp_path: Path, at: Callable[[int], Any]) -> None:
    for path in (
        written(tmp_path, as_csv(timed("ABBA", at=at))),
        written(tmp_path, as_json(timed("ABBA", at=at)), "t.jsonl"),
    ):
        assert arranged(path).gap_s == 1.0


def test_without_blocks_and_times_rows_are_launches_of_unknown_order(tmp_path: Path) -> None:
    rows = [{k: v for k, v in row.items() if k != "block"} for row in rows_of()]
    found = arranged(written(tmp_path, as_csv(rows)))
    assert found.kind == "unordered"
    (of_cell,) = found.groups[0].figures.values()
    assert {arm: [*of.values()] for arm, of in of_cell.items()} == {
        "host": pytest.approx([2.0, 3.0, 4.0]),
        "bridged": pytest.approx([2.1, 3.1, 4.1]),
    }


def test_a_block_that_is_not_whole_is_left_out_and_named(tmp_path: Path) -> None:
    rows = rows_of(blocks=4, cases=("bytes=8", "bytes=16"))
    del rows[-1]  # one case of bridged in block 4
    rows = [row for row in rows if (row["arm"], row["block"]) != ("host", 2)]
    (group,) = arranged(written(tmp_path, as_csv(rows))).groups
    assert group.names == ("1", "3")
    assert group.left_out == (("2", "arm 'host'"), ("4", "1 of 2 cases of 'bridged'"))
    assert (group.attempted, group.lacking) == (4, ((2,), (4,)))


# --- what is refused ------------------------------------------------------------------------

GOOD = rows_of()
CELLS: Mapping[str, tuple[list[Row], str]] = {
    "text": (
        changed(GOOD, 2, value="fast"),
        "row 3 (line 4), column value: 'fast' is not a number",
    ),
    "decimal comma": (changed(GOOD, 1, value="5,1"), "row 2 (line 3), column value: '5,1' is not"),
    "unit in the cell": (changed(GOOD, 1, value="5 us"), "column value: '5 us' is not a number"),
    "empty": (changed(GOOD, 4, value=""), "row 5 (line 6), column value: is empty"),
    "nan": (changed(GOOD, 3, value="nan"), "row 4 (line 5), column value: NaN is not"),
    "infinity": (changed(GOOD, 0, value="inf"), "row 1 (line 2), column value: an infinite value"),
    "huge": (changed(GOOD, 0, value="1e999"), "row 1 (line 2), column value: an infinite value"),
    "zero": (changed(GOOD, 5, value=0), "row 6 (line 7), column value: 0 is not above zero"),
    "negative": (changed(GOOD, 5, value=-2.5), "row 6 (line 7), column value: -2.5 is not above"),
    "mixed units": (
        changed(GOOD, 3, unit="ms"),
        "row 4 (line 5), column unit: 'ms', but 'ping latency' has 'us' in ",
    ),
    "mixed directions": (changed(GOOD, 1, better="higher"), "column better: 'higher', but"),
    "unknown direction": (
        changed(GOOD, 1, better="Lower"),
        "row 2 (line 3), column better: 'Lower' is not a direction\n  did you mean 'lower'?",
    ),
    "duplicate key": (
        [*GOOD, GOOD[1]],
        "row 7 (line 8): has the same arm, block, benchmark, case, metric as",
    ),
    "empty arm": (changed(GOOD, 1, arm=""), "row 2 (line 3), column arm: is empty"),
    "empty block": (changed(GOOD, 1, block=""), "row 2 (line 3), column block: is empty"),
    "one arm only": (changed(rows_of(arms=("host",)), 0), "has one arm only, 'host'"),
    "a case of one arm only": (
        changed(GOOD, 3, case="bytes=16"),
        "row 4 (line 5), column case: case '16 B' of 'latency' of 'ping' is in arm 'bridged'",
    ),
    "a benchmark of one arm only": (
        changed(GOOD, 3, benchmark="pong"),
        "column benchmark: benchmark 'pong' is in arm 'bridged', but not in arm 'host'",
    ),
    "a metric of one arm only": (
        changed(GOOD, 3, metric="cost"),
        "column metric: metric 'cost' of 'ping' is",
    ),
    "no common block": (
        [{**row, "block": f"{row['arm']} {row['block']}"} for row in GOOD],
        "no block of benchmark 'ping' is complete in all arms: block 'bridged 1' lacks arm 'host'",
    ),
    "a time like no other": (
        changed(timed("ABBA"), 2, time="noon"),
        "row 3 (line 4), column time: 'noon' is not a time",
    ),
    "a date without the time zone of others": (
        changed(timed("ABBA", at=lambda i: f"2026-11-21T08:00:0{i}Z"), 1, time="2026-11-21T09:00"),
        "column time: is a date, but ",
    ),
    "a letter that only looks like one": (
        changed(GOOD, 1, value="\u0131nf"),
        "row 2 (line 3), column value: '\u0131nf' is not a number",
    ),
    "digits with underscores": (changed(GOOD, 1, value="1_000"), "value: '1_000' is not a number"),
    "an escape sequence": (changed(GOOD, 1, value="\x1b[31m9"), r"'\x1b[31m9' is not a number"),
    "many arms": (
        [{**row, "arm": f"run {i}"} for i, row in enumerate(rows_of(blocks=40))],
        "has 80 arms",
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_bad_cell_is_named_by_row_and_column(tmp_path: Path, name: str) -> None:
    rows, expected = CELLS[name]
    reported = refusal(written(tmp_path, as_csv(rows)))
    assert expected in reported
    assert str(tmp_path / "t.csv") in reported
    assert "\x1b" not in reported


@pytest.mark.parametrize("name", ["text", "zero", "negative", "mixed units", "duplicate key"])
def test_json_lines_name_row_and_line_too(tmp_path: Path, name: str) -> None:
    rows, expected = CELLS[name]
    path = written(tmp_path, "\n" + as_json(rows), "t.jsonl")
    words = [w for w in expected.split(":")[0].split(", ") if w.startswith("row") and "line" in w]
    reported = refusal(path)
    assert expected.rpartition(": ")[2].partition(" in row")[0] in reported
    assert all(word in reported for word in words)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("arm,value\n", "has no column 'benchmark'"),
        (as_csv(GOOD).splitlines()[0] + "\n", "has no rows"),
        (as_csv(GOOD).replace("benchmark", "benchmrk"), "did you mean 'benchmrk'?"),
        (as_csv(GOOD).replace("value", "Value"), "did you mean 'Value'?"),
        (as_csv(GOOD).replace("unit", "block"), "has two columns 'block'"),
        ("hello\nworld\n", "has no header that Paribus knows"),
        (as_csv(GOOD) + "host,1\n", "row 7 (line 8): has 2 cells, but the header has 8"),
        (as_csv(GOOD) + ",".join("x" * 9) + "\n", "row 7 (line 8): has 9 cells"),
        (as_csv(GOOD) + '"host,1\n', "row 7 (line 8): has 1 cells"),
        (as_csv(GOOD).encode() + b"\xff,1,p,,m,u,lower,1\n", "line 8: is not UTF-8 text"),
        (as_csv(GOOD).encode("utf-16"), "is not UTF-8 but UTF-16"),
        (b"\x1f\x8b\x08", "is compressed"),
        (b"\xfd7zXZ\x00arm,benchmark", "is compressed\n  unpack it first: unxz"),
        (b"BZh91AY&SYarm,benchmark", "is compressed\n  unpack it first: bunzip2"),
        (b"PK\x03\x04", "is a zip archive or a spreadsheet"),
        (b"SQLite format 3\0", "is a SQLite database"),
        (json.dumps(GOOD), "is one JSON array"),
        (as_json(GOOD)[:-20], "row 6 (line 6): is not JSON"),
        ('{\n  "results": []\n}\n', "row 1 (line 1): is neither a table nor a result file of"),
        (as_json(GOOD) + "[1]\n", "row 7 (line 7): holds a list, not an object"),
        (as_json(GOOD) + '{"value": NaN}\n', "value"),
        (as_json(GOOD).replace("2.0}", '"2.0"}'), "row 1 (line 1), column value: '2.0' is not a"),
        (as_json(GOOD).replace("2.0}", "true}"), "column value: 'True' is not a number"),
        (as_json(GOOD).replace("2.0}", "1e999}"), "(line 1), column value: an infinite value is"),
        (as_json(GOOD).replace("2.0}", "9" * 400 + "}"), "column value: an infinite value"),
        (as_json(GOOD).replace('"block": 2', '"block": "x"', 1), "'x' is a text, but row 1 has a"),
        (as_json(GOOD).replace('"us"', "5", 1), "column unit: 'us' is a text, but row 1 has a num"),
        (as_json(GOOD).replace(', "value": 2.0', ""), "row 1 (line 1), column value: is empty"),
        (as_json(GOOD).replace('"case"', '"unit"', 1), "the key 'unit' occurs twice"),
        (as_json(GOOD).replace('"arm": "host"', '"arm": 1', 3), "arm: 'bridged' is a text, but"),
        (b"PAR1" + b"\x00" * 100, "is a damaged or truncated Parquet file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_table_says_why(
    tmp_path: Path, content: str | bytes, expected: str
) -> None:
    reported = refusal(written(tmp_path, content))
    assert expected in reported
    assert "Traceback" not in reported


def test_a_table_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = {**GOOD[1], "note": "x" * MOST_LINE}
    reported = refusal(written(tmp_path, as_json([GOOD[0], long]), "t.jsonl"))
    assert f"{tmp_path / 't.jsonl'}, line 2: is longer than 1 MiB" in reported
    reported = refusal(written(tmp_path, as_csv([{**GOOD[0], "note": ""}, long])))
    assert f"{tmp_path / 't.csv'}, line 3: is longer than 1 MiB" in reported
    monkeypatch.setattr(files, "MOST_ROWS", 5)
    for name in ("comma", "json lines"):
        assert "has more than 5 rows" in refusal(FORMATS[name](tmp_path, GOOD))
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    assert "is larger than 100 B" in refusal(written(tmp_path, as_csv(GOOD)))


@pytest.mark.timeout(20)
def test_cells_as_long_as_they_may_be_take_no_time(tmp_path: Path) -> None:
    """A form that tries every split of a cell takes hours for 131,072 characters."""
    digits = changed(GOOD, 1, value="9" * 131_000 + "x")
    assert "is not a number" in refusal(written(tmp_path, as_csv(digits)))
    spaces = [{**row, "case": f"a=x{' ' * 131_000}y"} for row in GOOD]
    assert len(arranged(written(tmp_path, as_csv(spaces))).groups[0].figures) == 1


def test_a_long_text_in_every_row_of_parquet_is_in_memory_once(tmp_path: Path) -> None:
    rows = 20_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), ["x" * 65_536])
    texts = dict.fromkeys(("arm", "benchmark", "metric"), text)
    path = tmp_path / "t.parquet"
    table = pa.table({**texts, "value": [1.0] * rows})
    parquet.write_table(table, path, store_schema=False)  # a reader takes them for plain texts
    code = (
        "import sys; from pathlib import Path; from paribus.logs.tables.files import read\n"
        f"assert len(read(Path(sys.argv[1])).rows) == {rows}\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 512 << 10, "KiB"


def test_every_truncation_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    whole = write_parquet(tmp_path, GOOD).read_bytes()
    for length in range(4, len(whole) - 1, 97):
        assert "damaged or truncated" in refusal(written(tmp_path, whole[:length], "cut.parquet"))
    assert "does not begin with PAR1" in refusal(written(tmp_path, whole[1:], "cut.parquet"))
    text = [{**row, "value": str(row["value"])} for row in GOOD]
    assert "row 1, column value: '2.0' is not a number" in refusal(write_parquet(tmp_path, text))


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert "cannot be read: Is a directory" in refusal(tmp_path)
    assert "cannot be read: No such file" in refusal(tmp_path / "none.csv")


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "cannot be read: it is a pipe, not a file" in refusal(tmp_path / "pipe")


def test_parquet_names_must_be_names(tmp_path: Path) -> None:
    lists = [{**row, "block": [row["block"]]} for row in GOOD]
    reported = refusal(write_parquet(tmp_path, lists))
    assert "column block: holds a list, not a name" in reported


def test_damaged_files_are_refused_or_read_and_nothing_else(tmp_path: Path) -> None:
    """Random damage: whatever it does, the answer is a table or one clear error."""
    draw = random.Random(7)
    whole = [
        (name, FORMATS[name](tmp_path, GOOD).read_bytes())
        for name in ("comma", "json lines", "parquet")
    ]
    noise = (b"\x00", b'"', b",", b"\n", b"\r", b"nan", b"{", b"[", b"1e400", b"\xff", b"", b";")
    reported = []
    for _ in range(300):
        name, content = draw.choice(whole)
        damaged = bytearray(content)
        for _ in range(draw.choice((1, 2, 5))):
            at = draw.randrange(len(damaged))
            damaged[at : at + draw.choice((0, 1, 20))] = draw.choice(noise)
        try:
            arranged(written(tmp_path, bytes(damaged), f"damaged {name}"))
        except UserError as error:
            reported.append(str(error))
    assert len(reported) > 200
    assert all(c.isprintable() or c == "\n" for text in reported for c in text)


def test_files_of_arms_must_agree(tmp_path: Path) -> None:
    bare = [{k: v for k, v in row.items() if k != "arm"} for row in rows_of(arms=("x",))]
    one = written(tmp_path, as_csv(bare), "one.csv")
    no_block = [{k: v for k, v in row.items() if k != "block"} for row in bare]
    other = written(tmp_path, as_csv(no_block), "other.csv")
    assert "has no column 'block', but" in refusal(one, other)
    assert "has a column 'block', but" in refusal(other, one)
    header = written(tmp_path, as_csv(bare).splitlines()[0] + "\n", "other.csv")
    assert f"{header}: has no rows" in refusal(one, header)
    milli = written(tmp_path, as_csv([{**row, "unit": "ms"} for row in bare]), "other.csv")
    assert f"{milli}, row 1 (line 2), column unit: 'ms', but 'ping latency'" in refusal(one, milli)
    same = written(tmp_path, as_csv(rows_of(arms=("host",))), "same.csv")
    assert "has one arm only" in refusal(
        same, written(tmp_path, as_csv(rows_of(1, ("host",), ("bytes=9",))), "b.csv")
    )
    assert "has no arm 'c'" in refusal(one, written(tmp_path, as_csv(bare), "b.csv"), reference="c")
    assert "has no column 'arm'" in refusal(one)


def test_times_of_all_files_are_written_alike(tmp_path: Path) -> None:
    rows = timed("AB", at="2026-11-21T08:00:0{}Z".format)
    zoned = written(tmp_path, as_csv(rows), "zoned.csv")
    bare = written(tmp_path, as_csv(rows).replace("Z,", ","), "bare.csv")
    reported = refusal(zoned, bare)
    assert f"{bare}, row 1 (line 2), column time: is a date, but {zoned}, row 1" in reported


def test_line_numbers_follow_quoted_line_breaks(tmp_path: Path) -> None:
    rows = [{"note": "two\nlines", **row} for row in changed(GOOD, 3, value=-1)]
    reported = refusal(written(tmp_path, as_csv(rows)))
    assert "row 4 (line 8), column value: -1 is not above zero" in reported


@pytest.mark.parametrize(
    "name", ["run", "rep", "Run #", "replicate", "attempt", "trial", "round", "job id", "timestamp"]
)
def test_columns_that_count_rows_make_no_cases(name: str) -> None:
    assert not distinguishes(name)
    assert distinguishes("nodes")
    assert distinguishes("ring")


@pytest.mark.parametrize(("last", "cases"), [("3", 1), ("5", 3), ("³", 3)])
def test_a_column_that_counts_the_values_of_an_arm_by_another_name_makes_no_cases(
    tmp_path: Path, last: str, cases: int
) -> None:
    """One with a gap, or another text, does. A superscript is a digit of no number."""
    rows = [
        {"arm": arm, "benchmark": "b", "metric": "time", "unit": "s", "better": "lower",
         "sweep": sweep, "value": 1.0}
        for arm in ("a", "b") for sweep in ("1", "2", last)
    ]  # fmt: skip
    table, _ = sort_columns(read_tables([written(tmp_path, as_csv(rows))]))
    assert len({row.case for row in table.rows}) == cases


# --- properties -----------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(data=st.data(), blocks=st.integers(1, 5), cases=st.integers(1, 3), arms=st.integers(2, 4))
def test_the_order_of_rows_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    blocks: int,
    cases: int,
    arms: int,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = rows_of(blocks, [f"arm {i}" for i in range(arms)], [f"bytes={i}" for i in range(cases)])
    mixed = data.draw(st.permutations(rows))
    one = arranged(written(folder, as_csv(rows)), reference="arm 1")
    other = arranged(written(folder, as_csv(mixed)), reference="arm 1")
    assert one.arms[0] == other.arms[0] == "arm 1"
    assert dict(zip(one.arms, figures(one), strict=True)) == dict(
        zip(other.arms, figures(other), strict=True)
    )
    assert [*one.groups[0].figures] == [*other.groups[0].figures]
