"""The level of an arm is observed after each switch: one that lies or falls back does not count."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from paribus.core import StudyError
from paribus.launch.execute import FALLEN, UNFINISHED
from paribus.store import Stored
from paribus.studyfile.load import load_study
from processes import executable
from studies import launches_in, paribus, write_study

SESSIONS = 'unit = "session"\nlaunches = 2'
SEEDS = (1, 2)
"""With these, either arm has the first session."""


def observed(folder: Path, *, one: str = "", other: str = "", seed: int = 1, **more: str) -> Path:
    """Write a study whose arms a and b put the words off and on into the file `folder`/level.

    The script `switch` does that; what stands in `one` and `other` comes on top.
    """
    switch = folder / "switch"
    if not switch.exists():
        executable(switch, f"echo $1 > {folder}/level")
    (folder / "level").write_text("off\n")
    observe = f'observe = "cat {folder}/level"\n'
    arms = (
        f"[arms.a]\n{observe}{one}\n"
        f'[arms.b]\nbefore = "{switch} on"\nafter = "{switch} off"\n{observe}{other}\n'
    )
    path = write_study(folder, arms=arms, factor="boost", **more)
    path.write_text(path.read_text().replace("seed = 1", f"seed = {seed}"))
    return path


def stored(folder: Path) -> list[Stored]:
    return launches_in(folder / "out", void=True)


def levels(launches: list[Stored]) -> set[tuple[str, str]]:
    """Return the arms of the launches that count, each with its level."""
    counting = [one for one in launches if not one.void]
    return {(one.launch.arm, one.outcome.facts["switch.level"]) for one in counting}


def lies(folder: Path) -> None:
    (folder / "switch").write_text("#!/bin/sh\nexit 0\n")


def repaired(folder: Path) -> None:
    (folder / "switch").write_text(f"#!/bin/sh\necho $1 > {folder}/level\n")


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["", SESSIONS])
def test_the_observed_level_is_stored_with_each_launch_and_is_the_factor(
    tmp_path: Path, unit: str
) -> None:
    study = observed(tmp_path, plan=f"blocks = 8\n{unit}")
    paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    assert levels(stored(tmp_path)) == {("a", "off"), ("b", "on")}
    reported = json.loads((tmp_path / "out" / "verdict.json").read_text())["differences"]
    (level,) = (one for one in reported if one["key"] == "switch.level")
    assert level["kind"] == "factor"
    log = (tmp_path / "out" / "logs" / "switch-b.log").read_text()
    assert f"$ arms.b.observe: cat {tmp_path}/level\non\n" in log


SAME = r"the level is 'off', as in (a|b): nothing was switched"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("other", "said", "unit", "seed"),
    [
        ("", SAME, "", 1),
        *(("", SAME, SESSIONS, seed) for seed in SEEDS),
        ('level = "on"', r"the level is 'off'; the study requires level = 'on'", SESSIONS, 1),
    ],
)
def test_a_switch_that_lies_stops_the_study_until_it_switches(
    tmp_path: Path, other: str, said: str, unit: str, seed: int
) -> None:
    study = observed(tmp_path, other=other, seed=seed, plan=f"blocks = 8\n{unit}")
    lies(tmp_path)
    audit = paribus("audit", study, cwd=tmp_path)
    run = paribus("run", study, "--out", "out", cwd=tmp_path)
    for done in (audit, run):
        assert done.returncode == 2
        assert re.search(said, done.stderr)
        assert f".observe: cat {tmp_path}/level" in done.stderr
    assert re.search(r"logs/switch-[ab]\.log", run.stderr)
    # Without `level` nobody knows which of the two was not switched.
    assert {arm for arm, _ in levels(stored(tmp_path))} <= ({"a"} if other else set())
    repaired(tmp_path)
    paribus("run", study, "--out", "out", "--resume", cwd=tmp_path, code=0)
    assert levels(stored(tmp_path)) == {("a", "off"), ("b", "on")}


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["", SESSIONS])
def test_a_launch_that_ends_at_another_level_does_not_count(tmp_path: Path, unit: str) -> None:
    falls = (
        f'if [ "$(cat {tmp_path}/level)" = on ] && echo >> {tmp_path}/launches &&'
        f' [ "$(wc -l < {tmp_path}/launches)" = 5 ]; then echo off > {tmp_path}/level; fi;'
        " echo 2.50013"
    )
    study = observed(tmp_path, plan=f"blocks = 8\n{unit}", script=falls)
    done = paribus("run", study, "--out", "out", cwd=tmp_path, code=2)
    assert "arms.b.observe" in done.stderr
    assert "the level is 'off'; it was 'on'" in done.stderr
    *counted, last = stored(tmp_path)
    assert (last.launch.arm, last.void) == ("b", FALLEN)
    assert [one.void for one in counted] == [None] * len(counted)
    done = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path, code=0)
    left_out = {one.void for one in stored(tmp_path) if one.launch.block == last.launch.block}
    assert left_out == {None, FALLEN, UNFINISHED}
    assert FALLEN in " ".join(done.stdout.split())


@pytest.mark.slow
def test_two_arms_may_state_that_they_share_a_level(tmp_path: Path) -> None:
    same = 'level = "off"'
    study = observed(tmp_path, one=same, other=same, plan="blocks = 8")
    lies(tmp_path)
    paribus("run", study, "--out", "out", cwd=tmp_path, code=0)


def test_a_level_needs_a_name(tmp_path: Path) -> None:
    study = observed(tmp_path)
    study.write_text(study.read_text().replace(f"cat {tmp_path}/level", "true"))
    done = paribus("audit", study, cwd=tmp_path, code=2)
    assert "printed 0 characters; a level has 1 to 1,000" in done.stderr


def test_a_level_needs_a_command_that_observes_it(tmp_path: Path) -> None:
    path = write_study(tmp_path, arms='[arms.a]\n[arms.b]\nlevel = "on"\n')
    with pytest.raises(StudyError, match="no command observes the level"):
        load_study(path)


def test_a_dry_run_lists_the_commands_and_switches_nothing(tmp_path: Path) -> None:
    study = observed(tmp_path)
    done = paribus("run", study, "--dry-run", cwd=tmp_path, code=0)
    said = " ".join(done.stdout.split())
    for line in (
        f"b, before: {tmp_path}/switch on",
        f"b, observe: cat {tmp_path}/level",
        f"b, after: {tmp_path}/switch off",
    ):
        assert line in said
    assert (tmp_path / "level").read_text() == "off\n"
