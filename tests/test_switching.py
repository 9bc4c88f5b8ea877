"""Switches of the platform: nothing of them is left, and what is switched is switched back."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from paribus.core import ParibusError
from paribus.launch.switching import Journal, Switches
from paribus.store import Store
from paribus.studyfile.load import load_study
from processes import children, ended, gone, processes_with
from studies import command, paribus, write_study

OURS = os.getpid()
"""A fraction of seconds that no other worker sleeps for."""


def switched(folder: Path, *, before: str = "", after: str = "", **more: str) -> Path:
    """Write a study whose arm b notes each switch in `folder`/switches, after doing more."""
    script = folder / "switch.sh"
    script.write_text(
        '#!/bin/sh\nif [ "$1" = before ]; then\n'
        f"echo before >> {folder}/switches; {before or ':'}\nelse\n"
        f"{after or ':'}; echo after >> {folder}/switches\nfi\n"
    )
    script.chmod(0o755)
    arms = f'[arms.a]\n[arms.b]\nbefore = "{script} before"\nafter = "{script} after"\n'
    return write_study(folder, arms=arms, **more)


def switches_of(folder: Path) -> list[str]:
    path = folder / "switches"
    return path.read_text().split() if path.exists() else []


def killed(folder: Path, study: Path, number: signal.Signals, mark: str) -> int:
    """Start a study, send it a signal when a process with `mark` is there, return its exit code."""
    with subprocess.Popen(
        command("run", study, "--out", folder / "out"),
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not processes_with(mark):
            assert process.poll() is None
            time.sleep(0.01)
        wardens = children(process.pid)
        process.send_signal(number)
        process.wait(timeout=30)
    assert ended(wardens)
    return process.returncode


def test_a_program_that_before_must_bring_about_is_named_before_it(tmp_path: Path) -> None:
    solver, nowhere = tmp_path / "solver", tmp_path / "nowhere"
    arms = (
        f'[arms.a]\nargv = ["true"]\n[arms.b]\nargv = ["{solver}"]\n'
        f'before = "ln -s /bin/true {solver}"'
        f'\n[arms.c]\nargv = ["{nowhere}"]\nbefore = "true"'
    )
    study = tmp_path / "study.toml"
    study.write_text(
        f'question = "Which?"\nfactor = "build"\n{arms}\n[[benchmarks]]\nname = "command"\n'
        'argv = ["true"]\n'
    )
    done = paribus("audit", study, cwd=tmp_path)
    assert done.returncode == 2
    first, _, after = done.stderr.partition("facts, after `ln -s")
    for path in (solver, nowhere):
        assert f"command: no executable file {path}, unless its `before` commands" in first
    assert f"no executable file {solver}" not in after
    assert f"no executable file {nowhere}\n" in after


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_switching_back_waits_until_the_ranks_have_ended(
    tmp_path: Path, number: signal.Signals
) -> None:
    mark = f"rank{os.getpid()}"
    look = f"pgrep -f {mark} > {tmp_path}/ranks; true"
    hangs = f'[ "$(tail -n 1 {tmp_path}/switches)" != before ] || (trap "" TERM; sleep 60.{OURS})'
    study = switched(tmp_path, after=look, mark=mark, script=f"{hangs}; echo 1")
    # Facts are gathered first, switched; then a launch of the switched arm hangs.
    assert killed(tmp_path, study, number, f"sleep\x0060.{OURS}") == 130
    assert (tmp_path / "ranks").read_text() == ""
    assert switches_of(tmp_path)[-2:] == ["before", "after"]
    assert gone(mark)


def test_a_killed_study_is_switched_back_before_it_goes_on(tmp_path: Path) -> None:
    mark = f"rank{os.getpid()}"
    script = (
        f'if [ "$(tail -n 1 {tmp_path}/switches)" = before ] && [ ! -e {tmp_path}/go ];'
        f" then sleep 61.{OURS}; fi; echo 2.50013"
    )
    study = switched(tmp_path, mark=mark, script=script)
    assert killed(tmp_path, study, signal.SIGKILL, f"sleep\x0061.{OURS}") == -signal.SIGKILL
    assert switches_of(tmp_path)[-1] == "before"
    (tmp_path / "go").touch()
    done = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    every = switches_of(tmp_path)
    assert every == ["before", "after"] * (len(every) // 2)


def test_a_switch_in_progress_and_its_children_end_with_the_study(tmp_path: Path) -> None:
    before = f"setsid sleep 62.{OURS} & sleep 62.{OURS}"
    study = switched(tmp_path, before=before)
    for number in (signal.SIGINT, signal.SIGKILL):
        assert killed(tmp_path, study, number, f"sleep\x0062.{OURS}") in (130, -signal.SIGKILL)
        assert gone(f"sleep\x0062.{OURS}")
        subprocess.run(["rm", "-r", tmp_path / "out"], check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_while_it_switches_back_is_no_way_around_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    study = switched(tmp_path, after=f"sleep 0.3{OURS}")
    assert killed(tmp_path, study, number, f"sleep\x000.3{OURS}") == 130
    assert switches_of(tmp_path)[-1] == "after"


def test_a_daemon_that_a_switch_starts_stays_and_blocks_nothing(tmp_path: Path) -> None:
    before = f"sleep 63.{OURS} & echo $! > {tmp_path}/daemon"
    after = f"kill $(cat {tmp_path}/daemon)"
    at_b = f'[ "$(tail -n 1 {tmp_path}/switches)" = before ]'
    script = f"! {at_b} || kill -0 $(cat {tmp_path}/daemon) || exit 3; echo 2.50013"
    study = switched(tmp_path, before=before, after=after, script=script, plan="blocks = 8")
    done = paribus("run", study, "--out", "out", cwd=tmp_path, timeout_s=100)
    assert done.returncode == 0, done.stderr + done.stdout
    assert gone(f"sleep\x0063.{OURS}")


@pytest.mark.parametrize("after", ["", "exit 8"])
@pytest.mark.parametrize("unit", ["launch", "session"])
def test_a_switch_that_fails_half_way_is_switched_back_and_says_why(
    tmp_path: Path, unit: str, after: str
) -> None:
    before = "echo no such port >&2; exit 7"
    study = switched(tmp_path, before=before, after=after, plan=f'unit = "{unit}"')
    done = paribus("run", study, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "exit code 7: no such port" in done.stderr
    assert "arms.b.before" in done.stderr
    assert switches_of(tmp_path) == (["before"] if after else ["before", "after"])
    assert ("switching back failed too" in done.stderr) == bool(after)
    assert "no such port" in (tmp_path / "out" / "logs" / "switch-b.log").read_text()


def test_a_switch_whose_program_is_missing_names_it(tmp_path: Path) -> None:
    study = write_study(tmp_path, arms='[arms.a]\n[arms.b]\nbefore = "no-such-switch on"\n')
    done = paribus("run", study, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "arms.b.before: no-such-switch on: the program could not be started" in done.stderr
    assert "if the study file must change, run the study without --resume" in done.stderr


def test_the_journal_knows_what_is_still_switched(tmp_path: Path) -> None:
    study = load_study(switched(tmp_path, after="exit 5"))
    arm = study.arms[1]
    with Store(tmp_path, write=True) as store, Switches(study, Journal(store)) as switches:
        with pytest.raises(ParibusError, match="exit code 5"), switches.at([arm]):
            assert Journal(store).switched() == ["b"]
        assert Journal(store).switched() == ["b"]
        (tmp_path / "switch.sh").write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/switches\n")
        switches.restore()
        assert Journal(store).switched() == []
    assert switches_of(tmp_path) == ["before", "after"]
