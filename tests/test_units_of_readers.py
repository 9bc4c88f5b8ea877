"""One table of units: what is the same speed is one figure, and what is not is never compared."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from log_folders import FIXTURES, judged, names_of, perflog, read, text_of, write
from paribus.__main__ import main
from paribus.core import UserError
from paribus.logs.imported import Answers
from paribus.logs.logged import judge_logs
from paribus.readers.units import better_of, canonical
from paribus.words.values import notice_fix, notice_text

FAMILIES = (
    {"GB/s": 1.0, "GB/sec": 1.0, "Gb/s": 8.0, "Gbit/s": 8.0, "Gbits/sec": 8.0, "MB/s": 1e3}
    | {"Gbps": 8.0, "MBps": 1e3, "KiB/s": 1e9 / 1024, "bytes/s": 1e9, "GB per second": 1.0},
    {"s": 1.0, "sec": 1.0, "ms": 1e3, "us": 1e6, "\u00b5s": 1e6, "ns": 1e9, "min": 1 / 60}
    | {"h": 1 / 3600, "hours": 1 / 3600, "seconds": 1.0, "days": 1 / 86400},
    {"timesteps/s": 1.0, "ktimesteps/s": 1e-3, "Timesteps/sec": 1.0},
    {"Gflop/s": 1.0, "GFLOPS": 1.0, "Mflops": 1e3, "Tflop/s": 1e-3, "gflop/s": 1.0},
    {"images/s": 1.0, "kimages/s": 1e-3, "Images Per Second": 1.0, "images/sec": 1.0},
    {"tokens/s": 1.0, "Ktokens/sec": 1e-3, "Mtoken/s": 1e-6},
    {"IOPS": 1.0, "kIOPS": 1e-3},
)
"""Units of one kind, each with the figure that it has where the first one has 1."""

OTHERS = ("W", "J", "ns/day", "kernels/s", "mb/s", "gb/s", "m", "K", "%", "1", "ms/step")


def test_units_of_a_kind_are_converted_and_those_of_two_kinds_are_not() -> None:
    for family in FAMILIES:
        found = {unit: canonical(unit) for unit in family}
        assert len({unit for _, unit in found.values()}) == 1
        whole = found[next(iter(family))][0]
        for unit, figure in family.items():
            assert found[unit][0] * figure == pytest.approx(whole)
    kinds = [canonical(next(iter(family)))[1] for family in FAMILIES] + [
        canonical(unit)[1] for unit in OTHERS
    ]
    assert len(set(kinds)) == len(kinds)


def test_what_is_not_known_stays_as_it_is_written() -> None:
    assert [canonical(unit) for unit in OTHERS] == [(1.0, unit) for unit in OTHERS]


def test_the_direction_is_that_of_the_unit_or_nobody_s() -> None:
    higher = ("GB/s", "Gb/sec", "images/min", "ns/day", "Mflops", "kIOPS", "mb/s")
    assert {better_of(canonical(unit)[1]) for unit in higher} == {"higher"}
    assert {better_of(canonical(unit)[1]) for unit in ("min", "ms/step", "h/ns")} == {"lower"}
    assert {better_of(canonical(unit)[1]) for unit in ("W", "%", "K", "1", "J")} == {None}


# --- in a comparison -------------------------------------------------------------------------


def two(
    folder: Path, a: dict[str, tuple[float, str, str]], b: dict[str, tuple[float, str, str]]
) -> tuple[Path, Path]:
    made = write(folder, {"a.log": perflog(a, 1), "b.log": perflog(b, 2)})
    return made / "a.log", made / "b.log"


PAIRS = [pair for family in FAMILIES for pair in itertools.pairwise(family.items())]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_the_same_speed_is_equivalent_whatever_the_unit(
    pair: tuple[tuple[str, float], ...], tmp_path: Path
) -> None:
    a, b = ({"perf": (50 * figure, unit, "")} for unit, figure in pair)
    (head,) = judged(*two(tmp_path, a, b)).headlines
    assert head.verdict.word == "equivalent"


@pytest.mark.parametrize("units", [("s", "images/s"), ("MB/s", "mb/s"), ("ns/day", "steps/s")])
def test_two_units_that_are_not_converted_are_never_compared(
    units: tuple[str, str], tmp_path: Path
) -> None:
    a, b = ({"perf": (50.0, unit, ""), "elapsed": (3.0, "s", "")} for unit in units)
    judgement = judged(*two(tmp_path, a, b))
    (head,) = judgement.headlines
    assert (head.metric.name, head.verdict.word) == ("elapsed", "equivalent")
    assert not judgement.others
    said = next(notice_text(n) for n in judgement.notices if n.name == "cases left out")
    assert all(f"perf in {canonical(unit)[1]}" in said for unit in units)
    with pytest.raises(UserError, match="nothing to compare") as refused:
        judged(*two(tmp_path / "alone", {"perf": a["perf"]}, {"perf": b["perf"]}))
    assert all(f"perf in {canonical(unit)[1]}" in str(refused.value) for unit in units)


def test_two_directions_of_one_figure_are_never_compared(tmp_path: Path) -> None:
    a, b = ({"perf": (50.0, "W", better)} for better in ("lower", "higher"))
    with pytest.raises(UserError, match="perf, higher is better"):
        judged(*two(tmp_path, a, b))


# --- the direction is asked for --------------------------------------------------------------


def test_a_figure_without_direction_is_asked_for_and_never_dropped(tmp_path: Path) -> None:
    a, b = ({"elapsed": (3.0, "s", ""), "power": (watts, "W", "")} for watts in (350.0, 175.0))
    paths = two(tmp_path, a, b)
    judgement = judged(*paths)
    (asked,) = (n for n in judgement.notices if n.name == "direction unknown")
    assert asked.level == "warning"
    assert "power (W) is not compared" in notice_text(asked)
    assert "--better power=lower" in notice_fix(asked)
    answered = judge_logs(read(*paths), Answers(directions={"power": "lower"}))
    assert [(f.metric.name, f.verdict.word.value) for f in answered.others] == [("power", "faster")]
    assert "direction unknown" not in names_of(answered)


def test_without_any_direction_the_option_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = two(tmp_path, {"power": (350.0, "W", "")}, {"power": (175.0, "W", "")})
    with pytest.raises(UserError, match="power") as refused:
        judged(*paths)
    assert "--better power=lower" in str(refused.value)
    for better, word in (("lower", "faster"), ("higher", "slower")):
        main(["compare", *map(str, paths), "--better", better, "--json"])
        (head,) = json.loads(capsys.readouterr().out)["headlines"]
        assert head["verdict"]["word"] == word


def test_counters_of_google_benchmark_are_figures_of_their_own(tmp_path: Path) -> None:
    whole = (FIXTURES / "google_benchmark" / "good-debug_build.out").read_text()
    said = json.loads(whole)
    texts = {}
    for name, rate in (("a.json", 12.0), ("b.json", 6.0)):
        for row in said["benchmarks"]:
            row |= {"GFLOPS": rate, "lost": 0.0}
        texts[name] = json.dumps(said, indent=2)
    made = write(tmp_path, texts)
    paths = made / "a.json", made / "b.json"
    assert "n and GFLOPS are not compared" in text_of(judged(*paths), "direction unknown")
    answered = judge_logs(read(*paths), Answers(better="higher"))
    ratios = {f.metric.name: f.comparison and f.comparison.ratio for f in answered.others}
    assert ratios["GFLOPS"] == pytest.approx(0.5)
    assert "lost" not in ratios


def test_of_a_table_one_figure_s_direction_can_be_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["arm,block,benchmark,metric,unit,value"]
    for block in range(10):
        for arm, level in (("host", 1.0), ("cont", 0.5)):
            rows += [f"{arm},{block},tool,speed,x,{level + 0.001 * block}"]
            rows += [f"{arm},{block},tool,power,W,{level + 0.001 * block}"]
    made = write(tmp_path, {"t.csv": "\n".join(rows) + "\n"})
    words = ["--better", "speed=higher", "--better", "power=lower"]
    assert main(["compare", str(made / "t.csv"), "--json", *words]) == 0
    found = json.loads(capsys.readouterr().out)["headlines"]
    assert [(f["metric"]["name"], f["verdict"]["word"]) for f in found] == [
        ("speed", "slower"),
        ("power", "faster"),
    ]
    assert main(["compare", str(made / "t.csv"), *words, "--better", "size=lower"]) == 2
    assert "has no metric 'size'" in capsys.readouterr().err
