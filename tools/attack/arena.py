"""One attack: a process and directories of its own, so that what is left behind can be seen."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from attack.ground import Ground
from attack.processes import adopt_orphans, die_with_parent, end_all, enter_namespace, gone

SHARED_MEMORY = Path("/dev/shm")
LEAVE_S = 8.0
"""Seconds that the processes of a victim have to leave: the warden's grace and then some."""


@dataclass(slots=True)
class Arena:
    """Where one attack takes place, what it draws from, and what it found."""

    ground: Ground
    folder: Path
    seed: str
    random: Random
    private: bool = False
    strikes: int = 0
    faults: list[str] = field(default_factory=list)
    skipped: str = ""
    shared: set[str] = field(default_factory=set)

    @property
    def tmp(self) -> Path:
        """Return the TMPDIR of the victim."""
        return self.folder / "t"

    @property
    def out(self) -> Path:
        """Return the study directory of the victim."""
        return self.folder / "out"

    def expect(self, holds: bool, otherwise: str) -> bool:
        """Note the fault `otherwise` unless something holds; returns whether it does."""
        if not holds and otherwise not in self.faults:
            self.faults.append(otherwise)
        return holds

    def nothing_left(
        self, when: str, within_s: float = LEAVE_S, spare: Collection[Path] = ()
    ) -> None:
        """Expect that no process and no file of the victim is left; what is, is removed.

        `spare` are files that the attack itself put there.
        """
        left = gone(within_s)
        self.expect(not left, f"{when}: still running: {'; '.join(map(str, left[:3]))}")
        end_all()
        spared = {path.name for path in spare}
        here = names(self.tmp) - spared
        self.expect(not here, f"{when}: left in TMPDIR: {', '.join(sorted(here)[:3])}")
        for name in here:
            remove(self.tmp / name)
        new = names(SHARED_MEMORY) - self.shared - spared
        self.expect(not new, f"{when}: left in /dev/shm: {', '.join(sorted(new)[:3])}")
        self.shared |= new


def names(folder: Path) -> set[str]:
    """Return the names in a folder."""
    return {path.name for path in folder.iterdir()}


def remove(folder: Path) -> None:
    """Remove a file or a tree, folders that may not be entered included."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


Attack = Callable[[Arena], None]


def execute(ground: Ground, attack: Attack, seed: str, place: Path, *, apart: bool) -> int:
    """Run one attack in a new process; returns its pid. It leaves its result in `place`.

    `apart`: in a mount namespace with a /dev/shm of its own, where this machine allows that.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    try:
        die_with_parent()
        os.setsid()
        adopt_orphans()
        arena = Arena(ground, place, seed, Random(seed))
        arena.private = apart and enter_namespace()
        arena.shared = names(SHARED_MEMORY)
        for folder in (arena.tmp, place / "home"):
            folder.mkdir(parents=True)
        try:
            attack(arena)
        except BaseException:
            arena.faults.append(f"the attack itself broke:\n{traceback.format_exc()}")
        end_all()
        result = {
            "strikes": max(1, arena.strikes),
            "faults": arena.faults,
            "skipped": arena.skipped,
        }
        place.with_suffix(".json").write_text(json.dumps(result))
    finally:
        os._exit(0)
