"""SIGKILL at any moment loses at most the launch in flight; resume continues the same schedule."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import re
import shlex
import signal
import subprocess
import sys
import termios
import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import cycle
from pathlib import Path

import pytest

from paribus.core import State
from paribus.launch.execute import DISTURBED, UNFINISHED
from paribus.plan import read_plan
from paribus.store import Store
from processes import children, ended, gone, processes_with
from studies import RANDOM, command, launches_in, paribus, scratch_of, write_study

KILLS = 50


def complete_blocks(directory: Path) -> set[int]:
    """Return the launches of the blocks that are stored whole and count."""
    plan = read_plan(directory)
    with Store(directory) as store:
        stored = store.counting()
    return {
        launch.number
        for block in plan.blocks()
        if all(one.number in stored for one in block)
        for launch in block
    }


def own_terminal() -> None:
    """Make standard input the controlling terminal, in a session of its own."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def sittings(place: Path) -> set[Path]:
    """Return the scratch directories of sittings in `place`, and where each has its segments."""
    there = set(place.glob("paribus-????????"))
    return there | {Path("/dev/shm", path.name) for path in there}


def seconds_to_a_launch(words: list[str | Path], mark: str) -> float:
    """Return how long it takes until a command of Paribus launches something; it is killed then."""
    begun = time.monotonic()
    with subprocess.Popen(
        command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while not processes_with(mark) and process.poll() is None:
            time.sleep(0.005)
        taken = time.monotonic() - begun
        process.kill()
    assert gone(mark)
    return taken


@pytest.mark.slow
def test_kills_end_with_exactly_the_planned_launches(
    tmp_path: Path,
    sample: Callable[[Iterable[tuple[str, float]], int], list[tuple[str, float]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    seen: set[Path] = set()
    mark = f"kill{os.getpid()}"
    study = write_study(tmp_path, script=RANDOM, plan="blocks = 120", mark=mark)
    out = tmp_path / "out"
    moments = random.Random(20)
    kept: set[int] = set()
    in_flight = 0
    latest = seconds_to_a_launch(["run", study, "--out", out], mark)
    # By turns: before the first launch, during it, and somewhere among the launches.
    kinds = {"before": (0.05, latest), "during": (0.0, 0.005), "after": (0.0, 0.2)}
    every = ((kind, moments.uniform(*kinds[kind])) for _, kind in zip(range(KILLS), cycle(kinds)))
    kills = sample(every, 24)
    for kind, moment in kills:
        again = ["--resume"] if (out / "plan.json").exists() else []
        with subprocess.Popen(
            command("run", study, "--out", out, *again),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while kind != "before" and process.poll() is None and not processes_with(mark):
                time.sleep(0.001)
            time.sleep(moment)
            in_flight += bool(processes_with(mark))
            wardens = children(process.pid)
            seen |= sittings(scratch)
            process.kill()
            process.communicate(timeout=30)
        assert gone(mark), "a process of the killed launch is still there"
        assert ended(wardens)
        if (out / "launches.db").exists():
            now = complete_blocks(out)
            assert now >= kept, "a stored block was lost"
            kept = now
    assert in_flight >= len(kills) // 10, "the kills missed the launches"
    paribus("run", study, "--out", out, "--resume", cwd=tmp_path, code=0)
    plan = read_plan(out)
    everything = launches_in(out, void=True)
    counting = [one for one in everything if one.void is None]
    assert Counter(one.launch.number for one in counting) == Counter(
        launch.number for launch in plan.launches
    )
    assert [one.launch for one in sorted(counting, key=lambda one: one.launch.number)] == list(
        plan.launches
    )
    assert all(one.outcome.state is State.OK for one in counting)
    voided = [one.void for one in everything if one.void is not None]
    assert set(voided) <= {UNFINISHED, DISTURBED}
    assert voided.count(UNFINISHED) <= len(kills) + 1
    assert seen
    assert list(scratch.iterdir()) == [path for path in seen if path.exists()] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_says_how_to_continue(tmp_path: Path, number: signal.Signals) -> None:
    """What it says to type is typed, when the programs have become quick ones."""
    mark = f"stop{os.getpid()}"
    folder = tmp_path / "it's a $(touch gone) &"
    folder.mkdir()
    script = f"[ -e {tmp_path}/go ] || sleep 30; echo 1"
    study = write_study(folder, script=script, mark=mark, plan="blocks = 8")
    out = folder / "out"
    with subprocess.Popen(
        command("run", study, "--out", out), stderr=subprocess.PIPE, text=True
    ) as process:
        while not processes_with(mark):
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert not processes_with(mark)
    assert scratch_of(out) == []
    assert launches_in(out, void=True) == []
    [again] = re.findall("^  (paribus run .* --resume)$", said, re.M)
    if number is not signal.SIGINT:  # what it says is the same
        return
    (tmp_path / "go").touch()
    executed = f'paribus() {{ exec {shlex.quote(sys.executable)} -m paribus "$@"; }}; {again}'
    done = subprocess.run(["sh", "-c", executed], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    with Store(out) as store:
        assert len(store.counting()) >= 16
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_follow_the_first_change_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    """One a millisecond from when it has said how to continue until it has ended."""
    mark = f"again{os.getpid()}"
    study = write_study(tmp_path, script="sleep 30; echo 1", mark=mark)
    with subprocess.Popen(
        command("run", study, "--out", tmp_path / "out"), stderr=subprocess.PIPE, text=True
    ) as process:
        while not processes_with(mark):
            time.sleep(0.02)
        process.send_signal(number)
        while "--resume" not in (line := process.stderr.readline()):
            assert line
        while process.poll() is None:
            process.send_signal(number)
            time.sleep(0.001)
    assert process.returncode == 130


@pytest.mark.slow
def test_nohup_is_obeyed(tmp_path: Path) -> None:
    mark = f"nohup{os.getpid()}"
    study = write_study(tmp_path, script="sleep 0.1; echo 1.00017", mark=mark, plan="blocks = 8")
    with subprocess.Popen(
        command("run", study, "--out", tmp_path / "out"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as process:
        while not processes_with(mark):
            time.sleep(0.02)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == 0


@pytest.mark.slow
def test_a_closed_terminal_is_an_interruption(tmp_path: Path) -> None:
    mark = f"tty{os.getpid()}"
    study = write_study(tmp_path, script="sleep 0.2; echo 2.50013", mark=mark)
    terminal, ours = pty.openpty()
    with subprocess.Popen(
        command("run", study, "--out", tmp_path / "out"),
        stdin=ours,
        stdout=ours,
        stderr=ours,
        # Its controlling terminal: closing the other end hangs it up.
        preexec_fn=own_terminal,
    ) as process:
        os.close(ours)
        while not processes_with(mark):
            assert process.poll() is None
            time.sleep(0.02)
        os.close(terminal)
        assert process.wait(timeout=30) == 130
    assert gone(mark)
    paribus("run", study, "--out", "out", "--resume", cwd=tmp_path, code=0)


def test_a_kill_leaves_no_words_behind(tmp_path: Path) -> None:
    """What outlives Paribus to end the launch has nobody to answer, and does not complain."""
    mark = f"words{os.getpid()}"
    study = write_study(tmp_path, script="sleep 30; echo 1", mark=mark)
    with (
        (tmp_path / "err").open("w") as err,
        subprocess.Popen(
            command("run", study, "--out", tmp_path / "out"),
            stdout=subprocess.DEVNULL,
            stderr=err,
        ) as process,
    ):
        while not processes_with(mark):
            time.sleep(0.02)
        wardens = children(process.pid)
        process.kill()
    assert ended(wardens)
    said = (tmp_path / "err").read_text()
    assert "Exception" not in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_resume_after_the_end_launches_nothing_and_reports_again(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    first = paribus("run", study, "--out", "out", cwd=tmp_path, code=0)
    before = [one.launch.number for one in launches_in(tmp_path / "out", void=True)]
    again = paribus("run", study, "--out", "out", "--resume", cwd=tmp_path, code=0)
    assert [one.launch.number for one in launches_in(tmp_path / "out", void=True)] == before
    assert again.stdout == first.stdout
