"""Paribus as a victim: started in an arena, waited for, and how it ended."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from attack.arena import Arena
from attack.ground import PARIBUS, environment
from attack.hostile import as_user
from attack.processes import catches

LIMIT_S = 150.0
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|Exception ignored|Fatal Python error")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CONTROL_BUT_RETURN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a victim ended: its exit code (-N: signal N; None: it had to be killed), what it said."""

    code: int | None
    out: str
    err: str
    peak_mib: float
    seconds: float

    def last(self) -> str:
        """Return the end of what it said on stderr, on one line."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        return ascii(" | ".join(lines[-2:])[-160:])


class Victim:
    """Paribus at work; always `end` it."""

    def __init__(
        self,
        arena: Arena,
        words: tuple[str | Path, ...],
        env: Mapping[str, str],
        limits: Mapping[int, int],
        terminal: int | None,
        uid: int,
    ) -> None:
        self.arena = arena
        number = len(list(arena.folder.glob("said-*.out")))
        self.said = [arena.folder / f"said-{number}.{kind}" for kind in ("out", "err")]
        self.begin = time.monotonic()

        def in_child() -> None:
            for name in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
                signal.signal(name, signal.SIG_DFL)
            if terminal is not None:
                fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            for what, most in limits.items():
                resource.setrlimit(what, (most, most))
            if uid != os.geteuid():
                as_user(uid)

        with self.said[0].open("wb") as out, self.said[1].open("wb") as err:
            self.process = subprocess.Popen(
                [PARIBUS, *map(str, words)],
                cwd=arena.folder,
                env=environment(arena.folder, arena.ground.cache, env),
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=out if terminal is None else terminal,
                stderr=err if terminal is None else terminal,
                start_new_session=True,
                preexec_fn=in_child,
            )

    @property
    def pid(self) -> int:
        """Return its pid, which is that of its process group too."""
        return self.process.pid

    def running(self) -> bool:
        """Return whether it goes on."""
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        return found is None

    def until(self, seen: Callable[[], object], within_s: float = LIMIT_S) -> bool:
        """Wait until `seen` returns something true; False if the victim ends before."""
        deadline = time.monotonic() + within_s
        while self.running() and time.monotonic() < deadline:
            if seen():
                return True
            time.sleep(0.01)
        return False

    def until_after(self, seconds: float) -> bool:
        """Wait until so long after its start; False if it ends before."""
        moment = self.begin + seconds
        return not self.until(lambda: time.monotonic() >= moment) or self.running()

    def until_launches(self, number: int) -> bool:
        """Wait until so many launches were begun; False if it ends before."""
        logs = self.arena.out / "logs"
        return self.until(lambda: len(list(logs.glob("*.out"))) >= number)

    def until_moment(self, lasts_s: float) -> bool:
        """Wait until a moment drawn over the whole life of a study; False if it ends before.

        Half of the moments are drawn by time, half by launches: what comes before the first, and
        how long each takes, depends on how busy this machine is.
        """
        draw = self.arena.random
        if draw.random() < 0.5:
            return self.until_after(draw.uniform(0.0, 1.0) * lasts_s)
        return self.until_launches(draw.randint(1, 18)) and self.until_after(
            time.monotonic() - self.begin + draw.uniform(0.0, 0.05)
        )

    def in_control(self) -> bool:
        """Return whether Paribus, not only the Python that is still starting, answers signals."""
        return catches(self.pid, signal.SIGTERM)

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send it a signal, or its whole process group."""
        (os.killpg if group else os.kill)(self.pid, number)

    def end(self, within_s: float = LIMIT_S) -> Ended:
        """Return how it ended; one that takes longer is killed."""
        self.until(lambda: False, within_s)
        killed = self.running()
        if killed:
            self.signal(signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        out, err = (path.read_text(errors="replace") for path in self.said)
        code = None if killed else self.process.returncode
        return Ended(code, out, err, usage.ru_maxrss / 1024, time.monotonic() - self.begin)


def start(
    arena: Arena,
    *words: str | Path,
    env: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    terminal: int | None = None,
    uid: int | None = None,
) -> Victim:
    """Return `paribus WORDS`, started, as the user `uid`; `limits` are resource limits."""
    who = os.geteuid() if uid is None else uid
    return Victim(arena, words, env or {}, limits or {}, terminal, who)


def paribus(
    arena: Arena,
    *words: str | Path,
    within_s: float = LIMIT_S,
    env: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
) -> Ended:
    """Return how `paribus WORDS` ended."""
    return start(arena, *words, env=env, limits=limits).end(within_s)


def run_words(arena: Arena, study: Path) -> list[str | Path]:
    """Return the words that start the study of an arena, or go on with it."""
    begun = (arena.out / "plan.json").exists()
    return ["run", study, "--out", arena.out, *(["--resume"] if begun else [])]


def clean(arena: Arena, ended: Ended, when: str) -> bool:
    """Expect an end in time without a traceback or a control character; returns whether it is."""
    found = _TRACEBACK.search(ended.err + ended.out)
    raw = _CONTROL.search(ended.out) or _CONTROL_BUT_RETURN.search(ended.err)
    return (
        arena.expect(ended.code is not None, f"{when}: does not end")
        and arena.expect(not found, f"{when}: traceback: {ended.last()}")
        and arena.expect(not raw, f"{when}: {raw and ascii(raw[0])} in the output")
    )


def ends(arena: Arena, ended: Ended, when: str, codes: tuple[int, ...] = (0,)) -> bool:
    """Expect a clean end with one of `codes`, with 2 an error message; returns whether it is."""
    return (
        clean(arena, ended, when)
        and arena.expect(ended.code in codes, f"{when}: exit {ended.code}: {ended.last()}")
        and arena.expect(
            ended.code != 2 or "paribus: " in ended.err,
            f"{when}: exit 2 without a message: {ended.last()}",
        )
    )
