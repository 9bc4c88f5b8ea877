"""A hostile local user: runs nothing as the victim, changes and removes nothing of the victim's."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from attack.arena import SHARED_MEMORY, Arena, names
from attack.ground import MPI_STUDY, PARIBUS, write_study
from attack.hostile import HOSTILE, as_user, done_as, execute_as, planted, race, stop
from attack.processes import bind_mount, mount_tmpfs, unmount
from attack.serving import OF_NEIGHBOURS
from attack.victim import Ended, clean, ends, run_words, start

ORDINARY = 12345
NAMESPACE = ("unshare", "--user", "--map-root-user", "--map-auto", "--mount")
"""For an ordinary user: root of a namespace with users of its own."""


@dataclass(slots=True)
class Scene:
    """Victim and hostile user: `canary` is the victim's alone, `ran` says who ran what is planted.

    `open` is a directory of the hostile user's.
    """

    arena: Arena
    uid: int
    canary: Path
    ran: Path
    open: Path

    def paribus(self, *words: str | Path, **env: str) -> Ended:
        """Return how the victim's `paribus WORDS` ended."""
        return start(self.arena, *words, env=env, uid=self.uid).end()

    def judge(self, when: str) -> None:
        """Expect that nothing of the victim's changed, and that nothing planted ran."""
        arena, who = self.arena, f"{when}: victim {self.uid}"
        sound = self.canary.is_file() and self.canary.read_text() == "canary"
        arena.expect(sound, f"{who}: a stranger changed a file of the victim's")
        if self.ran.exists():
            users = sorted(set(self.ran.read_text().split()))
            arena.expect(not users, f"{who}: a stranger's script ran as uid {', '.join(users)}")

    def own(self) -> None:
        """Hand everything in the arena but the hostile user's to the victim."""
        for path in [self.arena.folder, *self.arena.folder.rglob("*")]:
            if self.open not in (path, *path.parents):
                os.lchown(path, self.uid, self.uid)


def _with_scene(attack: Callable[[Scene], None]) -> Callable[[Arena], None]:
    """Return an attack on an arena that sets up the scene first, or says why it cannot."""

    def executed(arena: Arena) -> None:
        if os.geteuid() != 0:
            _in_namespace(arena)
            return
        uid = arena.random.choice((0, ORDINARY))
        scene = Scene(
            arena,
            uid,
            arena.folder / "precious" / "canary",
            arena.folder / "open" / "ran",
            arena.folder / "open",
        )
        for folder in (scene.canary.parent, scene.open):
            folder.mkdir()
        scene.canary.write_text("canary")
        os.chown(scene.open, HOSTILE, HOSTILE)
        scene.own()
        scene.canary.parent.chmod(0o700)
        scene.open.chmod(0o777)
        os.chown(arena.tmp, 0, 0)
        arena.tmp.chmod(0o1777)
        if uid and not _reachable(arena, uid):
            arena.skipped = "an ordinary user cannot execute this Python"
            return
        attack(scene)
        scene.judge(attack.__name__)

    return executed


def _in_namespace(arena: Arena) -> None:
    """Carry this attack out as root of a user namespace with more users than one."""
    possible = subprocess.run([*NAMESPACE, "true"], capture_output=True, text=True, check=False)
    if possible.returncode:
        arena.skipped = f"no second user here: {possible.stderr.strip()[:120]}"
        return
    seed, family, index = arena.seed.split("/")
    words = [sys.executable, "-m", "attack", "--seed", seed, "--only", family, "--index", index]
    inside = arena.folder / "inside"
    inside.mkdir(mode=0o755)
    done = subprocess.run(
        [*NAMESPACE, *words],
        env={**os.environ, "TMPDIR": str(inside)},
        capture_output=True,
        text=True,
        check=False,
    )
    for fault in re.findall(rf"^{family} {index}: (.*)", done.stdout, re.M):
        arena.faults.append(fault)
    if found := re.search(r"skipped: (.*)", done.stdout):
        arena.skipped = found[1]
    arena.expect(done.returncode in (0, 1), f"in a namespace: {done.stderr[-300:]}")


def _reachable(arena: Arena, uid: int) -> bool:
    """Return whether `uid` can execute Paribus, homes that are closed opened in this namespace."""
    needed = {Path(sys.prefix), Path(sys.base_prefix), Path(os.path.realpath(sys.executable))}
    needed |= {Path(one) for one in _asked("import paribus, sys; print(paribus.__path__[0])")}
    for closed in {parent for one in needed for parent in one.parents if _closed(parent)}:
        if not arena.private:
            return False
        below = {one.relative_to(closed).parts[0] for one in needed if closed in one.parents}
        # Outside the arena, and for no longer than it takes: what lies in an arena changes hands,
        # and is removed. Nothing here removes more than empty directories.
        holder = Path(tempfile.mkdtemp())
        for name in below:
            (holder / name).mkdir()
            bind_mount(closed / name, holder / name)
        mount_tmpfs(closed, "mode=755")
        for name in below:
            (closed / name).mkdir()
            bind_mount(holder / name, closed / name)
            unmount(holder / name)
            (holder / name).rmdir()
        holder.rmdir()
    tried = subprocess.run(
        [PARIBUS, "--version"],
        preexec_fn=lambda: as_user(uid),
        cwd="/",
        check=False,
        capture_output=True,
    )
    return tried.returncode == 0


def _asked(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def _closed(folder: Path) -> bool:
    return not folder.stat().st_mode & 0o001


def names_in_tmp(scene: Scene) -> None:
    """Plant every name that can be guessed in TMPDIR and /dev/shm, and race to replace the rest."""
    arena = scene.arena
    path = write_study(arena.folder)
    scene.own()
    places, plan, script = (arena.tmp, SHARED_MEMORY), arena.out / "plan.json", planted(scene.ran)
    hostile = execute_as(HOSTILE, lambda: race(places, plan, scene.canary, script))
    try:
        killed = arena.random.random() < 0.5
        if killed:
            victim = start(arena, *run_words(arena, path), uid=scene.uid)
            victim.until_launches(arena.random.randint(1, 12))
            victim.signal(signal.SIGKILL)
            victim.end()
        ended = scene.paribus(*run_words(arena, path))
        ends(arena, ended, f"names_in_tmp: victim {scene.uid}{', resumed' if killed else ''}")
    finally:
        stop(hostile)
    left = [p for place in places for p in place.iterdir() if p.lstat().st_uid != HOSTILE]
    arena.expect(not left, f"names_in_tmp: left by the victim: {[p.name for p in left[:3]]}")


def leftovers(scene: Scene) -> None:
    """Plant links named like what a killed sitting leaves, to the victim's files; then resume."""
    arena = scene.arena
    path = write_study(arena.folder)
    scene.own()
    victim = start(arena, *run_words(arena, path), uid=scene.uid)
    seen: set[str] = set()

    def begun() -> bool:
        seen.update(names(arena.tmp) | names(SHARED_MEMORY))
        return len(list((arena.out / "logs").glob("*.out"))) > 3

    victim.until(begun)
    victim.signal(signal.SIGKILL)
    victim.end()

    def plant() -> None:
        last = {re.sub(r"\d+$", str(i), name) for name in seen for i in range(1, 20)}
        for place in (arena.tmp, SHARED_MEMORY):
            for name in sorted(seen | last | {"vader_segment.x.0.1", "mpich_shm_x"}):
                if not os.path.lexists(place / name):
                    (place / name).symlink_to(scene.canary.parent)

    done_as(HOSTILE, plant)
    ends(arena, scene.paribus(*run_words(arena, path)), f"leftovers: victim {scene.uid}")


def cache(scene: Scene) -> None:
    """Replace a compiled kernel in a cache that others may write: refused, and never run."""
    arena = scene.arena
    if not arena.ground.mpi_s:
        arena.skipped = "no MPI here"
        return
    path, mine = arena.folder / "study.toml", arena.folder / "cache"
    path.write_text(MPI_STUDY)
    shutil.copytree(arena.ground.cache, mine)
    kernel = next((mine / "kernels").glob("latency-*"))
    scene.own()
    what = arena.random.choice((mine, mine / "kernels", kernel))
    how = _make_writable(scene, what)

    def plant() -> None:
        if what == kernel:
            kernel.write_text(planted(scene.ran))
            return
        folder = kernel.parent
        if what == mine:
            folder.rename(mine / "old")
            folder.mkdir(mode=0o777)
        kernel.unlink(missing_ok=True)
        kernel.write_text(planted(scene.ran))
        kernel.chmod(0o777)

    done_as(HOSTILE, plant)
    ended = scene.paribus(*run_words(arena, path), PARIBUS_CACHE=str(mine))
    when = f"cache: victim {scene.uid}: {what.name.partition('-')[0]} {how}"
    if ends(arena, ended, when, (2,)):
        arena.expect(str(mine) in ended.err, f"{when}: does not name the place")


def benchmark_file(scene: Scene) -> None:
    """Change a benchmark file that others may write: refused by every verb, and never executed."""
    arena = scene.arena
    folder = arena.folder / "bench"
    folder.mkdir()
    path = write_study(folder)
    scene.own()
    what = arena.random.choice((folder, folder / "shell.py"))
    how = _make_writable(scene, what)

    def plant() -> None:
        file = folder / "shell.py"
        text = file.read_text()
        if what == folder:
            file.unlink()
        file.write_text(f"import os; os.system('id -u >>{scene.ran}')\n{text}")

    done_as(HOSTILE, plant)
    for words in (
        ("run", path, "--out", arena.out),
        ("run", path, "--dry-run", "--no-pilot"),
        ("audit", path),
    ):
        when = f"benchmark_file: victim {scene.uid}: {what.name} {how}: {' '.join(words[::2])}"
        if ends(arena, scene.paribus(*words), when, (2,)):
            arena.expect(not scene.ran.exists(), f"{when}: executes it")


def _make_writable(scene: Scene, path: Path) -> str:
    """Make `path` one that the hostile user may write; returns how."""
    how: str = scene.arena.random.choice(("world-writable", "of a group of others", "of another"))
    mode = path.stat().st_mode & 0o777
    if how == "world-writable":
        path.chmod(mode | 0o002)
    elif how == "of another":
        os.chown(path, HOSTILE, HOSTILE)
    else:
        os.chown(path, scene.uid, HOSTILE)
        path.chmod(mode | 0o020)
    return how


def relative_path(scene: Scene) -> None:
    """Plant compilers and launchers of MPI where the victim works, its PATH beginning there."""
    arena = scene.arena
    path = arena.folder / "study.toml"
    path.write_text(MPI_STUDY)
    for name in ("mpicxx", "mpirun", "mpiexec", "mpicxx.openmpi", "mpirun.openmpi"):
        script = arena.folder / name
        script.write_text(f"#!/bin/sh\nid -u >>{scene.ran}\necho 'Open MPI 4.1.4'\n")
        script.chmod(0o755)
    scene.own()
    first = arena.random.choice((".", "", "./", "../" + arena.folder.name))
    for words in (("audit", path), ("doctor",), ("run", path, "--dry-run", "--no-pilot")):
        ended = scene.paribus(*words, PATH=f"{first}:{os.environ['PATH']}")
        when = f"relative_path: victim {scene.uid}: PATH={first}:... {words[0]}"
        clean(arena, ended, when)
        arena.expect(not scene.ran.exists(), f"{when}: runs what lies there")


def code_on_looking(scene: Scene) -> None:
    """Let a benchmark file leave a mark when it is executed: then `audit`, `--dry-run` say so."""
    arena, mark = scene.arena, scene.arena.folder / "mark"
    path = write_study(arena.folder)
    file = arena.folder / "shell.py"
    file.write_text(f"open({str(mark)!r}, 'w').close()\n{file.read_text()}")
    scene.own()
    for words in (("audit", path), ("run", path, "--dry-run", "--no-pilot")):
        mark.unlink(missing_ok=True)
        ended = scene.paribus(*words)
        when = f"code_on_looking: {words[0]}"
        ends(arena, ended, when, (0, 2, 3))
        said = "shell.py" in ended.out + ended.err
        arena.expect(said or not mark.exists(), f"{when}: executes shell.py without saying so")


ATTACKS = tuple(
    _with_scene(attack)
    for attack in (
        names_in_tmp,
        cache,
        benchmark_file,
        leftovers,
        relative_path,
        names_in_tmp,
        code_on_looking,
        cache,
        benchmark_file,
        *OF_NEIGHBOURS,
    )
)
