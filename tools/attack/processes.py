"""Processes below another, and calls of Linux that Python 3.11 has no name for."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_NOSUID_NODEV = 0x2 | 0x4
MS_REMOUNT = 0x20
MNT_DETACH = 2
MS_BIND_ALL = 0x1000 | 0x4000
MS_PRIVATE_ALL = 0x4000 | 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that lives: its pid and its command line."""

    pid: int
    argv: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.argv)[:80]


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Be killed when the parent ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def descendants(pid: int) -> list[Process]:
    """Return the descendants of `pid` that live, zombies left out, nearest first."""
    below: dict[int, list[int]] = {}
    dead: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                below.setdefault(int(fields[1]), []).append(int(entry.name))
                if fields[0] in "ZX":
                    dead.add(int(entry.name))
    found, queue = [], [pid]
    while queue:
        for child in below.get(queue.pop(0), []):
            queue.append(child)
            if child not in dead:
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace")
                    found.append(Process(child, tuple(words.rstrip("\0").split("\0"))))
    return found


def catches(pid: int, number: int) -> bool:
    """Return whether the process has a handler of its own for the signal."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def reap(*, spare: int = 0) -> None:
    """Wait for every child that has ended, but for `spare`, which its starter waits for."""
    for child in _children():
        if child != spare:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)


def _children() -> list[int]:
    me = os.getpid()
    return [int(word) for word in Path(f"/proc/{me}/task/{me}/children").read_text().split()]


def gone(within_s: float) -> list[Process]:
    """Return the descendants that still live after `within_s` seconds; returns early if none do."""
    deadline = time.monotonic() + within_s
    while True:
        reap()
        left = descendants(os.getpid())
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def end_all() -> None:
    """Kill every descendant and wait for all of them."""
    while left := descendants(os.getpid()):
        for one in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one.pid, signal.SIGKILL)
        reap()
        time.sleep(0.01)
    reap()


def enter_namespace() -> bool:
    """Enter a mount namespace of one's own, as root or with a user namespace; False if refused.

    In a user namespace user and group keep their numbers. Whatever is executed later has no more
    privilege than before.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS if uid == 0 else CLONE_NEWNS | CLONE_NEWUSER
    if _libc.unshare(flags) != 0:
        return False
    try:
        if uid != 0:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        _mount("none", "/", "", MS_PRIVATE_ALL, "")
        mount_tmpfs(Path("/dev/shm"), "mode=1777")
    except OSError:
        return False
    return True


def mount_tmpfs(target: Path, options: str, *, again: bool = False) -> None:
    """Mount an empty file system of memory (or change the one that is there); raises OSError."""
    _mount("tmpfs", str(target), "tmpfs", MS_NOSUID_NODEV | (MS_REMOUNT if again else 0), options)


def bind_mount(source: Path, target: Path) -> None:
    """Let `target` show what is in `source` too, mounts below it included; raises OSError."""
    _mount(str(source), str(target), "", MS_BIND_ALL, "")


def unmount(target: Path) -> None:
    """Let `target` show again what is below; raises OSError."""
    if _libc.umount2(str(target).encode(), MNT_DETACH) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> None:
    words = [source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags)]
    if _libc.mount(*words, options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)
