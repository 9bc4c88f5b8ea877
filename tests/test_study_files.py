"""A study, its folder of logs and its table of values say the same, for every design."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from log_folders import FIXTURES
from paribus.__main__ import main
from paribus.cli.outputs import write_files
from paribus.core import Case, Launch, Outcome, Sample, State
from paribus.judge.conclude import conclude
from paribus.logs.logs import find_logs
from paribus.plan import frozen as plans
from paribus.store import Store
from test_conservation import DESIGNS, RERUN

LOG = (FIXTURES / "latency" / "good-0.out").read_text()


def study(directory: Path, design: str, seed: int) -> Counter[str]:
    """Write a study with reruns and failures as the seed draws them, as `paribus run` leaves it.

    Returns how many logs of each arm are of launches that count.
    """
    draw = random.Random(f"{design} {seed}")
    frozen = plans.freeze(DESIGNS[design], {})
    directory.mkdir()
    plans.write_plan(frozen, directory)
    counted: Counter[str] = Counter()
    often, end = draw.choice((0.0, 0.0, 0.1)), draw.randrange(6, 14)
    with Store(directory, write=True) as store:
        store.bind_plan(frozen.sha256)
        for block in frozen.blocks():
            if block[0].block > end:
                break
            again = int(draw.random() < 0.3)
            for attempt in range(again + 1):
                for launch in block:
                    fails = draw.random() < often
                    out, err = store.log_paths(launch)
                    out.write_text("" if fails else LOG)
                    err.write_text("")
                    void = RERUN if attempt < again else None
                    store.append(launch, outcome(launch, draw, fails=fails), void=void)
                    counts = launch.block and (launch.place or not frozen.session)
                    counted[launch.arm] += bool(counts and not void and not fails)
    with Store(directory) as store:
        write_files(conclude(frozen, store), directory)
    return counted


def outcome(launch: Launch, draw: random.Random, *, fails: bool) -> Outcome:
    at = 1.7e9 + launch.number
    if fails:
        return Outcome(State.FAILED, at, 1.0, 1, (), error="exit code 1")
    level = (1.0 if launch.arm == "host" else 1.05) * draw.lognormvariate(0, 0.01)
    metric = "time" if launch.benchmark == "barrier" else "latency"
    # Of some launches of one arm there are samples enough for a p99.
    count = 100 if launch.arm != "host" else 4
    values = tuple(9 * level * (1 + 0.001 * i) for i in range(count))
    return Outcome(State.OK, at, 1.0, 0, (), (Sample(metric, Case.of(bytes=8), values),))


def said(capsys: pytest.CaptureFixture[str], path: Path) -> tuple[int, dict[str, Any]]:
    code = main(["compare", str(path), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


@pytest.mark.parametrize("design", DESIGNS)
def test_a_study_its_logs_and_its_values_say_the_same(
    design: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(2):
        directory = tmp_path / str(seed)
        study(directory, design, seed)
        whole = said(capsys, directory)
        assert whole[1]["headlines"]
        for name in ("logs", "values.csv", "values.parquet"):
            assert said(capsys, directory / name) == whole, name


@pytest.mark.parametrize("design", DESIGNS)
def test_logs_of_a_study_beside_others_are_those_that_count(design: str, tmp_path: Path) -> None:
    for seed in range(3):
        directory = tmp_path / str(seed)
        counted = study(directory, design, seed)
        for path in (directory, directory / "logs"):
            _, logs, unread = find_logs([path])
            assert Counter(log.arm.rpartition("/")[2] for log in logs) == +counted
            assert {one.code for one in unread} <= {"empty"}  # of launches that failed


def test_a_figure_that_one_arm_lacks_costs_only_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["arm,block,benchmark,metric,unit,better,value"]
    for block in range(10):
        for arm, level in (("host", 1.0), ("cont", 1.1)):
            rows.append(f"{arm},{block},tool,time,us,lower,{level + 0.001 * block}")
        rows.append(f"cont,{block},tool,time_p99,us,lower,{3 + 0.001 * block}")
    (tmp_path / "values.csv").write_text("\n".join(rows) + "\n")
    code, found = said(capsys, tmp_path / "values.csv")
    (head,) = found["headlines"]
    assert (code, head["verdict"]["word"], head["comparison"]["blocks"]) == (0, "slower", 10)
    (notice,) = (n for n in found["notices"] if n["name"] == "cases left out")
    assert "time_p99" in notice["text"]
    assert notice["level"] == "warning"


def test_files_of_a_study_that_is_not_whole_are_read_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study(tmp_path / "one", "pairs", 0)
    shutil.copy(tmp_path / "one" / "values.csv", tmp_path / "values.csv")
    _, whole = said(capsys, tmp_path / "one")
    _, alone = said(capsys, tmp_path / "values.csv")
    assert alone["plan_sha256"] == ""
    for mine, theirs in zip(alone["headlines"], whole["headlines"], strict=True):
        ratio = theirs["comparison"]["ratio"]
        assert mine["comparison"]["ratio"] == pytest.approx(ratio, rel=0.02)
