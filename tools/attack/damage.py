"""Damaged, truncated, moved and deleted files of a study: the same figures, or a clean error."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attack.arena import Arena, remove
from attack.ground import write_study
from attack.stored import no_blame
from attack.victim import Ended, clean, ends, paribus, run_words, start

REPORTS = 6
"""Damages of one attack, each followed by a report."""


def flipped(arena: Arena) -> None:
    """Change bytes of launches.db, each time others."""
    _damage(arena, "launches.db", lambda data: _flip(arena, data), "launches.db changed")


def truncated(arena: Arena) -> None:
    """Cut launches.db short, or make zeros of its end."""

    def cut(data: bytearray) -> None:
        length = arena.random.randrange(len(data))
        zeros = len(data) - length if arena.random.random() < 0.5 else 0
        data[length:] = bytes(zeros)

    _damage(arena, "launches.db", cut, "launches.db cut short")


def plan(arena: Arena) -> None:
    """Change bytes of plan.json, or cut it short."""

    def change(data: bytearray) -> None:
        if arena.random.random() < 0.2:
            del data[arena.random.randrange(len(data)) :]
        else:
            _flip(arena, data)

    _damage(arena, "plan.json", change, "plan.json changed")


def _flip(arena: Arena, data: bytearray) -> None:
    for _ in range(arena.random.choice((1, 1, 1, 4))):
        position = arena.random.randrange(len(data))
        data[position] ^= 1 << arena.random.randrange(8)


def _damage(arena: Arena, name: str, change: Callable[[bytearray], None], when: str) -> None:
    calm = _figures((arena.ground.sample / "verdict.json").read_text())
    for i in range(REPORTS):
        out = arena.folder / f"copy{i}"
        shutil.copytree(arena.ground.sample, out)
        data = bytearray((out / name).read_bytes())
        change(data)
        (out / name).write_bytes(data)
        arena.strikes += 1
        ended = paribus(arena, "report", out, "--json")
        _judge(arena, ended, when, calm)
        if ended.code == 2 and name == "launches.db":
            _salvage(arena, out)
        remove(out)


def _judge(arena: Arena, ended: Ended, when: str, calm: Any) -> None:
    """Expect exit 0 and the figures as they were, or a clean error."""
    if ends(arena, ended, when, (0, 2)) and ended.code == 0:
        arena.expect(_figures(ended.out) == calm, f"{when}: other figures, and exit 0")


def _figures(text: str) -> Any:
    verdict = json.loads(text)
    return {key: verdict[key] for key in ("headlines", "cases", "layers", "endpoints", "tallies")}


def _salvage(arena: Arena, out: Path) -> None:
    """Expect of `report --salvage` a report on what is whole, or that nothing is."""
    ended = paribus(arena, "report", out, "--salvage")
    missing = "unrecognized arguments" in ended.err
    if arena.expect(not missing, "report has no --salvage"):
        ends(arena, ended, "report --salvage", (0, 2, 3, 4))


def unlinked(arena: Arena) -> None:
    """Delete launches.db in mid-study: noticed, said, and not exit 0."""
    _in_mid_run(arena, (arena.out / "launches.db").unlink, "launches.db deleted")


def moved(arena: Arena) -> None:
    """Move the study directory in mid-study: noticed, said, and not exit 0."""
    away = arena.folder / "elsewhere"
    _in_mid_run(arena, lambda: arena.out.rename(away), "the study directory moved")
    if away.exists() and not arena.out.exists():
        away.rename(arena.out)
    ended = paribus(arena, "report", arena.out)
    clean(arena, ended, "report on a study that was moved")


def logs(arena: Arena) -> None:
    """Delete logs/ in mid-study: the study goes on, or says why not; no arm is to blame."""

    def delete() -> None:
        shutil.rmtree(arena.out / "logs", ignore_errors=True)

    _in_mid_run(arena, delete, "logs/ deleted", codes=(0, 2))
    no_blame(arena, "logs/ deleted")


def _in_mid_run(
    arena: Arena, strike: Callable[[], object], when: str, codes: tuple[int, ...] = (2,)
) -> None:
    path = write_study(arena.folder)
    victim = start(arena, *run_words(arena, path))
    if victim.until_launches(arena.random.randint(2, 12)):
        time.sleep(arena.random.uniform(0.0, 0.05))
        strike()
    ended = victim.end()
    ends(arena, ended, when, codes)
    arena.nothing_left(when)


ATTACKS = (flipped, unlinked, truncated, moved, plan, logs, flipped)
