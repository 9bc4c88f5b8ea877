"""`paribus compare` as a user meets it: real tables, the real command, words and exit codes."""

from __future__ import annotations

import csv
import json
import math
import random
import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paribus.__main__ import main
from paribus.core import Judgement, Notice
from paribus.logs.imported import Answers, judge_table
from paribus.logs.tables.files import read_tables
from paribus.words.values import notice_fix, notice_text, reason_of
from studies import paribus
from study_directories import write_directory

ROOT = Path(__file__).parent.parent
DATA = Path(__file__).parent / "data" / "tables"
PAGE = ROOT / "docs" / "compare.md"

Row = dict[str, Any]


def table(
    effect: float = 1.05,
    blocks: int = 20,
    *,
    noise: float = 0.01,
    better: str = "lower",
    cases: Sequence[str] = ("bytes=8", "bytes=1024"),
    seed: int = 1,
) -> list[Row]:
    """Return a table of blocks whose second arm has `effect` times the first's values."""
    draw = random.Random(seed)
    return [
        {
            "arm": arm,
            "block": block,
            "benchmark": "ping",
            "case": case,
            "metric": "latency" if better == "lower" else "bandwidth",
            "unit": "us" if better == "lower" else "MB/s",
            "better": better,
            "value": factor * (5 + place) * draw.lognormvariate(0, noise),
        }
        for block in range(1, blocks + 1)
        for arm, factor in (("host", 1.0), ("bridged", effect))
        for place, case in enumerate(cases)
    ]


def without(rows: list[Row], *columns: str) -> list[Row]:
    return [{k: v for k, v in row.items() if k not in columns} for row in rows]


def write(folder: Path, rows: Sequence[Row], name: str = "t.csv") -> Path:
    path = folder / name
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def judged(folder: Path, rows: Sequence[Row], **answers: Any) -> Judgement:
    return judge_table(read_tables([write(folder, rows)]), Answers(**answers))


def words_of(judgement: Judgement) -> list[str]:
    return [finding.verdict.word.value for finding in judgement.headlines]


def names_of(judgement: Judgement) -> set[str]:
    return {notice.name for notice in judgement.notices}


# --- the command ----------------------------------------------------------------------------


def test_a_table_in_blocks_gets_the_report_of_a_study(tmp_path: Path) -> None:
    write(tmp_path, table())
    done = paribus("compare", "t.csv", "--out", "out", "--factor", "network", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "bridged is slower in ping (1.05" in done.stdout
    assert "Factor: network" in done.stdout
    flat = " ".join(done.stdout.split())
    assert "Numbers from t.csv: the arms paired by block; one look." in flat
    assert "Whether the order within blocks was randomised is unknown" in flat
    assert "whether the number of launches was fixed in advance" in flat
    assert "failure" not in done.stdout, "of failures a table tells nothing"
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"verdict.json", "report.html", "cases.csv", "launches.csv"} | {
        "values.csv",
        "values.parquet",
    }
    verdict = json.loads((tmp_path / "out" / "verdict.json").read_text())
    (head,) = verdict["headlines"]
    assert head["verdict"]["word"] == "slower"
    assert head["comparison"]["level"] == 0.95
    assert head["comparison"]["low"] < 1.05 < head["comparison"]["high"]
    assert head["comparison"]["blocks"] == 20
    assert verdict["looks"] == [20]
    assert verdict["started"] is None
    again = paribus("compare", "t.csv", "--out", "out", cwd=tmp_path)
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


def test_without_blocks_launches_decide_unless_something_else_changed(tmp_path: Path) -> None:
    write(tmp_path, without(table(2.0), "block"))
    done = paribus("compare", "t.csv", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    reported = json.loads(done.stdout)
    (head,) = reported["headlines"]
    assert head["verdict"]["word"] == "slower"
    assert "unless the machine changed between the launches of host" in reported["sentence"]
    assert head["comparison"]["low"] == pytest.approx(2, rel=0.02)
    assert head["reference_value"]["launches"] == 20
    assert "unpaired, order unknown" in reported["design"]
    names = {notice["name"] for notice in reported["notices"]}
    assert {"not in turns", "stopping not planned"} <= names


def test_few_launches_without_blocks_have_no_verdict(tmp_path: Path) -> None:
    found = judged(tmp_path, without(table(2.0, 7), "block"))
    assert words_of(found) == ["withheld"]
    said = reason_of(found.headlines[0].verdict)
    assert "need 8 or more of each arm" in said
    assert "add a column time, or block" in said
    assert {case.verdict.word.value for case in found.cases} == {"withheld"}


def test_two_files_are_two_arms(tmp_path: Path) -> None:
    rows = table(1.3, better="higher")
    for arm in ("host", "bridged"):
        mine = [row for row in rows if row["arm"] == arm]
        write(tmp_path, without(mine, "arm"), f"{arm}.csv")
    done = paribus("compare", "host.csv", "bridged.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "bridged is faster in ping (1.3" in done.stdout or "(1.2" in done.stdout
    done = paribus("compare", "host.csv", "bridged.csv", "--reference", "bridged", cwd=tmp_path)
    assert "host is slower in ping (1.3" in done.stdout


@pytest.mark.parametrize(
    ("change", "words", "expected"),
    [
        (lambda rows: [{**rows[0], "value": "x"}, *rows[1:]], [], "row 1 (line 2), column value"),
        (lambda rows: rows, ["--reference", "c"], "has no arm 'c'"),
        (lambda rows: rows, ["--unit", "us"], "the unit is given there, and --unit says 'us' too"),
        (lambda rows: rows, ["--margin", "2"], "--margin: 2"),
        (lambda rows: without(rows, "unit", "better"), [], "does not say the unit of 'latency'"),
        (lambda rows: without(rows, "unit"), [], "--unit us --better lower"),
    ],
)
def test_what_is_missing_is_asked_for(
    tmp_path: Path, change: Callable[[list[Row]], list[Row]], words: list[str], expected: str
) -> None:
    write(tmp_path, change(table(blocks=8)))
    done = paribus("compare", "t.csv", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert expected.replace("--margin: 2", "--margin: ") in done.stderr
    assert "Traceback" not in done.stderr


def test_hostile_cells_and_names_are_data(tmp_path: Path) -> None:
    hostile = "\x1b[31m<script>alert(1)</script>\u202e"
    rows = [{**row, "benchmark": hostile, hostile: "x"} for row in table(blocks=8)]
    rows = [{**row, "arm": row["arm"] + hostile, "case": hostile} for row in rows[::2]]
    path = write(tmp_path, rows, f"{hostile.replace('/', '')}.csv")
    done = paribus("compare", path, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (done.stdout, page):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script>alert" not in page
    rows[3]["value"] = hostile
    done = paribus("compare", write(tmp_path, rows), cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr


EXAMPLE = re.compile(r"```console\n\$ (paribus compare [^\n]*)\n(.*?)```", re.S)


def renewed(page: str, folder: Path) -> str:
    """Return the page with what its examples print now."""
    for path in DATA.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    facts = {arm: {"os.release": "6.6"} for arm in ("host", "bridged")}
    write_directory(folder / "before.study", {"host": 1.0, "bridged": 1.19})
    after = {"host": 1.0, "bridged": 1.05}
    write_directory(folder / "after.study", after, seed=2, started=1.702e9, facts=facts)

    def run(example: re.Match[str]) -> str:
        done = paribus(*shlex.split(example[1])[1:], cwd=folder)
        return f"```console\n$ {example[1]}\n{(done.stdout + done.stderr).strip()}\n```"

    return EXAMPLE.sub(run, page)


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert len(EXAMPLE.findall(page)) == 3
    assert page == renewed(page, tmp_path), "renew it: python tests/test_compare.py"


def test_the_help_names_every_column_and_an_example(tmp_path: Path) -> None:
    done = paribus("compare", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "paribus compare measured.csv" in done.stdout
    page = PAGE.read_text() + (PAGE.parent / "commands.md").read_text()
    for option in re.findall(r"--[a-z]+", done.stdout):
        assert f"`{option}" in page or option in ("--help", "--json"), option


# --- designs --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "better", "word"),
    [
        (1.05, "lower", "slower"),
        (0.95, "lower", "faster"),
        (1.05, "higher", "faster"),
        (0.95, "higher", "slower"),
        (1.0, "lower", "equivalent"),
    ],
)
def test_known_effects_get_their_word(
    tmp_path: Path, effect: float, better: str, word: str
) -> None:
    found = judged(tmp_path, table(effect, 30, better=better))
    assert words_of(found) == [word]
    assert {case.verdict.word.value for case in found.cases} == {word}


@pytest.mark.parametrize("blocks", [2, 5])
def test_too_few_blocks_stay_undecided(tmp_path: Path, blocks: int) -> None:
    found = judged(tmp_path, table(3.0, blocks))
    assert words_of(found) == ["undecided"]
    assert "too few blocks" in names_of(found)
    assert words_of(judged(tmp_path, table(3.0, 6, cases=("",)))) == ["slower"]


def test_three_arms_share_the_error_and_need_a_block_more(tmp_path: Path) -> None:
    for blocks, word in ((6, "undecided"), (7, "slower")):
        two = table(3.0, blocks, cases=("",))
        third = [{**row, "arm": "third"} for row in two if row["arm"] != two[0]["arm"]]
        found = judged(tmp_path, two + third)
        assert words_of(found) == [word, word]
        said = [notice_text(n) for n in found.notices if n.name == "too few blocks"]
        few = "ping has 6 blocks; an interval at 97.5 % confidence needs 7 or more."
        assert said == [few] * (blocks == 6)


def test_one_launch_each_allows_no_claim(tmp_path: Path) -> None:
    for rows in (table(3.0, 1), without(table(3.0, 1), "block")):
        found = judged(tmp_path, rows)
        assert words_of(found) == ["withheld"]
        reason = reason_of(found.headlines[0].verdict)
        assert reason.startswith("one launch for each arm: there is no interval")
        assert "one launch for each arm" in found.design
    samples = [
        {**row, "sample": i, "value": row["value"] + i}
        for row in without(table(3.0, 1), "block")
        for i in range(100)
    ]
    assert words_of(judged(tmp_path, samples)) == ["withheld"], "samples are not launches"


def in_time(order: str, effect: float = 1.05, drift: float = 0.0) -> list[Row]:
    draw = random.Random(3)
    return [
        {
            "arm": {"A": "host", "B": "bridged"}[letter],
            "time": 100.0 * place,
            "benchmark": "ping",
            "metric": "latency",
            "unit": "us",
            "better": "lower",
            "value": (effect if letter == "B" else 1.0)
            * (1 + drift * place)
            * draw.lognormvariate(0, 0.01),
        }
        for place, letter in enumerate(order)
    ]


def test_launches_in_turns_are_paired_by_their_times(tmp_path: Path) -> None:
    found = judged(tmp_path, in_time("ABBABAAB" * 3, drift=0.01))
    assert words_of(found) == ["slower"]
    assert "about 1 min 40 s apart" in found.design
    assert "host ran first in 6 blocks, bridged in 6" in found.design
    assert len(found.points) == 24
    assert (found.started, found.wall_s) == (None, 2300.0)
    assert not {"order unknown", "order fixed"} & names_of(found)
    fixed = judged(tmp_path, in_time("AB" * 12))
    assert "order fixed" in names_of(fixed)
    assert words_of(fixed) == ["slower"]


def test_launches_of_one_date_do_not_show_which_came_first(tmp_path: Path) -> None:
    rows = in_time("ABBABAAB" * 2)
    days = [{**row, "time": f"2026-11-{1 + i // 2:02}"} for i, row in enumerate(rows)]
    found = judged(tmp_path, days)
    assert words_of(found) == ["slower"]
    assert "neighbours in time; one look. Whether their order was" in found.design
    assert "order fixed" not in names_of(found)
    (reported,) = (one for one in found.notices if one.name == "order unknown")
    assert notice_fix(reported) == "Times of more digits would show the order."
    at = "2026-11-01T08:00:00Z"
    days = [
        {**row, "time": at if i == 1 else f"{row['time']}T00:00:00Z"} for i, row in enumerate(days)
    ]
    assert "host ran first in 1 block, bridged in 0" in judged(tmp_path, days).design


def of_order(found: Judgement) -> list[Notice]:
    return [notice for notice in found.notices if notice.name == "order effect"]


def test_an_effect_of_the_arm_is_not_said_to_be_one_of_the_order(tmp_path: Path) -> None:
    """One arm came first in 3 of 4 blocks: its 20 % are its own, 3 % the order's."""
    uneven = "BABAABBA" * 4
    assert of_order(judged(tmp_path, in_time(uneven, effect=1.2), reference="host")) == []
    slower_after = [
        {**row, "value": row["value"] * (1.03 if i % 2 else 1.0)}
        for i, row in enumerate(in_time(uneven, effect=1.2))
    ]
    (reported,) = of_order(judged(tmp_path, slower_after, reference="host"))
    assert reported.figures["ratio"] == pytest.approx(1.03, abs=0.006)
    assert reported.figures["bias"] == pytest.approx(-0.018, abs=0.008)
    assert (
        "a launch of host or bridged that follows the other in its block gives 1.03"
        in notice_text(reported)
    )
    assert "bridged ran first in 12 of 16 blocks, which moves the ratio by -" in notice_text(
        reported
    )


def test_an_effect_of_the_order_is_sought_for_every_arm(tmp_path: Path) -> None:
    draw = random.Random(6)
    rows = []
    for block in range(30):
        arms = draw.sample(["host", "bridged", "vm"], 3)
        for place, arm in enumerate(arms):
            value = {"host": 1, "bridged": 1.5, "vm": 3}[arm] * 1.03**place
            rows.append(
                {"arm": arm, "block": block, "time": 10.0 * (3 * block + place)}
                | {"benchmark": "ping", "metric": "latency", "unit": "us", "better": "lower"}
                | {"value": value * draw.lognormvariate(0, 0.01)}
            )
    found = of_order(judged(tmp_path, rows, reference="host"))
    assert {notice.figures["arm"] for notice in found} == {"bridged", "vm"}
    for notice in found:
        # In one order of three the launch before is that of the third arm.
        assert notice.figures["ratio"] == pytest.approx(1.03 ** (4 / 3), abs=0.008)


def test_one_arm_after_the_other_is_said_beside_the_word(tmp_path: Path) -> None:
    """All of A, then all of B, on a machine that drifts: a difference that there is not."""
    found = judged(tmp_path, in_time("A" * 20 + "B" * 20, effect=1.0, drift=0.01))
    (head,) = found.headlines
    assert head.comparison is not None
    assert head.comparison.ratio > 1.1
    assert "unless the machine changed between the launches of host" in reason_of(head.verdict)
    (reported,) = (n for n in found.notices if n.name == "one arm after the other")
    assert "by the column time all launches of host are older" in notice_text(reported)


def test_launches_with_no_case_in_common_have_no_headline(tmp_path: Path) -> None:
    """Twelve launches for each of two sizes, none of which measured both."""
    rows = [
        {**row, "launch": f"{row['case']} {row['block']}"}
        for row in table(2.0, 12, cases=("bytes=8", "bytes=16"))
    ]
    found = judged(tmp_path, without(rows, "block"))
    assert words_of(found) == ["withheld"]
    assert reason_of(found.headlines[0].verdict).startswith("0 launches of host and 0 launches")
    assert {case.verdict.word.value for case in found.cases} == {"slower"}


def test_an_incomplete_block_is_reported_where_the_verdict_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three benchmarks two lack a block: the row of each says so, and no warning does."""
    rows = table(blocks=60)
    for label, lacks in (("pong", 7), ("pang", 9)):
        rows += [
            {**row, "benchmark": label}
            for row in table(blocks=60)
            if (row["arm"], row["block"]) != ("host", lacks)
        ]
    write(tmp_path, rows)
    table_, out = str(tmp_path / "t.csv"), tmp_path / "out"
    assert main(["compare", table_, "--brief"]) == 0
    brief = capsys.readouterr().out
    assert brief.count(", on 59 of 60 blocks\n") == 2
    assert "Warning, blocks left out" not in brief
    assert main(["compare", table_, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.index("About the data") < said.index("blocks left out: 1 of 60 blocks of pong is")
    assert "Incomplete blocks are left out of the ratio." in " ".join(said.split())
    verdict = json.loads((out / "verdict.json").read_text())
    heads = {
        h["benchmark"]: (h["comparison"]["blocks"], h.get("attempted"))
        for h in verdict["headlines"]
    }
    assert heads == {"ping": (60, None), "pong": (59, 60), "pang": (59, 60)}
    notices = [n for n in verdict["notices"] if n["name"] == "blocks left out"]
    assert [(n["level"], n["benchmarks"]) for n in notices] == [
        ("note", ["pong"]),
        ("note", ["pang"]),
    ]
    assert "block 9 lacks arm 'host'" in notices[1]["text"]
    page = (out / "report.html").read_text()
    assert page.count("; on 59 of 60 blocks</small>") == 2
    assert main(["report", str(out), "--brief"]) == 0, "read again, it says the same"
    assert capsys.readouterr().out == brief


def test_too_many_missing_launches_withhold_the_verdict(tmp_path: Path) -> None:
    rows = [row for row in table(blocks=40) if row["arm"] == "host" or row["block"] > 10]
    found = judged(tmp_path, rows)
    assert words_of(found) == ["withheld"]
    assert "10 of 40 blocks lack bridged and 0 lack host" in reason_of(found.headlines[0].verdict)
    (notice,) = [n for n in found.notices if n.name == "blocks left out"]
    assert notice.level == "warning"


def test_benchmarks_with_unlike_numbers_of_blocks_have_a_look_each(tmp_path: Path) -> None:
    rows = table(blocks=12) + [{**row, "benchmark": "pong"} for row in table(blocks=20)]
    found = judged(tmp_path, rows)
    assert found.looks == (12, 20)
    assert [f.comparison.blocks for f in found.headlines if f.comparison] == [12, 20]
    assert {f.comparison.level for f in found.headlines if f.comparison} == {0.95}
    alone = judged(tmp_path, rows[: len(table(blocks=12))])
    assert alone.headlines[0].comparison == found.headlines[0].comparison


def test_three_arms_share_the_error(tmp_path: Path) -> None:
    rows = table(1.05) + [{**r, "arm": "podman"} for r in table(1.2, seed=4) if r["arm"] != "host"]
    found = judged(tmp_path, rows)
    assert [f.arm for f in found.headlines] == ["bridged", "podman"]
    assert {f.comparison.level for f in found.headlines if f.comparison} == {0.975}
    assert len(found.pairs) == 3


def test_known_benchmarks_bring_unit_direction_and_margin(tmp_path: Path) -> None:
    rows = without(table(), "unit", "better")
    found = judged(tmp_path, [{**row, "benchmark": "latency"} for row in rows])
    (head,) = found.headlines
    assert (head.metric.unit, head.metric.better) == ("us", "lower")
    reported = judged(tmp_path, rows, unit="ms", better="lower", margin=0.1)
    assert words_of(reported) == ["equivalent"]
    assert reported.headlines[0].metric.unit == "ms"


def test_ignored_columns_are_named(tmp_path: Path) -> None:
    found = judged(tmp_path, [{**row, "host": "n1", "user": "me"} for row in table()])
    notice = next(n for n in found.notices if n.name == "columns ignored")
    assert notice_text(notice) == "Columns that are not used: 'host', 'user'."


def test_too_many_blocks_for_an_interval_are_refused(tmp_path: Path) -> None:
    rows = without(table(blocks=10_001, cases=("",)), "block")
    rows = [{**row, "block": i // 2} for i, row in enumerate(rows)]
    done = paribus("compare", write(tmp_path, rows), cwd=tmp_path)
    assert done.returncode == 2
    assert "has more than 10,000 blocks" in done.stderr


def test_fifty_thousand_rows_are_judged_at_once(tmp_path: Path) -> None:
    cases = [f"bytes={8 * i}" for i in range(1, 51)]
    rows = [
        {**row, "sample": i, "value": row["value"] * (1 + i % 3 / 100)}
        for row in table(blocks=20, cases=cases)
        for i in range(25)
    ]
    assert len(rows) == 50_000
    found = judged(tmp_path, rows)
    assert words_of(found) == ["slower"]
    assert "each value the median of its samples" in found.design


# --- properties -----------------------------------------------------------------------------


def essence(judgement: Judgement) -> list[tuple[Any, ...]]:
    return sorted(
        (f.benchmark, f.arm, str(f.case), f.verdict.word.value, f.comparison)
        for f in (*judgement.headlines, *judgement.cases)
    )


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), effect=st.floats(0.8, 1.25), blocks=st.integers(1, 14))
def test_the_order_of_rows_changes_no_verdict(
    tmp_path_factory: pytest.TempPathFactory, seed: int, effect: float, blocks: int
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = table(effect, blocks, seed=seed)
    mixed = random.Random(seed).sample(rows, len(rows))
    one = judged(folder, rows, reference="host")
    other = judged(folder, mixed, reference="host")
    assert essence(one) == essence(other)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), effect=st.floats(0.8, 1.25), blocks=st.integers(1, 14))
def test_swapping_the_arms_mirrors_the_verdict(
    tmp_path_factory: pytest.TempPathFactory, seed: int, effect: float, blocks: int
) -> None:
    folder = tmp_path_factory.mktemp("arms")
    rows = table(effect, blocks, seed=seed)
    mirror = {"faster": "slower", "slower": "faster"}
    one = judged(folder, rows, reference="host")
    other = judged(folder, rows, reference="bridged")
    for mine, theirs in zip(one.headlines, other.headlines, strict=True):
        assert mirror.get(mine.verdict.word.value, mine.verdict.word.value) == theirs.verdict.word
        assert mine.comparison is not None
        assert theirs.comparison is not None
        ours, others = mine.comparison, theirs.comparison
        assert math.log(ours.ratio) == pytest.approx(-math.log(others.ratio), abs=1e-12)
        low = math.inf if ours.low == 0 else 1 / ours.low
        assert np.isclose(low, others.high, rtol=1e-12)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        PAGE.write_text(renewed(PAGE.read_text(), Path(scratch)))


def test_a_table_of_more_launches_than_a_page_shows_is_judged_whole(tmp_path: Path) -> None:
    """Two benchmarks of 5,001 blocks; of the first, the arm that comes second is 2 % slower."""
    draw = random.Random(12)
    rows, clock = [], 0
    for name, second in (("ping", 1.02), ("pong", 1.0)):
        for block in range(1, 5002):
            arms = draw.sample((("host", 1.0), ("bridged", 1.05)), 2)
            for (arm, factor), place in zip(arms, (1.0, second), strict=True):
                value = 5 * factor * place * draw.lognormvariate(0, 0.01)
                row = {"arm": arm, "block": block, "time": (clock := clock + 1)}
                rows.append(row | {"benchmark": name, "metric": "latency", "value": value})
    path = tmp_path / "large.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    out = tmp_path / "out"
    options = ("--reference", "host", "--unit", "us", "--better", "lower")
    done = paribus("compare", path, *options, "--out", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdict = json.loads((out / "verdict.json").read_text())
    assert len(verdict["launches"]) == len(rows) > 20_000
    reported = [notice for notice in verdict["notices"] if notice["name"] == "order effect"]
    assert [notice["benchmarks"] for notice in reported] == [["ping"]]
    page = (out / "report.html").read_text()
    assert "20,004 launches are too many for a time axis" in page
    assert page.count("Every launch over time") == 0
