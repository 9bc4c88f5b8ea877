"""The lock of a study directory: who holds it, who waits, and what is said where there is none."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
import subprocess
import threading
from pathlib import Path

import pytest

from paribus.core import StoreError
from paribus.store import AtWorkError, Lock, at_work
from studies import command, write_study

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
    done = subprocess.run(
        command("run", study, "--out", "out"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=_without_locks,
        check=False,
    )
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
