"""Nothing left of what the measuring host gives: never an arm's failure, always resumable."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attack.arena import SHARED_MEMORY, Arena
from attack.ground import MPI_STUDY, write_study
from attack.processes import mount_tmpfs
from attack.stored import no_blame, rows, whole
from attack.victim import Ended, ends, paribus, run_words, start

WRITING = (
    'i=0; while [ $i -lt 300 ]; do echo "line $i of what is long to say"; i=$((i+1)); done'
    " >written && cat written && echo $((PARIBUS_SEED % 1000 + 1)) end"
)
"""Writes 10 KB into the scratch directory, and as much to its output."""

CAUSES = ("space", "inode", "quota", "descriptor", "open files", "too large", "file size", "limit")


def study_space(arena: Arena) -> None:
    """Use up the space of the study directory at any moment."""
    _use_up(arena, arena.folder / "disk", "size=4m", _fill_space, "the disk of the study is full")


def study_inodes(arena: Arena) -> None:
    """Use up the inodes of the study directory at any moment."""
    options = "size=8m,nr_inodes=90"
    _use_up(arena, arena.folder / "disk", options, _fill_inodes, "the study has no inodes left")


def tmp_space(arena: Arena) -> None:
    """Use up the space of TMPDIR at any moment."""
    _use_up(arena, arena.tmp, "size=2m", _fill_space, "TMPDIR is full")


def tmp_inodes(arena: Arena) -> None:
    """Use up the inodes of TMPDIR at any moment."""
    _use_up(arena, arena.tmp, "size=2m,nr_inodes=40", _fill_inodes, "TMPDIR has no inodes left")


def shared_memory(arena: Arena) -> None:
    """Use up /dev/shm under ranks that talk through it."""
    if not arena.ground.mpi_s:
        arena.skipped = "no MPI here"
        return
    _use_up(arena, SHARED_MEMORY, "size=64m,mode=1777", _fill_space, "/dev/shm is full", mpi=True)


def _use_up(
    arena: Arena,
    disk: Path,
    options: str,
    fill: Callable[[Arena, Path], list[Path]],
    when: str,
    *,
    mpi: bool = False,
) -> None:
    if not arena.private:
        arena.skipped = "no mount namespace here"
        return
    disk.mkdir(exist_ok=True)
    try:
        mount_tmpfs(disk, options)
    except OSError as error:
        arena.skipped = f"nothing can be mounted here: {error.strerror}"
        return
    if disk.name == "disk":
        # The study's own name stays the same for every family.
        arena.out.symlink_to(disk / "out")
        (disk / "out").mkdir()
    path = write_study(arena.folder, script=WRITING)
    if mpi:
        path.write_text(MPI_STUDY)
    lasts = arena.ground.mpi_s if mpi else arena.ground.calm_s
    victim = start(arena, *run_words(arena, path))
    victim.until_moment(lasts)
    filled = fill(arena, disk)
    ended = victim.end()
    _judge(arena, ended, when, filled, mpi=mpi)
    for one in filled:
        one.unlink(missing_ok=True)
    _finish(arena, path, f"space again, after {when}", mpi=mpi)


def _fill_space(arena: Arena, disk: Path) -> list[Path]:
    """Fill the disk but for a few KiB; returns the files."""
    path = disk / "filler"
    block, leave = b"x" * 4096, arena.random.choice((0, 0, 1, 4, 32, 128))
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(block) == len(block):
            pass
    with contextlib.suppress(OSError):
        os.truncate(path, max(0, path.stat().st_size - 4096 * leave))
    return [path]


def _fill_inodes(arena: Arena, disk: Path) -> list[Path]:
    """Use up the inodes but for a few; returns the files."""
    made: list[Path] = []
    try:
        while True:
            path = disk / f"filler{len(made)}"
            path.touch()
            made.append(path)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    for _ in range(arena.random.choice((0, 0, 1, 2, 5))):
        if made:
            made.pop().unlink()
    return made


def limited(arena: Arena) -> None:
    """Take away descriptors or the length of files (`ulimit -n`, `ulimit -f`)."""
    if arena.random.random() < 0.5:
        most = arena.random.randint(12, 40)
        limits, when = {resource.RLIMIT_NOFILE: most}, f"ulimit -n {most}"
    else:
        most = arena.random.choice((1, 4, 8, 16, 64, 256))
        limits, when = {resource.RLIMIT_FSIZE: most * 1024}, f"ulimit -f {most} KiB"
    _with_limits(arena, limits, when)


def _with_limits(arena: Arena, limits: Mapping[int, int], when: str) -> None:
    path = write_study(arena.folder, script=WRITING)
    ended = paribus(arena, *run_words(arena, path), limits=limits)
    _judge(arena, ended, when)
    _finish(arena, path, f"without {when}")


def _judge(
    arena: Arena, ended: Ended, when: str, spare: Sequence[Path] = (), *, mpi: bool = False
) -> None:
    """Expect a study that either was done, or says in one sentence what it lacks."""
    right = ends(arena, ended, when, (0, 2))
    if right and ended.code == 0 and not mpi:
        whole(arena, f"{when}, exit 0", all_ok=False)
    elif right and ended.code:
        says = ended.err.rpartition("paribus: ")[2].lower()
        arena.expect(any(word in says for word in CAUSES), f"{when}: no cause: {ended.last()}")
    blamed = [row for row in rows(arena.out) if row.state != "ok" and row.void is None]
    arena.expect(not blamed, f"{when}: {len(blamed)} launches count as an arm's failures")
    arena.expect("reliability differs" not in ended.out, f"{when}: says that reliability differs")
    arena.nothing_left(when, spare=spare)


def _finish(arena: Arena, path: Path, when: str, *, mpi: bool = False) -> None:
    """Resume with space, and expect what a study is that never lacked any."""
    ended = paribus(arena, *run_words(arena, path))
    if ends(arena, ended, when, (0, 3) if mpi else (0,)) and not mpi:
        whole(arena, when, all_ok=False)
    no_blame(arena, when)
    arena.nothing_left(when)


ATTACKS = (study_space, study_inodes, limited, tmp_space, shared_memory, limited, tmp_inodes)
