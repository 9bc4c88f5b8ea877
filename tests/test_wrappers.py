"""What stands before the program of each rank, or before the launcher: order, facts, refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mpis import each_mpi
from paribus.benchmarks import benchmark_of
from paribus.core import Arm, Mpi, Selection, StudyError
from paribus.launch.arms import Ready, asked_of, compose
from paribus.store import Store, Stored
from paribus.studyfile.load import load_study
from studies import paribus

OPENMPI = Mpi("openmpi", (4, 1), "mpicxx", "mpirun")
NICE = ("nice", "-n", "5")
WRAPPED = min(19, os.nice(0) + 5)
"""The nice value of what NICE starts, of tests that are nice themselves too."""


def write(folder: Path, arm: str, *, factor: str = "wrapper", ranks: str = "") -> Path:
    path = folder / "study.toml"
    path.write_text(
        f'question = "Which?"\nfactor = "{factor}"\n[arms.bare]\n[arms.wrapped]\n{arm}\n'
        f'[[benchmarks]]\nname = "command"\nargv = ["sh", "-c", "nice"]\n{ranks}\n'
        "[plan]\nseed = 1\nblocks = 8\n"
    )
    return path


def composed(ranks: int = 2, **arm: Any) -> tuple[str, ...]:
    """Return the argv of a launch of `sh` in an arm that is bound to two cores."""
    asked = dict.fromkeys(("regex", "measure", "unit", "better", "success", "directory"))
    one = Selection("command", "command", ranks, {**asked, "argv": ["sh"]})
    ready = Ready(Arm("wrapped", **arm), OPENMPI, (0, 1), share=2)
    return compose(ready, one, benchmark_of(one), seed=0, scratch="/s/1").argv


def test_a_wrapper_stands_before_the_program_of_each_rank_within_the_binding() -> None:
    argv = composed(wrap=NICE)
    assert argv[0] == "mpirun"
    assert argv[-4:] == (*NICE, "sh")
    assert argv.index("nice") > argv.index("paribus-bind")


def test_a_wrapper_of_the_launcher_stands_before_all() -> None:
    argv = composed(wrap=NICE, wrap_around="launcher")
    assert argv[:4] == (*NICE, "mpirun")
    assert argv.count("nice") == 1
    assert composed(0, wrap=NICE, wrap_around="launcher") == composed(0, wrap=NICE) == (*NICE, "sh")


def test_a_wrapper_is_a_fact_of_its_arm() -> None:
    facts = asked_of(Arm("wrapped", wrap=(*NICE, "a b")), ())
    assert facts["wrapper.argv"] == "nice -n 5 'a b'"
    assert facts["wrapper.around"] == "rank"


@pytest.mark.parametrize(
    ("arm", "said"),
    [
        (
            'wrap = "nice -n 5"',
            'write a list of the program and its arguments: ["nice", "-n", "5"]',
        ),
        ("wrap = []", "name a program"),
        ('wrap_around = "launcher"', "there is no wrapper"),
        ('wrap = ["nice"]\nwrap_around = "host"', 'use one of "rank", "launcher"'),
    ],
)
def test_a_wrapper_that_cannot_be_is_refused(tmp_path: Path, arm: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        load_study(write(tmp_path, arm))
    assert said in str(refused.value)


def test_a_wrapper_beside_the_study_is_found_there(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, 'wrap = ["./numa.sh", "x"]'))
    assert study.arms[1].wrap == (f"{tmp_path}/numa.sh", "x")


@pytest.mark.parametrize("name", ["no-such-wrapper", "./missing.sh"])
def test_a_missing_wrapper_is_refused_before_the_first_launch(tmp_path: Path, name: str) -> None:
    done = paribus("run", write(tmp_path, f'wrap = ["{name}"]'), "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{name.removeprefix('./')}" in done.stderr
    assert "wrap of wrapped" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_program_that_only_the_wrapper_leads_to_is_found_and_a_missing_one_is_not(
    tmp_path: Path,
) -> None:
    hidden = tmp_path / "image" / "hidden"
    hidden.parent.mkdir()
    hidden.write_text("#!/bin/sh\necho DONE\n")
    hidden.chmod(0o755)
    into = f'wrap = ["env", "PATH={hidden.parent}:/usr/bin:/bin"]'
    path = write(tmp_path, into)
    path.write_text(path.read_text().replace('["sh", "-c", "nice"]', '["hidden"]'))
    done = paribus("run", path, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2, "the bare arm has no such program"
    assert "no program on the PATH called hidden" in done.stderr
    path.write_text(path.read_text().replace("[arms.bare]", f"[arms.bare]\n{into}"))
    done = paribus("run", path, "--out", "out", "--anyway", cwd=tmp_path)
    assert "nothing differs between the arms bare and wrapped" in done.stderr, "it was found"
    path.write_text(path.read_text().replace('"hidden"', '"missing"'))
    done = paribus("run", path, "--out", "out2", cwd=tmp_path)
    assert "no program missing, neither here nor behind `env PATH=" in done.stderr


@pytest.mark.slow
def test_the_factor_explains_what_a_wrapper_changes_and_another_does_not(tmp_path: Path) -> None:
    arm = 'wrap = ["nice", "-n", "5"]'
    done = paribus("run", write(tmp_path, arm), "--out", "out", "--brief", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    logs: dict[str, set[str]] = {"bare": set(), "wrapped": set()}
    for one in _launches(tmp_path / "out"):
        (log,) = (tmp_path / "out" / "logs").glob(f"{one.launch.number:04d}-*.out")
        logs[one.launch.arm].add(log.read_text())
    assert logs == {"bare": {f"{os.nice(0)}\n"}, "wrapped": {f"{WRAPPED}\n"}}
    done = paribus("run", write(tmp_path, arm, factor="env"), "--out", "two", cwd=tmp_path)
    assert done.returncode == 3
    assert "wrapper.argv" in done.stderr
    assert "process.nice" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mpi", each_mpi())
def test_each_rank_is_wrapped(tmp_path: Path, mpi: Mpi) -> None:
    prefix = Path(mpi.mpirun).parent.parent
    own = f'mpi = "{prefix}"\nwrap = ["nice", "-n", "5"]'
    path = write(tmp_path, own, ranks=f'ranks = 2\nsuccess = "{WRAPPED}\\n{WRAPPED}\\n"')
    around = f'{own}\nwrap_around = "launcher"'
    path.write_text(path.read_text().replace("[arms.bare]", f"[arms.bare]\n{around}"))
    done = paribus("run", path, "--out", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    tallies = json.loads(done.stdout)["tallies"]
    assert all(one["failed"] == one["invalid"] == 0 for one in tallies)
    argv = {one.launch.arm: one.outcome.argv for one in _launches(tmp_path / "out")}
    assert argv["bare"][:3] == argv["wrapped"][-6:-3] == NICE


def _launches(directory: Path) -> list[Stored]:
    with Store(directory) as store:
        return list(store.launches())
