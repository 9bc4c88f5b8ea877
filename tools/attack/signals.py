"""Every signal a terminal or a batch system sends, at seeded moments: resumable, nothing left."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import time
from pathlib import Path

from attack.arena import Arena
from attack.ground import MPI_STUDY, write_study
from attack.stored import whole
from attack.victim import Ended, Victim, clean, ends, paribus, run_words, start

CODES = {
    signal.SIGINT: (130,),
    signal.SIGTERM: (130, 143),
    signal.SIGHUP: (129, 130),
    # The user asks for a core dump: the process may end by the signal, but not leave anything.
    signal.SIGQUIT: (130, 131, -signal.SIGQUIT),
}


def interrupted(arena: Arena) -> None:
    """Send INT, TERM, HUP or QUIT, to the process or to its group."""
    _interrupt(arena, write_study(arena.folder), arena.ground.calm_s)


def mpi(arena: Arena) -> None:
    """The same while ranks of MPI run."""
    if not arena.ground.mpi_s:
        arena.skipped = "no MPI here"
        return
    path = arena.folder / "study.toml"
    path.write_text(MPI_STUDY)
    _interrupt(arena, path, arena.ground.mpi_s, mpi=True)


def _interrupt(arena: Arena, path: Path, lasts: float, *, mpi: bool = False) -> None:
    number = arena.random.choice(list(CODES))
    group = arena.random.random() < 0.5
    times = arena.random.choice((1, 1, 1, 2))
    when = f"{number.name}{' to the group' if group else ''}{' twice' if times == 2 else ''}"
    victim = start(arena, *run_words(arena, path))
    early = _strike(arena, victim, number, lasts, group, times)
    ended = victim.end()
    _judge(arena, ended, when, number, early=early)
    arena.nothing_left(f"after {when}")
    _resume(arena, path, mpi=mpi)


def _strike(
    arena: Arena, victim: Victim, number: signal.Signals, lasts: float, group: bool, times: int
) -> bool:
    """Send the signal at a drawn moment; returns whether Python was still starting then."""
    early = False
    if victim.until_moment(lasts):
        early = not victim.in_control()
        for i in range(times):
            time.sleep(i * arena.random.uniform(0.01, 0.3))
            with contextlib.suppress(ProcessLookupError):
                victim.signal(number, group=group)
    return early


def _judge(arena: Arena, ended: Ended, when: str, number: signal.Signals, *, early: bool) -> None:
    """Expect the documented exit code and, unless Python was still starting, clean words."""
    if early:
        codes: tuple[int, ...] = (*CODES[number], -number, 128 + number)
        arena.expect(ended.code is not None, f"early {when}: does not end")
    else:
        codes = CODES[number]
        clean(arena, ended, when)
    finished = ended.code == 0 and "done" in ended.err
    arena.expect(finished or ended.code in codes, f"{when}: exit {ended.code}: {ended.last()}")
    if ended.code == 130 and (arena.out / "plan.json").exists() and not early:
        arena.expect("--resume" in ended.err, f"{when}: does not say how to continue")


def _resume(arena: Arena, path: Path, *, mpi: bool = False) -> None:
    ended = paribus(arena, *run_words(arena, path))
    if ends(arena, ended, "resume", (0, 3) if mpi else (0,)) and not mpi:
        whole(arena, "after resume")
    arena.nothing_left("after resume")


def stopped(arena: Arena) -> None:
    """STOP for a while, then CONT: the study ends as if nothing had happened."""
    path = write_study(arena.folder)
    victim = start(arena, *run_words(arena, path))
    group = arena.random.random() < 0.5
    for _ in range(2):
        if victim.until_after(arena.random.uniform(0.1, 0.8) * arena.ground.calm_s):
            victim.signal(signal.SIGSTOP, group=group)
            time.sleep(arena.random.uniform(0.2, 1.0))
            victim.signal(signal.SIGCONT, group=group)
            arena.strikes += 1
    ended = victim.end()
    if ends(arena, ended, "STOP and CONT"):
        whole(arena, "STOP and CONT")
    arena.nothing_left("STOP and CONT")


def hung_up(arena: Arena) -> None:
    """Close the terminal: exit 129 or 130, resumable, nothing left."""
    path = write_study(arena.folder)
    ours, theirs = pty.openpty()
    env = {"TERM": "xterm"}
    victim = start(arena, *run_words(arena, path), terminal=theirs, env=env)
    os.close(theirs)
    os.set_blocking(ours, False)
    launches = arena.random.randint(0, 17)
    logs = arena.out / "logs"

    def shown() -> bool:
        with contextlib.suppress(OSError):
            os.read(ours, 65536)
        return victim.in_control() and len(list(logs.glob("*.out"))) >= launches

    victim.until(shown)
    os.close(ours)  # now the kernel sends HUP, and every write to the terminal fails
    ended = victim.end()
    arena.expect(ended.code in (129, 130), f"terminal closed: exit {ended.code}")
    arena.nothing_left("terminal closed")
    _resume(arena, path)


ATTACKS = (interrupted, hung_up, interrupted, stopped, interrupted, mpi, interrupted)
