"""A study directory with a damaged launches.db: reported on as before, refused, or salvaged.

`python tests/fuzz_store.py [--step N]` damages a small store at every Nth byte (all), cuts it at
every 64 Nth length and empties each of its sectors, with and without a write-ahead log, and counts
what `paribus report` makes of it, without and with --salvage. The exit code is 1 after a traceback,
or a figure that changed without a word.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from paribus.core import (
    Arm,
    Case,
    Launch,
    Outcome,
    ParibusError,
    Sample,
    Selection,
    Settings,
    State,
    Study,
)
from paribus.judge.conclude import conclude
from paribus.plan import Plan, read_plan
from paribus.plan import frozen as plans
from paribus.report import export
from paribus.store import Gathered, Store

SECTOR = 512
FILES = ("launches.db", "launches.db-wal")
BAD = ("traceback", "changed")


@dataclass(frozen=True, slots=True)
class Damage:
    """What is done at a place of a file: `flip` a byte by `by`, `cut` it, or `empty` a sector."""

    file: str
    kind: str
    at: int
    by: int = 0

    def of(self, sound: bytes) -> bytes:
        """Return the damaged bytes."""
        if self.kind == "cut":
            return sound[: self.at]
        if self.kind == "empty":
            return sound[: self.at] + bytes(SECTOR) + sound[self.at + SECTOR :]
        return sound[: self.at] + bytes([sound[self.at] ^ self.by]) + sound[self.at + 1 :]


def make_store(closed: Path, killed: Path) -> Plan:
    """Write a small study into `closed`, and into `killed` as a SIGKILL would leave it.

    Launches that failed and whose block was rerun are in it, and facts longer than a page.
    """
    study = Study(
        "Which?",
        "nothing",
        (Arm("a"), Arm("b")),
        (Selection("latency", "latency", 2, {"bytes": [8, 64]}, 60.0),),
        Settings(margin=0.02, blocks=12, seed=12),
    )
    closed.mkdir()
    frozen = plans.freeze(study, {})
    plans.write_plan(frozen, closed)
    noise = random.Random(12)
    with Store(closed, write=True) as store:
        store.bind_plan(frozen.sha256)
        store.keep_gathered([_facts(arm, 1.0) for arm in "ab"])
        for launch in frozen.launches:
            if launch.number in (7, 8):
                store.append(launch, _failed(launch))
            else:
                store.append(launch, _outcome(launch, noise))
            if launch.number == 8:
                store.void([7, 8], "done again")
                for again in frozen.launches[6:8]:
                    store.append(again, _outcome(again, noise))
        store.keep_gathered([_facts(arm, 2.0) for arm in "ab"])
        shutil.copytree(closed, killed)
    (killed / "launches.db-shm").unlink(missing_ok=True)
    return frozen


def _facts(arm: str, at: float) -> Gathered:
    return Gathered(arm, "n1", at, {"cpu.model": "x", "env.LONG": "long " * 900})


def _failed(launch: Launch) -> Outcome:
    return Outcome(State.FAILED, float(launch.number), 0.1, 1, ("x",), error="exit code 1")


def _outcome(launch: Launch, noise: random.Random) -> Outcome:
    level = noise.lognormvariate(0, 0.003) * (1.2 if launch.arm == "b" else 1.0)
    samples = tuple(
        Sample(
            "latency",
            Case.of(bytes=size),
            tuple(level * noise.lognormvariate(0, 0.01) for _ in range(20)),
        )
        for size in (8, 64)
    )
    facts = {"cpu.model": "x", "env.LONG": "y" * (4500 if launch.number == 5 else 300)}
    return Outcome(State.OK, float(launch.number), 0.1, 0, ("x",), samples, facts)


def contents(directory: Path, *, salvage: bool = False) -> tuple[object, ...]:
    """Return all that a report of `directory` is computed from."""
    with _open(directory, salvage) as store:
        return list(store.launches(void=True)), store.gathered(), store.launches_s()


def _open(directory: Path, salvage: bool) -> Store:
    return Store(directory, **({"salvage": True} if salvage else {}))


def figures(directory: Path, *, salvage: bool = False) -> dict[str, Any]:
    """Return all that a report of `directory` says, as JSON has it."""
    frozen = read_plan(directory)
    with _open(directory, salvage) as store:
        return {**export.to_json(conclude(frozen, store)), "directory": ""}


Sound = tuple[tuple[object, ...], dict[str, Any]]
"""Contents and figures before the damage."""


def said(directory: Path, sound: Sound, *, salvage: bool) -> str:
    """Return what becomes of a report: same, refused, withheld, named, or one of BAD."""
    try:
        if contents(directory, salvage=salvage) == sound[0]:
            return "same"
        now = figures(directory, salvage=salvage)
    except ParibusError as error:
        return "refused" if error.fix else "traceback"
    except Exception:
        return "traceback"
    if now == sound[1]:
        return "same"
    if any(notice["name"] == "launches lost" for notice in now["notices"]):
        return "named"
    withheld = all(one["verdict"]["word"] in ("withheld", "no data") for one in now["headlines"])
    return "withheld" if withheld else "changed"


def damages(directory: Path, step: int, seed: int = 1) -> Iterator[Damage]:
    """Yield every `step`th damage of the files of a store."""
    draw = random.Random(seed)
    for name in FILES:
        size = (directory / name).stat().st_size if (directory / name).exists() else 0
        for at in range(draw.randrange(step), size, step):
            yield Damage(name, "flip", at, draw.randrange(1, 256))
        for at in range(draw.randrange(64 * step), size, 64 * step):
            yield Damage(name, "cut", at)
        sectors = max(1, step // 64)
        for at in range(draw.randrange(sectors) * SECTOR, size, SECTOR * sectors):
            yield Damage(name, "empty", at)


def damaged(sound: Path, several: list[Damage], *, salvage: bool) -> Counter[tuple[str, ...]]:
    """Return how often a report of a damaged copy of `sound` says what; prints what is bad."""
    found: Counter[tuple[str, ...]] = Counter()
    expected = contents(sound), figures(sound)
    with tempfile.TemporaryDirectory(prefix="paribus-fuzz-") as folder:
        copy = Path(folder) / "out"
        for one in several:
            shutil.copytree(sound, copy)
            (copy / one.file).write_bytes(one.of((sound / one.file).read_bytes()))
            for mode in ("report", "--salvage")[: 1 + salvage]:
                outcome = said(copy, expected, salvage=mode == "--salvage")
                found[one.file, one.kind, mode, outcome] += 1
                if outcome in BAD:
                    print(f"{sound.name} {one} {mode}: {outcome}", file=sys.stderr)
            shutil.rmtree(copy)
    return found


def main() -> int:
    """Damage a store everywhere, or at every --step; return 1 if any of it is bad."""
    given = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    given.add_argument("--step", type=int, default=1)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--jobs", type=int, default=os.cpu_count())
    given.add_argument("--no-salvage", action="store_true")
    asked = given.parse_args()
    total: Counter[tuple[str, ...]] = Counter()
    with tempfile.TemporaryDirectory(prefix="paribus-fuzz-") as folder:
        stores = Path(folder) / "closed", Path(folder) / "killed"
        make_store(*stores)
        for store in stores:
            todo = list(damages(store, asked.step, asked.seed))
            parts = [todo[i :: asked.jobs * 8] for i in range(asked.jobs * 8)]
            work = partial(damaged, store, salvage=not asked.no_salvage)
            with ProcessPoolExecutor(asked.jobs) as pool:
                for counted in pool.map(work, parts):
                    total += Counter({(store.name, *key): n for key, n in counted.items()})
    for key, number in sorted(total.items()):
        print(f"{' '.join(key):50} {number:7}")
    return 1 if any(key[-1] in BAD for key in total) else 0


if __name__ == "__main__":
    sys.exit(main())
