"""What a study directory holds, read without Paribus, and whether that is what was planned."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack.arena import Arena


@dataclass(frozen=True, slots=True)
class Row:
    """One stored attempt of a launch."""

    number: int
    block: int
    benchmark: str
    arm: str
    place: int
    seed: int
    state: str
    wall_s: float
    void: str | None
    error: str


def rows(out: Path) -> list[Row]:
    """Return every stored attempt in the order in which they were stored.

    It is read from a copy: the disk may have no room left for the files that SQLite makes to read.
    """
    with tempfile.TemporaryDirectory() as folder:
        for path in out.glob("launches.db*"):
            shutil.copy(path, folder)
        path = Path(folder, "launches.db")
        return _rows(path) if path.exists() else []


def _rows(path: Path) -> list[Row]:
    db = sqlite3.connect(path)
    try:
        found = db.execute(
            "SELECT number, block, benchmark, arm, place, seed, state, wall_s, void, error"
            " FROM launches ORDER BY id"
        ).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return []
        raise
    finally:
        db.close()
    return [Row(*one) for one in found]


def planned(out: Path) -> list[dict[str, Any]]:
    """Return the launches of the frozen plan."""
    plan = json.loads((out / "plan.json").read_text())
    return [dict(zip(plan["columns"], one, strict=True)) for one in plan["launches"]]


def kept(out: Path) -> set[int]:
    """Return the numbers of the launches in blocks that are stored whole and count."""
    if not (out / "plan.json").exists():
        return set()
    counting = {row.number for row in rows(out) if row.void is None}
    blocks: dict[tuple[int, str], set[int]] = {}
    for launch in planned(out):
        blocks.setdefault((launch["block"], launch["benchmark"]), set()).add(launch["number"])
    return {number for block in blocks.values() if block <= counting for number in block}


def whole(arena: Arena, when: str, *, all_ok: bool = True) -> None:
    """Expect every planned launch once, as planned; with `all_ok`, none that ever failed."""
    stored = rows(arena.out)
    counting = [row for row in stored if row.void is None]
    times = Counter(row.number for row in counting)
    wanted = {launch["number"]: launch for launch in planned(arena.out)}
    lost = sorted(set(wanted) - set(times))
    arena.expect(not lost, f"{when}: launches lost: {lost[:5]}")
    doubled = sorted(number for number, count in times.items() if count > 1)
    arena.expect(not doubled, f"{when}: launches that count twice: {doubled[:5]}")
    for row in stored:
        launch = wanted.get(row.number, {})
        same = all(
            getattr(row, key) == launch.get(key)
            for key in ("block", "benchmark", "arm", "place", "seed")
        )
        arena.expect(same, f"{when}: launch {row.number} is not as planned")
    if all_ok:
        none_failed(arena, when, stored)


def none_failed(arena: Arena, when: str, stored: list[Row]) -> None:
    """Expect that every stored attempt is a success."""
    for row in stored:
        arena.expect(
            row.state == "ok", f"{when}: a launch is stored as {row.state}: {row.error[:100]}"
        )


def no_blame(arena: Arena, when: str) -> None:
    """Expect that no launch counts as an arm's failure: neither in the store nor in the verdict."""
    for row in rows(arena.out):
        arena.expect(
            row.void is not None or row.state == "ok",
            f"{when}: a launch counts as {row.state}: {row.error[:100]}",
        )
    path = arena.out / "verdict.json"
    if path.exists() and (text := path.read_text()):
        verdict = json.loads(text)
        blamed = [one for one in verdict["tallies"] if one["failed"] or one["invalid"]]
        arena.expect(
            not blamed, f"{when}: the verdict counts failures: {[b['first_error'] for b in blamed]}"
        )
        words = {one["verdict"]["word"] for one in verdict["headlines"]}
        arena.expect("reliability differs" not in words, f"{when}: says that reliability differs")
