"""The lock of a study directory: who holds it, who waits, and the error where there is none."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
import threading
from pathlib import Path

import pytest

from paribus.__main__ import main
from paribus.core import StoreError
from paribus.plan import read_plan
from paribus.store import AtWorkError, Lock, Store, at_work
from pausing import Ended, Task, ended
from processes import ran
from studies import RANDOM, command, interrupted, paribus, write_study

PLAN = "blocks = 8"
LAUNCHES = 18
RUN = ["run", "study.toml", "--out", "goal"]
REFUSED = ("another Paribus is at work in this directory", "already exists")


def whole(directory: Path, launches: int = LAUNCHES) -> None:
    """Check that a study directory has all its launches, and that its verdict can be reported."""
    plan = read_plan(directory)
    with Store(directory) as store:
        assert store.check_plan(plan.sha256)
        assert len(store.counting()) == launches
    assert main(["report", str(directory), "--brief"]) == 0


def says_so(end: Ended) -> bool:
    """Return whether a start ended for another was quicker, with cause and next step alone."""
    *_, cause, fix = end.errors.rstrip("\n").split("\n")
    return (
        end.code == 2
        and cause.startswith("paribus: goal: ")
        and cause.endswith(REFUSED)
        and fix.startswith("  ")
    )


def tasks(folder: Path, numbers: range | tuple[int, ...], starts: list[list[str]]) -> list[Task]:
    """Return a task for each step, in a folder of its own that has a study."""
    made = []
    for number in numbers:
        own = folder / str(number)
        own.mkdir()
        write_study(own, plan=PLAN)
        made.append(Task(str(own), "goal", starts, step=number))
    return made


@pytest.mark.slow("steps")
@pytest.mark.parametrize("steps", [(1, 2, 3, 4), (5, 6, 7, 8, 9), (11, 13, 16, 20, 30)], ids=str)
def test_a_start_between_any_two_steps_of_another(tmp_path: Path, steps: tuple[int, ...]) -> None:
    """Without the lock, both had run a study there: from step 6 on."""
    several = tasks(tmp_path, steps, [RUN, RUN])
    for task, ends in zip(several, ended(several), strict=True):
        assert sorted(end.code for end in ends) == [0, 2], (task.step, ends)
        assert sum(map(says_so, ends)) == 1, (task.step, ends)
        whole(Path(task.folder, "goal"))


def test_where_both_had_won(tmp_path: Path) -> None:
    several = tasks(tmp_path, (7,), [RUN, RUN, RUN])
    (ends,) = ended(several)
    assert sorted(end.code for end in ends) == [0, 2, 2], ends
    assert sum(map(says_so, ends)) == 2
    whole(tmp_path / "7" / "goal")


@pytest.mark.slow("seed")
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("more", [[], ["--replace"]], ids=["new", "replace"])
def test_many_starts_with_pauses_that_are_drawn(tmp_path: Path, seed: int, more: list[str]) -> None:
    write_study(tmp_path, plan=PLAN)
    if more:
        assert paribus(*RUN, cwd=tmp_path).returncode == 0
    (ends,) = ended([Task(str(tmp_path), "goal", [[*RUN, *more]] * 5, seed=seed)])
    assert [end.code for end in ends].count(0) == 1, ends
    assert sum(map(says_so, ends)) == 4, ends
    whole(tmp_path / "goal")


def test_a_study_is_resumed_once(tmp_path: Path) -> None:
    study = write_study(tmp_path, script=f"sleep 0.05; {RANDOM}", plan=PLAN)
    directory = interrupted(study, cwd=tmp_path, out="goal")
    resume = [*RUN, "--resume"]
    (ends,) = ended([Task(str(tmp_path), "goal", [resume] * 3, step=20)])
    assert sorted(end.code for end in ends) == [0, 2, 2], ends
    assert sum(map(says_so, ends)) == 2, ends
    whole(directory)


def test_without_a_directory_each_start_has_its_own(tmp_path: Path) -> None:
    """As a second one that starts later has: its name says which."""
    write_study(tmp_path, plan=PLAN)
    (ends,) = ended([Task(str(tmp_path), "study.study", [["run", "study.toml"]] * 3, seed=1)])
    assert [end.code for end in ends] == [0, 0, 0], ends
    names = ("study.study", "study-2.study", "study-3.study")
    assert {path.name for path in tmp_path.glob("*.study")} == set(names)
    for name in names:
        whole(tmp_path / name)
    assert sum("a study is at work in study" in end.errors for end in ends) == 2, ends


@pytest.mark.parametrize("out", [[], ["--out", "goal"]], ids=["names", "out"])
def test_two_commands_at_once(tmp_path: Path, out: list[str]) -> None:
    words = ["ab", "--a", "true", "--b", "true", "--blocks", "8", *out]
    (ends,) = ended([Task(str(tmp_path), "goal" if out else "ab", [words] * 3, seed=2)])
    files = {path.name for path in tmp_path.iterdir()}
    if out:
        assert sorted(end.code for end in ends) == [0, 2, 2], ends
        assert len(files - {"goal"}) == 1, files
        whole(tmp_path / "goal")
    else:
        assert [end.code for end in ends] == [0, 0, 0], ends
        assert files == {f"ab{n}.{end}" for n in ("", "-2", "-3") for end in ("toml", "study")}


FLOCK = {"x86_64": 73, "aarch64": 32}
"""The number of flock(2)."""


def test_one_holds_it_and_it_goes_with_the_process(tmp_path: Path) -> None:
    held = Lock(tmp_path / "made").take()
    assert held.made
    assert at_work(held.directory)
    with pytest.raises(AtWorkError):
        Lock(held.directory).take()
    child = os.fork()
    if not child:
        held.release()
        os._exit(0)
    os.waitpid(child, 0)
    assert at_work(held.directory)
    held.release()
    assert not at_work(held.directory)
    child = os.fork()
    if not child:
        Lock(tmp_path / "made").take()
        os._exit(0)
    os.waitpid(child, 0)
    assert not Lock(held.directory).take().made


def test_who_only_looks_is_waited_for(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        later = threading.Timer(0.05, fcntl.flock, (looking, fcntl.LOCK_UN))
        later.start()
        Lock(tmp_path).take(60).release()
        later.join()


def test_a_lock_whose_file_is_removed_meanwhile_is_not_the_lock(tmp_path: Path) -> None:
    """As the holder does that made the directory and launched nothing."""
    first = Lock(tmp_path / "made").take()
    later = threading.Timer(0.05, _remove, (first,))
    later.start()
    second = Lock(first.directory).take(60)
    later.join()
    assert second.made
    assert at_work(second.directory)
    with pytest.raises(AtWorkError):
        Lock(second.directory).take()
    second.release()


def _remove(lock: Lock) -> None:
    (lock.directory / "lock").unlink()
    lock.directory.rmdir()
    lock.release()


def _without_locks() -> None:
    """Let flock(2) fail from here on, as on a file system without locks: seccomp(2), a filter."""
    number = FLOCK[platform.machine()]
    filters = b"".join(
        struct.pack("HBBI", *row)
        for row in (
            (0x20, 0, 0, 0),  # load the number of the call
            (0x15, 0, 1, number),  # another one: go on behind the next line
            (0x06, 0, 0, 0x00050000 | errno.ENOLCK),  # SECCOMP_RET_ERRNO
            (0x06, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
        )
    )
    rows = ctypes.create_string_buffer(filters)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(rows)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


@pytest.mark.skipif(platform.machine() not in FLOCK, reason="the number of flock(2) is not known")
def test_no_study_is_written_where_files_cannot_be_locked(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    done = ran(command("run", study, "--out", "out"), cwd=tmp_path, preexec_fn=_without_locks)
    *_, cause, fix = done.stderr.rstrip("\n").split("\n")
    assert done.returncode == 2, done.stderr
    assert cause == (
        "paribus: out: files cannot be locked here (No locks available), so two studies could mix"
    )
    assert "choose a directory on another file system with --out" in fix
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write here: Not a directory"):
        Lock(tmp_path / "file" / "out").take()


def test_a_link_that_leads_nowhere_is_no_study_at_work(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "nothing")
    with pytest.raises(StoreError, match=r"cannot write here: No such file or directory"):
        Lock(tmp_path / "out").take()
    (tmp_path / "nothing").mkdir()
    Lock(tmp_path / "out").take().release()
