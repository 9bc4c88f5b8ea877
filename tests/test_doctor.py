"""`paribus doctor`: what it finds is there, and it says what it cannot show."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from mpis import any_mpi
from paribus import containers
from paribus.core import Container
from paribus.doctor import fitness as room
from paribus.doctor import trial
from paribus.doctor.fitness import (
    Consumer,
    Finding,
    Fitness,
    Watch,
    company,
    settings,
    tools,
    watch,
)
from paribus.doctor.printed import sentence
from paribus.doctor.trial import BLOCKS, Trial, examine, judged
from paribus.doctor.verb import to_json
from paribus.launch.local import capture
from paribus.stats.verdict import blocks_needed, least_difference
from processes import ran
from studies import paribus
from test_main_job import USER, as_user

ROWS = tomllib.loads((Path(room.__file__).parent / "fitness.toml").read_text())["settings"]


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def machine(folder: Path, **values: str) -> Path:
    """Return the root of a machine whose settings are all good, but for `values`."""
    for row in ROWS:
        path = folder / row["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(values.get(row["name"].replace(" ", "_"), row["good"][0]) + "\n")
    return folder


def test_good_settings_are_good(tmp_path: Path) -> None:
    assert {finding.grade for finding in settings(machine(tmp_path))} == {"good"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_any_other_setting_is_reported_with_its_fix(tmp_path: Path, row: dict[str, str]) -> None:
    root = machine(tmp_path, **{row["name"].replace(" ", "_"): "odd"})
    found = by_name(settings(root))[row["name"]]
    assert (found.grade, found.found) == (row["otherwise"], "odd")
    assert found.means == row["means"]
    assert found.fix == row["fix"]


def test_the_choice_in_brackets_counts(tmp_path: Path) -> None:
    found = by_name(settings(machine(tmp_path, transparent_huge_pages="[always] madvise never")))
    assert found["transparent huge pages"].found == "always"
    assert found["transparent huge pages"].grade == "fair"


def test_what_is_not_shown_is_unknown_and_not_good(tmp_path: Path) -> None:
    found = by_name(settings(tmp_path))
    assert found["governor"].grade == "unknown"
    assert "good" not in {finding.grade for finding in found.values()}


def test_a_busy_process_is_seen_by_its_number() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        seen = watch(0.5)
    finally:
        busy.kill()
        busy.wait()
    assert seen.seconds >= 0.5
    assert busy.pid in [one.pid for one in seen.consumers]
    found = by_name(company(Watch(1.0, 0.4, 0.0, (Consumer(busy.pid, "python", 0.9),))))
    assert found["competing load"].grade == "poor"
    assert str(busy.pid) in found["competing load"].fix


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process of another user")
def test_processes_of_others_are_not_stopped() -> None:
    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"], user=65534)
    try:
        seen = watch(0.5)
    finally:
        busy.kill()
        busy.wait()
    theirs = next(one for one in seen.consumers if one.pid == busy.pid)
    found = by_name(company(replace(seen, consumers=(theirs,))))["competing load"]
    assert f"({busy.pid} of nobody)" in found.found
    assert "STOP" not in found.fix
    assert "reserve the machine" in found.fix
    mine = theirs._replace(pid=1234, user="")
    fix = by_name(company(replace(seen, consumers=(theirs, mine))))["competing load"].fix
    assert "kill -STOP 1234)" in fix
    assert str(busy.pid) not in fix


def test_a_quiet_machine_has_good_company() -> None:
    found = by_name(company(Watch(2.0, 0.001, 0.0)))
    assert {one.grade for one in found.values()} == {"good"}
    assert all(one.fix == "" for one in found.values())


def test_steal_and_what_the_kernel_does_not_say() -> None:
    assert by_name(company(Watch(2.0, 0.0, 0.05)))["steal"].grade == "poor"
    assert by_name(company(Watch(2.0, None, None)))["steal"].grade == "unknown"


@pytest.mark.parametrize("sigma", [0.002, 0.02, 0.2])
def test_the_resolution_is_what_60_blocks_settle(sigma: float) -> None:
    """The inverse of blocks_needed: at that distance from the margin it asks for 60 blocks."""
    draw = random.Random(3)
    logs = [draw.gauss(0, sigma) for _ in range(400)]
    middle = sorted(logs)[200]
    share = least_difference([d - middle for d in logs], BLOCKS)
    assert share == pytest.approx(math.expm1(sigma * math.sqrt(18 / (BLOCKS - 4))), rel=0.1)
    needed = blocks_needed([d - middle for d in logs], share)
    assert needed == pytest.approx(BLOCKS, abs=3)


def test_two_states_are_distinguished_from_the_probes() -> None:
    def facts(value: float) -> dict[str, float]:
        probe = {f"probe.{when}.core_to_core_ns": value for when in ("before", "after")}
        return {**probe, "clock.tick_ns": 10, "clock.cost_ns": 20}

    draw = random.Random(1)
    several = [facts((45 if n % 3 else 190) * draw.uniform(0.97, 1.03)) for n in range(24)]
    found = by_name(judged(Trial({}, several))[0])
    assert found["states"].grade == "poor"
    assert found["states"].found.startswith(
        "core-to-core latency of a cache line is bimodal (modes 4."
    )
    one = [facts(190 * draw.uniform(0.97, 1.03)) for _ in range(24)]
    assert by_name(judged(Trial({}, one))[0])["states"].grade == "good"


def test_too_few_pairs_resolve_nothing() -> None:
    found, resolved = judged(Trial({"latency": [1.0, 1.1] * 5}))
    assert resolved == {}
    assert not any(finding.name.startswith("resolution") for finding in found)


def test_the_sentence_names_what_is_poor() -> None:
    bad = Fitness((Finding("governor", "poor", "powersave"),), {"latency": 0.015})
    assert not bad.fit
    assert sentence(bad) == (
        "Not fit for measurements: governor. Differences below about 1.5 % (latency) are not"
        " detectable here."
    )
    assert "is unknown" in sentence(Fitness(()))


@pytest.mark.parametrize("sigma", [0.001, 0.004, 0.009, 0.03, 0.5])
def test_the_sentence_and_the_finding_give_one_resolution(sigma: float) -> None:
    draw = random.Random(8)
    found, resolved = judged(Trial({"latency": [draw.lognormvariate(0, sigma) for _ in range(60)]}))
    [one] = [finding for finding in found if finding.name.startswith("resolution")]
    [first] = re.findall(r"below about (\S+) %", one.found)
    assert f"below about {first} % (latency)" in sentence(Fitness(tuple(found), resolved))
    assert float(first) == pytest.approx(100 * resolved["latency"], rel=0.06)


def test_a_real_machine_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = any_mpi()
    said: list[str] = []
    where = str(Path(mpi.mpicxx).parent.parent)
    fitness = examine(said.append, mpi=where, watch_s=0.3, launches_s=6.0)
    found = by_name(list(fitness.findings))
    assert {"cores", "free memory", "competing load", "steal", "timer", "states", "MPI"} <= set(
        found
    )
    little = "do not fit in memory"  # others may hold it all just now
    assert "launches" not in found or little in found["launches"].fix, found["launches"]
    assert found["timer"].found.startswith("ticks of")
    assert any("watching" in line for line in said)
    assert all(0 < share < 10 for share in fitness.resolution.values())
    for finding in fitness.findings:
        assert finding.grade == "good" or finding.fix or finding.grade == "unknown", finding
    table = json.loads(json.dumps(to_json(fitness), allow_nan=False))
    assert table["schema"] == "paribus.doctor/1"
    assert table["fit"] == fitness.fit


def test_of_containers_it_says_what_works_without_a_bridge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if containers.check(Container("namespace", network="host", each="rank"), capture):
        pytest.skip("no namespaces here")
    for tool in ("sh", "unshare", "true"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or pytest.skip(f"no {tool}"))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = by_name(tools())["containers: namespace"]
    assert (found.grade, found.found) == ("fair", "works with the machine's network")
    assert found.fix == "`nsenter` is not installed: install util-linux"
    (tmp_path / "unshare").unlink()
    found = by_name(tools())["containers: namespace"]
    assert (found.grade, found.found) == ("fair", "not usable here")
    assert found.fix == "`unshare` is not installed: install util-linux"


@pytest.mark.installed
def test_without_an_mpi_it_says_what_it_cannot_show(tmp_path: Path) -> None:
    """With a Python of its own place: an MPI beside the interpreter would be found."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "taskset", "unshare", "mount", "ip", "grep"):
        if path := shutil.which(tool):
            (tools / tool).symlink_to(path)
    done = paribus("doctor", "--json", cwd=tmp_path, PATH=str(tools))
    table = json.loads(done.stdout)
    found = {one["name"]: one for one in table["findings"]}
    if found["MPI"]["found"] != "none":
        pytest.skip("an MPI lies beside this Python")
    assert done.returncode == 1
    assert "stay unknown" in found["launches"]["means"]
    assert table["resolution"] == {}
    assert "cores" in found


@pytest.mark.slow
def test_a_benchmark_that_fails_leaves_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = any_mpi()
    good, bad = trial.TRIALS
    bad = replace(bad, parameters={**bad.parameters, "bytes": [2**50]})
    monkeypatch.setattr(trial, "TRIALS", (good, bad))
    seen = trial.try_out(12.0, lambda _: None, str(Path(mpi.mpicxx).parent.parent))
    assert seen.figures["triad"] == []
    assert seen.figures["latency"]
    found = by_name(judged(seen)[0])
    assert found["launches"].found == "some failed"
    assert "triad: " in found["launches"].fix


def test_an_mpi_that_is_named_must_be_there(tmp_path: Path) -> None:
    done = paribus("doctor", "--mpi", "/nowhere", cwd=tmp_path, code=2)
    assert "/nowhere" in done.stderr


@pytest.mark.slow
def test_an_ordinary_user_gets_the_same_answer() -> None:
    mpi = any_mpi()
    with tempfile.TemporaryDirectory(prefix="paribus-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o1777)
        env = {**os.environ, "HOME": folder, "PARIBUS_CACHE": f"{folder}/cache", "TMPDIR": folder}
        argv = [sys.executable, "-m", "paribus", "doctor", "--mpi"]
        argv = as_user(USER, [*argv, str(Path(mpi.mpicxx).parent.parent)], env)
        done = ran(argv, cwd=folder, env=env, timeout=200)
    assert done.returncode in (0, 1), done.stderr
    said = " ".join(done.stdout.split())
    assert "timer: ticks of" in said, said
    assert "states:" in said
