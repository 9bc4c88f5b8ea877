"""The process that starts launches, and outlives Paribus just long enough to end them.

Started by local.py as `python -I -S warden.py TMPDIR`, it says on stdout which scratch directory it
made there, reads one JSON request per line on stdin and answers each with one line on stdout. A
request without an argv ends the launch that goes on, if one does; with "confirm" it is answered
too. Why a process of its own:

- MPI launchers put every rank into a process group of its own, so ending the launcher's group
  leaves ranks behind. The warden is a child subreaper: whatever a launch started becomes its
  child when orphaned, and is found and ended, however often it forked or changed its session.
- When Paribus is killed, even by SIGKILL, the warden's stdin closes: it ends the launch in
  flight, removes its scratch directory and leaves.

Nothing is ever made under a name that somebody else may know beforehand: the scratch directory, and
the one beside it for shared memory, have a random name and mode 0700, and mkdir(2) refuses a name
that is taken. All else lies below them.

While a launch is measured it sleeps in one select() and uses no CPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fnmatch
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Collection
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
# Seconds from SIGTERM to SIGKILL: of a launch that timed out, of one that is cancelled, and of the
# other processes that a launch leaves.
GRACE_S = 3.0
CLOSING_GRACE_S = 0.5
LINGER_S = 1.0
SHARED_MEMORY = "/dev/shm"
# How the names of files of MPI libraries in SHARED_MEMORY begin.
SEGMENTS = ("mpich_", "Intel_MPI_", "vader_segment.", "sm_segment.", "ucx_shm_")

_libc = ctypes.CDLL(None, use_errno=True)


def _descendants() -> list[int]:
    """Return the pids of all descendants, nearest first, from one reading of /proc."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                contextlib.suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat") as f,
            ):
                # The command name may hold anything, parentheses and spaces included.
                children.setdefault(int(f.read().rpartition(")")[2].split()[1]), []).append(
                    int(name)
                )
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        offspring = children.get(queue.pop(), [])
        found += offspring
        queue += offspring
    return found


class Spent:
    """Processor time and preemptions of a launch, summed over processes as they are waited for."""

    def __init__(self) -> None:
        self.cpu_s, self.involuntary = 0.0, 0

    def wait(self, pid: int) -> tuple[int, int]:
        """Return pid and status from wait4(2) for `pid`, and add up the usage; (0, 0): it goes on.

        The usage of a process includes that of children for which it waited, which we do not see.
        """
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            self.cpu_s += usage.ru_utime + usage.ru_stime
            self.involuntary += usage.ru_nivcsw
        return found, status


class Child:
    """The first process of a launch; `code` is as in subprocess, None while it goes on."""

    def __init__(self, pid: int, spent: Spent) -> None:
        self.pid, self.spent = pid, spent
        self.code: int | None = None

    def ended(self) -> bool:
        """Return whether it has ended."""
        if self.code is None:
            with contextlib.suppress(ChildProcessError):
                found, status = self.spent.wait(self.pid)
                if found:
                    self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None


def _reap(spent: Spent) -> bool:
    """Reap every child that has ended; return True while some are left."""
    try:
        while spent.wait(-1)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_all(spent: Spent, term_s: float, spared: Collection[int] = ()) -> None:
    """End every descendant but those `spared`: by TERM, and after `term_s` seconds by KILL."""
    deadline = time.monotonic() + term_s
    signalled: set[int] = set()
    while _reap(spent):
        late = time.monotonic() >= deadline
        found = [pid for pid in _descendants() if pid not in spared]
        if not found:
            return
        for pid in found:
            if late or pid not in signalled:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                signalled.add(pid)
        time.sleep(0.01)


def segments_now() -> set[str]:
    """Return the shared-memory files of MPI libraries that are there now."""
    with contextlib.suppress(OSError):
        return {name for name in os.listdir(SHARED_MEMORY) if name.startswith(SEGMENTS)}
    return set()


def remove_segments(before: set[str]) -> None:
    """Remove the segments that were not there `before`, are ours, and that nobody maps.

    Killed ranks leave theirs behind, and not every library lets them be put elsewhere.
    """
    new = segments_now() - before
    if not new:
        return
    mapped = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/maps", errors="replace") as maps:
                mapped |= {
                    line.split("/dev/shm/")[1].split()[0] for line in maps if "/dev/shm/" in line
                }
    for name in new - mapped:
        path = os.path.join(SHARED_MEMORY, name)
        with contextlib.suppress(OSError):
            if os.stat(path).st_uid == os.getuid():
                os.unlink(path)


def _append(directory: str, patterns: list[str], out: Any) -> None:
    """Append to `out` the files in `directory` that match `patterns`, in order of their names."""
    names = sorted(os.listdir(directory)) if patterns else []
    for name in names:
        path = os.path.join(directory, name)
        if any(fnmatch.fnmatchcase(name, p) for p in patterns) and os.path.isfile(path):
            with open(path, "rb") as written:
                shutil.copyfileobj(written, out)


def _room(paths: Collection[str]) -> list[list[Any]]:
    """Return [path, free bytes, free inodes] of each of `paths`; None where none are counted."""
    found: list[list[Any]] = []
    for path in paths:
        with contextlib.suppress(OSError):
            of = os.statvfs(path)
            found.append([path, of.f_bavail * of.f_frsize, of.f_favail if of.f_files else None])
    return found


def _is_ours(path: str) -> bool:
    """Return whether our directory `path` is there; a study may have mounted something over it.

    Raises PermissionError if it is somebody else's.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(errno.EPERM, "belongs to another user", path)
    return True


def _make_own(parents: Collection[str]) -> list[str]:
    """Make a directory of the same random name in each of `parents`, and return the paths."""
    while True:
        name = f"paribus-{os.urandom(4).hex()}"
        made: list[str] = []
        try:
            for parent in parents:
                made.append(os.path.join(parent, name))
                os.mkdir(made[-1], 0o700)
        except FileExistsError:
            for path in made[:-1]:
                os.rmdir(path)
        except OSError:
            for path in made[:-1]:
                os.rmdir(path)
            raise
        else:
            return made


class Warden:
    """Serves requests until stdin closes."""

    def __init__(self) -> None:
        self.buffer = b""
        self.closed = False
        self.asked: dict[str, Any] = {}  # a request that was read and not served yet
        self.own: list[str] = []  # its directories: for scratch, and in shared memory
        self.wake_r, self.wake_w = os.pipe()

    def start(self, temporary: str) -> None:
        """Become a subreaper, make the directories below `temporary`, and answer with the first."""
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        os.set_blocking(self.wake_w, False)
        os.set_blocking(self.wake_r, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_w, warn_on_full_buffer=False)
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Only Paribus decides when a launch ends: by its deadline or by closing stdin.
            # A handler, not SIG_IGN: launches would inherit that and be deaf to TERM.
            signal.signal(name, lambda *_: None)
        try:
            shared = [SHARED_MEMORY] if os.path.isdir(SHARED_MEMORY) else []
            self.own = _make_own([temporary, *shared])
        except OSError as error:
            _answer(_refused(error))
            self.closed = True
        else:
            _answer({"scratch": self.own[0]})

    def next_line(self, timeout_s: float | None, child: Child | None) -> str | None:
        """Return the next request line; None at time-out, end of input, or when `child` ended."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while b"\n" not in self.buffer:
            if child is not None and child.ended():
                return None
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([0, self.wake_r], [], [], left)
            if self.wake_r in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wake_r, 4096)
            if 0 in ready:
                data = os.read(0, 1 << 16)
                if not data:
                    self.closed = True
                    return None
                self.buffer += data
            if not ready and left == 0.0:
                return None
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def launch(self, request: dict[str, Any]) -> None:
        """Run one request and answer it; everything it started has ended by then.

        With "stay" in the request, what it left running in the background stays. Its directories
        are removed after the answer, while Paribus stores the outcome.
        """
        own = self.own if request["name"] else []
        directories = [os.path.join(parent, request["name"]) for parent in own]
        segments = segments_now()
        made: list[str] = []
        try:
            for directory in (*own, *directories):
                if directory not in own or not _is_ours(directory):
                    os.mkdir(directory, 0o700)
                    made.append(directory)
            for name, text in request["files"].items():
                path = os.path.join(directories[0], name)
                with open(path, "x") as f:
                    f.write(text)
                os.chmod(path, 0o700)
            with open(request["stdout"], "wb") as out, open(request["stderr"], "wb") as err:
                answer = self._watch(request, directories[0] if directories else "/", out, err)
                if "error" not in answer:
                    if directories:
                        _append(directories[0], request["outputs"], out)
                    answer["room"] = _room([os.path.dirname(request["stdout"]), *directories])
            _answer(answer)
        except OSError as error:
            _answer(_refused(error))
        finally:
            for directory in reversed(made):
                shutil.rmtree(directory, ignore_errors=True)
            remove_segments(segments)

    def _watch(self, request: dict[str, Any], scratch: str, out: Any, err: Any) -> dict[str, Any]:
        """Start the program, wait for its end, its time limit or a cancel; return the answer."""
        spent = Spent()
        spared = frozenset(_descendants()) if request["stay"] else frozenset()
        begin = time.monotonic()
        try:
            # No preexec_fn: a child that executes Python is forked, which takes 1 to 5 ms; without,
            # vfork takes 0.2 ms.
            started_by_us = subprocess.Popen(
                request["argv"],
                env=request["env"],
                cwd=request["cwd"] or scratch,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            return {**_refused(error), "program": True}
        child = Child(started_by_us.pid, spent)
        line = self.next_line(request["timeout_s"], child)
        wall_s = time.monotonic() - begin
        cancelled, self.asked = line is not None, json.loads(line or "{}")
        timed_out = not self.closed and not cancelled and not child.ended()
        if self.closed or timed_out or cancelled:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            deadline = time.monotonic() + (GRACE_S if timed_out else CLOSING_GRACE_S)
            while not child.ended() and time.monotonic() < deadline:
                time.sleep(0.01)
            # The launcher has ended, or ignores TERM; what it started may still clean up.
            _end_all(spent, LINGER_S, spared)
        elif not request["stay"]:
            _end_all(spent, LINGER_S)
        # Reaped by us, not by subprocess, which would wait for it again.
        started_by_us.returncode = -signal.SIGKILL if child.code is None else child.code
        return {
            "exit_code": started_by_us.returncode,
            "wall_s": wall_s,
            "timed_out": timed_out,
            "cpu_s": spent.cpu_s,
            "involuntary": spent.involuntary,
        }

    def serve(self) -> None:
        """Answer requests until stdin closes, then remove what is left."""
        while not self.closed and (line := self.next_line(None, None)) is not None:
            self.asked = json.loads(line)
            # A request without argv came for a launch that had just ended by itself.
            if "argv" in self.asked:
                request, self.asked = self.asked, {}
                self.launch(request)
            if self.asked.get("confirm"):
                _answer({"cancelled": True})
        for directory in self.own:
            shutil.rmtree(directory, ignore_errors=True)


def _refused(error: OSError) -> dict[str, Any]:
    return {"error": f"{error.strerror}: {error.filename}", "errno": error.errno}


def _answer(answer: dict[str, Any]) -> None:
    """Write one line to Paribus, which may be gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Serve until Paribus is gone."""
    warden = Warden()
    warden.start(sys.argv[1])
    warden.serve()


if __name__ == "__main__":
    main()
