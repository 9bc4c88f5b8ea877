"""SIGKILL at seeded moments, to Paribus and to each process below it; then resume until done."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from attack.arena import Arena
from attack.ground import MPI_STUDY, write_study
from attack.processes import Process, descendants
from attack.stored import kept, whole
from attack.victim import Victim, clean, ends, paribus, run_words, start

COMPILERS = ("cc1plus", "collect2", "ld", "as")


def study(arena: Arena) -> None:
    """Kill Paribus three times at any moment of a study; then resume it."""
    path = write_study(arena.folder)
    _kill_and_resume(arena, path, 3)


def mpi(arena: Arena) -> None:
    """The same while ranks of MPI run."""
    if not _has_mpi(arena):
        return
    path = arena.folder / "study.toml"
    path.write_text(MPI_STUDY)
    _kill_and_resume(arena, path, 2, mpi=True)


def _kill_and_resume(arena: Arena, path: Path, times: int, *, mpi: bool = False) -> None:
    frozen, before = b"", set[int]()
    lasts = arena.ground.mpi_s if mpi else arena.ground.calm_s
    for _ in range(times):
        victim = start(arena, *run_words(arena, path))
        if victim.until_moment(lasts):
            victim.signal(signal.SIGKILL)
            arena.strikes += 1
        ended = victim.end()
        arena.expect("Exception" not in ended.err, f"after SIGKILL: stderr says {ended.last()}")
        arena.nothing_left("after SIGKILL")
        now = kept(arena.out)
        arena.expect(now >= before, "a stored block was lost")
        before = now
        plan = arena.out / "plan.json"
        arena.expect(
            not frozen or plan.read_bytes() == frozen, "the plan changed between kill and resume"
        )
        frozen = plan.read_bytes() if plan.exists() else b""
    _finish(arena, path, mpi=mpi)


def _finish(arena: Arena, path: Path, *, mpi: bool = False, all_ok: bool = True) -> None:
    """Resume until done, and expect all launches, once, and nothing left."""
    ended = paribus(arena, *run_words(arena, path))
    if ends(arena, ended, "resume", (0, 3) if mpi else (0,)) and not mpi:
        # An MPI study may be decided before its last block.
        whole(arena, "after resume", all_ok=all_ok)
    arena.nothing_left("after resume")


def _child(victim: Victim, wanted: Callable[[Process], bool]) -> Process | None:
    return next((one for one in descendants(victim.pid) if wanted(one)), None)


def _is_warden(one: Process) -> bool:
    return any("warden" in word for word in one.argv)


def warden(arena: Arena) -> None:
    """Kill only the process that starts launches: an error, nothing left, and resumable."""
    path = write_study(arena.folder)
    victim = start(arena, *run_words(arena, path))
    if victim.until(lambda: _child(victim, _is_warden)):
        victim.until_launches(arena.random.randint(0, 17))
        time.sleep(arena.random.uniform(0.0, 0.05))
        if one := _child(victim, _is_warden):
            os.kill(one.pid, signal.SIGKILL)
    ended = victim.end()
    # It may have been killed after the last launch.
    if ends(arena, ended, "warden killed", (0, 2)) and ended.code == 2:
        arena.expect("--resume" in ended.err, f"warden killed: no next step: {ended.last()}")
    arena.nothing_left("warden killed")
    _finish(arena, path)


def launcher(arena: Arena) -> None:
    """Kill the launcher of MPI under way: one failed launch, and ranks that do not stay."""
    if not _has_mpi(arena):
        return
    path = arena.folder / "study.toml"
    path.write_text(MPI_STUDY)
    victim = start(arena, *run_words(arena, path))

    def starts(one: Process) -> bool:
        names = {Path(word).name for word in one.argv[:2]}
        return any(name.startswith(("mpirun", "mpiexec", "prterun")) for name in names)

    victim.until_launches(arena.random.randint(1, 12))
    if victim.until(lambda: _child(victim, starts)) and (one := _child(victim, starts)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    ended = victim.end()
    ends(arena, ended, "launcher killed", (0, 3))
    arena.nothing_left("launcher killed")


def compiler(arena: Arena) -> None:
    """Kill Paribus while it compiles: the compiler ends, and no draft stays in the cache."""
    if not _has_mpi(arena):
        return
    path, cache = arena.folder / "study.toml", arena.folder / "cache"
    path.write_text(MPI_STUDY)
    number = arena.random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
    env = {"PARIBUS_CACHE": str(cache)}
    victim = start(arena, *run_words(arena, path), env=env)

    def compiles(one: Process) -> bool:
        return Path(one.argv[0]).name in COMPILERS

    # Until the source itself is being compiled, for which there is a draft.
    if victim.until(lambda: list(cache.rglob(".draft-*")) and _child(victim, compiles)):
        time.sleep(arena.random.uniform(0.0, 0.3))
        victim.signal(number)
    ended = victim.end()
    clean(arena, ended, f"{number.name} while compiling")
    arena.nothing_left(f"{number.name} while compiling", 2.0)
    if number is not signal.SIGKILL:
        arena.expect(
            not list(cache.rglob(".draft-*")), f"{number.name} while compiling: a draft stays"
        )
    again = paribus(arena, *run_words(arena, path), env=env)
    arena.expect(again.code in (0, 3), f"after the compiler's end: exit {again.code}")
    drafts = list(cache.rglob(".draft-*"))
    arena.expect(not drafts, "a draft of a killed compilation stays in the cache for ever")
    arena.nothing_left("after the compiler's end")


def report(arena: Arena) -> None:
    """Kill `paribus report` three times: files whole or old, and the next report is as ever."""
    path = write_study(arena.folder)
    verdict = arena.out / "verdict.json"
    if not ends(arena, paribus(arena, *run_words(arena, path)), "before report is killed"):
        return
    before = verdict.read_bytes()
    for _ in range(3):
        victim = start(arena, "report", arena.out)
        if victim.until_after(arena.random.uniform(0.1, 0.5) * arena.ground.calm_s):
            victim.signal(signal.SIGKILL)
            arena.strikes += 1
        victim.end()
        arena.nothing_left("report killed")
        arena.expect(verdict.read_bytes() == before, "report killed: verdict.json is not whole")
    clean(arena, paribus(arena, "report", arena.out), "report after kills")
    arena.expect(verdict.read_bytes() == before, "another report has another verdict.json")
    strange = [one.name for one in arena.out.iterdir() if one.suffix in (".tmp", ".draft")]
    arena.expect(not strange, f"report killed: left in the study directory: {strange}")


def _has_mpi(arena: Arena) -> bool:
    if not arena.ground.mpi_s:
        arena.skipped = "no MPI here"
    return bool(arena.ground.mpi_s)


ATTACKS = (study, warden, compiler, mpi, study, report, launcher, study, warden)
