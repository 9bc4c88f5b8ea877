"""Launches: deadlines, everything ended, nothing left behind. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.core import Command, Completed, LaunchError, MachineError
from paribus.launch import warden
from paribus.launch.local import LocalStation, capture
from processes import ended, gone, processes_with
from stations import launched


@pytest.fixture
def host() -> Iterator[LocalStation]:
    with LocalStation() as host:
        yield host


def start(
    host: LocalStation, tmp_path: Path, script: str, timeout_s: float = 20.0, name: str = "launch"
) -> Completed:
    return launched(
        host,
        Command(
            ("/bin/sh", "-c", script),
            env={"MARK": "kept"},
            files={"tool": "#!/bin/sh\necho tool\n"},
        ),
        tmp_path,
        timeout_s,
        f"{host.scratch}/{name}",
    )


def test_output_is_kept_as_printed_and_apart(host: LocalStation, tmp_path: Path) -> None:
    done = start(host, tmp_path, "printf 'a\\r\\n\\377'; echo b >&2; echo $MARK; exit 3")
    assert done.exit_code == 3
    assert not done.timed_out
    assert (tmp_path / "out").read_bytes() == b"a\r\n\xffkept\n"
    assert (tmp_path / "err").read_text() == "b\n"


def test_scratch_is_tmpdir_holds_the_files_and_is_removed(
    host: LocalStation, tmp_path: Path
) -> None:
    start(host, tmp_path, 'echo "$TMPDIR"; ./tool; touch left; ls /dev/shm')
    scratch = f"{host.scratch}/launch"
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[:2] == [scratch, "tool"]
    assert Path(host.scratch).name in lines
    start(host, tmp_path, f'ls "{host.scratch}" /dev/shm/{Path(host.scratch).name}', name="next")
    assert "launch" not in (tmp_path / "out").read_text()
    assert "next" in (tmp_path / "out").read_text()


def test_a_deadline_ends_every_descendant_whatever_its_group(
    host: LocalStation, tmp_path: Path
) -> None:
    mark = f"31{os.getpid()}"
    script = f"setsid sleep {mark} & (trap '' TERM; sleep {mark}; sleep {mark}) & sleep {mark}"
    done = start(host, tmp_path, script, timeout_s=0.3)
    assert done.timed_out
    assert not processes_with(f"sleep\0{mark}")


def test_what_a_finished_launch_left_running_is_ended(host: LocalStation, tmp_path: Path) -> None:
    mark = f"32{os.getpid()}"
    done = start(host, tmp_path, f"setsid sleep {mark} & exit 0")
    assert done.exit_code == 0
    assert not processes_with(f"sleep\0{mark}")


def test_segments_that_killed_ranks_leave_are_removed_and_no_others(
    host: LocalStation, tmp_path: Path
) -> None:
    ours = Path(f"/dev/shm/mpich_shm_test{os.getpid()}")
    foreign = Path(f"/dev/shm/test{os.getpid()}")
    try:
        start(host, tmp_path, f"touch {ours} {foreign}; kill -9 $$")
        start(host, tmp_path, "true")  # starts when the former launch is cleared away
        assert not ours.exists()
        assert foreign.exists()
    finally:
        ours.unlink(missing_ok=True)
        foreign.unlink(missing_ok=True)


def test_segments_that_were_there_before_a_launch_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory of its own: in /dev/shm, another test's launch may remove the first one."""
    monkeypatch.setattr(warden, "SHARED_MEMORY", str(tmp_path))
    old, new = tmp_path / f"{warden.SEGMENTS[0]}old", tmp_path / f"{warden.SEGMENTS[0]}new"
    old.touch()
    before = warden.segments_now()
    new.touch()
    warden.remove_segments(before)
    assert old.exists()
    assert not new.exists()


def test_a_signal_is_reported_as_a_negative_exit_code(host: LocalStation, tmp_path: Path) -> None:
    assert start(host, tmp_path, "kill -SEGV $$").exit_code == -signal.SIGSEGV


def test_what_cannot_be_started_says_so_and_the_next_launch_works(
    host: LocalStation, tmp_path: Path
) -> None:
    with pytest.raises(LaunchError, match="could not be started"):
        launched(host, Command(("/no/such/program",)), tmp_path, 5)
    assert start(host, tmp_path, "true").exit_code == 0


def test_leaving_the_context_ends_the_launch_in_flight(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a launch: the context is left, nothing of it survives."""
    mark = f"33{os.getpid()}"

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        with pytest.raises(KeyboardInterrupt), LocalStation() as host:
            start(host, tmp_path, f"setsid sleep {mark} & sleep {mark}")
    finally:
        signal.signal(signal.SIGALRM, old)
    assert not processes_with(f"sleep\0{mark}")
    assert not (tmp_path / "scratch").exists()


def test_an_interruption_just_after_the_answer_does_not_wait_for_another(
    host: LocalStation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = host._answer

    def interrupted() -> dict[str, object]:
        answer()
        monkeypatch.setattr(host, "_answer", answer)
        raise KeyboardInterrupt

    monkeypatch.setattr(host, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start(host, tmp_path, "echo one")
    assert start(host, tmp_path, "echo two").exit_code == 0
    assert (tmp_path / "out").read_text() == "two\n"


@pytest.mark.parametrize("victim", ["paribus", "warden"])
def test_sigkill_of_either_process_leaves_nothing(tmp_path: Path, victim: str) -> None:
    mark = f"34{os.getpid()}"
    code = f"""
from paribus.launch.local import LocalStation
from paribus.core.command import Command
with LocalStation() as host:
    print(host._warden.pid, flush=True)
    host.run(Command(("/bin/sh", "-c", "sleep {mark}; true")), stdout={str(tmp_path / "o")!r},
             stderr={str(tmp_path / "e")!r}, timeout_s=60, scratch=host.scratch + "/launch")
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as starter:
        guardian = int(starter.stdout.readline())
        while not processes_with(f"sleep\0{mark}"):
            time.sleep(0.01)
        os.kill(starter.pid if victim == "paribus" else guardian, signal.SIGKILL)
        starter.wait(timeout=20)
    if victim == "paribus":
        assert gone(f"sleep\0{mark}")
        assert ended([guardian])
        assert not (tmp_path / "scratch").exists()
    else:
        # Paribus sees the warden's pipe close, and ends what the warden started.
        assert gone(f"sleep {mark}; true")
        assert gone(f"sleep\0{mark}")


def test_no_place_for_output_is_this_machines_fault(host: LocalStation, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=r"could not be started.*directory"):
        host.run(
            Command(("true",)),
            stdout=str(tmp_path / "missing" / "out"),
            stderr=str(tmp_path / "err"),
            timeout_s=5,
            scratch=f"{host.scratch}/launch",
        )


def test_capture_never_raises() -> None:
    assert capture(["/no/such"]).exit_code == 127
    assert capture(["sleep", "5"], timeout_s=0.1).exit_code == 124
    done = capture(["sh", "-c", 'echo "$A"; echo e >&2; exit 4'], env={"A": "b"})
    assert (done.exit_code, done.stdout, done.stderr) == (4, "b\n", "e\n")
