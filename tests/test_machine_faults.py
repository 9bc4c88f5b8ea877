"""What the measuring machine lacks is no arm's failure: no space, no inodes, no descriptors."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from paribus.core import Command, MachineError, Room, State, UserError
from paribus.launch.local import LocalStation, clear_leftovers
from paribus.launch.space import LEAST_BYTES, LEAST_INODES, fault_of
from paribus.store import Store
from processes import gone, processes_with, ran
from stations import launched
from studies import RANDOM, command, launches_in, paribus, write_study

PLENTY = Room("/tmp", 1 << 30, 1 << 20)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of few inodes and little space."""
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m,nr_inodes=120", "small", place],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here: not root")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["inodes", "space"])
def test_what_is_used_up_stops_the_study_and_is_no_failure(
    small: Path, tmp_path: Path, what: str
) -> None:
    """Each launch of the arms alike uses some up for good, until none is left."""
    used = small / "used"
    used.mkdir()
    take = (
        f"for i in 1 2 3 4 5 6 7 8 9 10; do : > {used}/$$-$i || exit 3; done"
        if what == "inodes"
        else f"head -c 500000 /dev/zero > {used}/$$ || exit 3"
    )
    study = write_study(tmp_path, script=f"[ -e {tmp_path}/repaired ] || {{ {take}; }}; {RANDOM}")
    out = small / "out"
    done = paribus("run", study, "--out", out, cwd=tmp_path, code=2)
    assert "Traceback" not in done.stderr
    assert f"no {what} are left" in done.stderr or f"no {what} is left" in done.stderr
    assert "--resume" in done.stderr
    assert {one.outcome.state for one in launches_in(out)} <= {State.OK}
    shutil.rmtree(used)
    (tmp_path / "repaired").touch()
    again = paribus("run", study, "--out", out, "--resume", cwd=tmp_path)
    assert "reliability" not in again.stdout
    with Store(out) as store:
        assert {one.outcome.state for one in store.launches()} == {State.OK}
        assert len(list(store.launches())) > 16


@pytest.mark.parametrize("limit", ["ulimit -n 40", "ulimit -f 16"])
def test_limits_that_leave_too_little_are_refused_before_the_first_launch(
    tmp_path: Path, limit: str
) -> None:
    study = write_study(tmp_path)
    words = command("run", study, "--out", tmp_path / "out")
    done = ran(["sh", "-c", f'{limit}; exec "$@"', "sh", *words], code=2)
    assert limit.rpartition(" ")[0] in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_faults_are_distinguished_from_failures() -> None:
    full = Room("/tmp/x", LEAST_BYTES - 1, 1 << 20)
    no_inodes = Room("/tmp/x", 1 << 30, LEAST_INODES - 1)
    shared = Room("/dev/shm/paribus-00000000/7", 30 << 20, None)
    assert "no space" in fault_of([PLENTY, full], 1, "")
    assert "no inodes" in fault_of([PLENTY, no_inodes], 1, "")
    assert fault_of([PLENTY], 1, "segmentation fault") == ""
    assert fault_of([PLENTY], -signal.SIGBUS, "") == ""
    assert "bus error" in fault_of([PLENTY, shared], -signal.SIGBUS, "")
    assert "bus error" in fault_of([PLENTY, shared], 135, "")
    assert "No space left" in fault_of([PLENTY], 1, "write: No space left on device")
    assert "not enough space" in fault_of([PLENTY], 1, "there is not enough space for /dev/shm/x")
    # The limit of a container may be what a study is about.
    assert fault_of([PLENTY], 1, "socket: Too many open files") == ""
    assert fault_of([PLENTY], -signal.SIGXFSZ, "") == ""


def test_the_limit_of_a_files_size_is_a_fault_where_there_is_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, hard))
    try:
        assert "ulimit -f" in fault_of([PLENTY], 128 + signal.SIGXFSZ, "")
        assert "ulimit -f" in fault_of([PLENTY], 1, "write: File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_scratch_is_nobody_elses_and_of_a_random_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    names = set()
    for _ in range(5):
        with LocalStation() as host:
            for place in (Path(host.scratch), Path("/dev/shm", Path(host.scratch).name)):
                seen = place.lstat()
                assert stat.S_ISDIR(seen.st_mode)
                assert (stat.S_IMODE(seen.st_mode), seen.st_uid) == (0o700, os.geteuid())
            names.add(host.scratch)
    assert len(names) == 5
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_not_used(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    with LocalStation() as host:
        Path(host.scratch, "launch").symlink_to(victim)
        with pytest.raises(MachineError, match="exists"):
            launched(host, Command(("true",), files={"planted": "x"}), tmp_path, 5)
    assert list(victim.iterdir()) == []


def test_leftovers_are_removed_by_name_and_not_through_links(tmp_path: Path) -> None:
    mark = f"35{os.getpid()}"
    left, link = tmp_path / "paribus-01234567", tmp_path / "paribus-89abcdef"
    left.mkdir()
    (left / "file").touch()
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "file").touch()
    link.symlink_to(keep)
    orphan = subprocess.Popen(["sleep", mark], env={"PATH": "/bin:/usr/bin", "TMPDIR": f"{left}/7"})
    clear_leftovers([str(left), str(link), str(keep), str(tmp_path / "paribus-00000000")])
    assert orphan.wait(timeout=10) == -signal.SIGKILL
    assert not processes_with(f"sleep\0{mark}")
    assert not left.exists()
    assert (keep / "file").exists()


def test_a_warden_that_is_killed_between_launches_is_noticed(tmp_path: Path) -> None:
    with LocalStation() as host:
        scratch = Path(host.scratch)
        host._warden.kill()
        host._warden.wait()
        with pytest.raises(MachineError, match="process that starts launches"):
            launched(host, Command(("true",)), tmp_path, 5, f"{scratch}/launch")
    assert not scratch.exists()
    assert not Path("/dev/shm", scratch.name).exists()


def test_ranks_of_a_warden_that_was_killed_end_with_the_sitting(tmp_path: Path) -> None:
    mark = f"36{os.getpid()}"

    def kill(_number: int, _frame: object) -> None:
        host._warden.kill()

    old = signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(MachineError), LocalStation() as host:
            launched(
                host,
                Command(("/bin/sh", "-c", f"setsid sleep {mark} & sleep {mark}; true")),
                tmp_path,
                60,
            )
    finally:
        signal.signal(signal.SIGALRM, old)
    assert gone(f"sleep\0{mark}")


def test_a_temporary_directory_that_others_may_change_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(shared))
    with pytest.raises(UserError, match="everyone may write") as caught, LocalStation():
        pass
    assert "TMPDIR" in caught.value.fix
    shared.chmod(0o1777)
    with LocalStation() as host:
        assert host.scratch.startswith(str(shared))


def test_a_study_directory_that_others_may_change_is_refused(tmp_path: Path) -> None:
    study = write_study(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    done = paribus("run", study, "--out", out, cwd=tmp_path, code=2)
    assert "everyone can write" in done.stderr
    out.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(out, 65534, 65534)
        done = paribus("run", study, "--out", out, cwd=tmp_path, code=2)
        assert "another user" in done.stderr
    assert list(out.iterdir()) == []
