"""Attack Paribus from outside, seeded, and print what did not hold.

    ./dev attack [--seed N] [--only FAMILY ...] [--index N] [--seconds S] [--jobs N]

Every attack follows from the seed, its family and its number: `--only` and `--index` repeat one.
Exit code 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attack import authors, clock, damage, inputs, kill, signals, space, stranger, switches
from attack import secrets as tokens
from attack.arena import Attack, execute, remove
from attack.ground import Ground, prepare
from attack.processes import adopt_orphans, descendants, end_all

LIMIT_S = 400.0
"""Seconds that one attack may take; one that takes longer is a fault itself."""

FAMILIES: dict[str, tuple[Attack, ...]] = {
    "kill": kill.ATTACKS,
    "signals": signals.ATTACKS,
    "switches": switches.ATTACKS,
    "space": space.ATTACKS,
    "damage": damage.ATTACKS,
    "inputs": inputs.ATTACKS,
    "authors": authors.ATTACKS,
    "stranger": stranger.ATTACKS,
    "secrets": tokens.ATTACKS,
    "clock": clock.ATTACKS,
}
USE_MPI = ("kill", "signals", "space", "stranger", "secrets")
OF_ROOT = ("stranger",)
"""Families that an ordinary user attacks in a namespace of users, which no other may be around."""


@dataclass(slots=True)
class Score:
    """What came of one family: attacks made, the seconds they took, faults and skips."""

    name: str
    begun: int = 0
    attacks: int = 0
    seconds: float = 0.0
    faults: list[tuple[int, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Running:
    """An attack under way."""

    score: Score
    index: int
    place: Path
    begin: float


def main() -> int:
    """Prepare the ground, attack, show what was found; return the exit code."""
    asked = _arguments()
    adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    begin = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="attack-"))
    root.chmod(0o755)
    scores = [Score(name) for name in asked.only]
    try:
        ground = prepare(root, mpi=any(name in USE_MPI for name in asked.only))
        print(f"seed {asked.seed}; a calm study takes {ground.calm_s:.1f} s", flush=True)
        _attack(ground, scores, asked, begin)
    except KeyboardInterrupt:
        print("interrupted; so far:", file=sys.stderr)
    finally:
        end_all()
        remove(root)
    return notify(scores, asked.seed, time.monotonic() - begin)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev attack", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), metavar="N")
    parser.add_argument(
        "--only", nargs="+", choices=tuple(FAMILIES), default=tuple(FAMILIES), metavar="FAMILY"
    )
    parser.add_argument("--index", type=int, metavar="N", help="only this attack of each family")
    parser.add_argument(
        "--seconds", type=float, default=300.0, metavar="S", help="in all, about (%(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N")
    asked: argparse.Namespace = parser.parse_args()
    return asked


def _attack(
    ground: Ground, scores: Sequence[Score], asked: argparse.Namespace, begin: float
) -> None:
    """Run attacks, some at a time: of each family all kinds once, then as time allows."""
    running: dict[int, Running] = {}
    attacks = _next(scores, asked, begin)
    more = True
    while more or running:
        while more and len(running) < asked.jobs:
            found = next(attacks, None)
            more = found is not None
            if found is not None:
                score, index = found
                place = ground.root / f"{score.name}{index}"
                kinds = FAMILIES[score.name]
                pid = execute(
                    ground,
                    kinds[index % len(kinds)],
                    f"{asked.seed}/{score.name}/{index}",
                    place,
                    apart=score.name not in OF_ROOT or os.geteuid() == 0,
                )
                running[pid] = Running(score, index, place, time.monotonic())
        _collect(running)
        time.sleep(0.02)


def _next(
    scores: Sequence[Score], asked: argparse.Namespace, begin: float
) -> Iterator[tuple[Score, int]]:
    """Yield the attacks in turn: of the family that has had the least of its share of the time."""
    if asked.index is not None:
        yield from ((score, asked.index) for score in scores)
        return
    while True:
        first = [score for score in scores if score.begun < len(FAMILIES[score.name])]
        if not first and time.monotonic() - begin > asked.seconds:
            return
        score = min(first or scores, key=lambda one: one.seconds)
        score.begun += 1
        yield score, score.begun - 1


def _collect(running: dict[int, Running]) -> None:
    """Take in what ended, end what takes too long, and kill what lost its arena."""
    for pid, one in list(running.items()):
        seconds = time.monotonic() - one.begin
        ended = os.waitpid(pid, os.WNOHANG)[0]
        late = not ended and seconds > LIMIT_S
        if late:
            for process in descendants(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        if ended or late:
            del running[pid]
            one.score.seconds += seconds
            _take(one, late=late)


def _take(one: Running, *, late: bool) -> None:
    result = one.place.with_suffix(".json")
    if late or not result.exists():
        faults = [f"the attack takes more than {LIMIT_S:.0f} s" if late else "the attack broke off"]
        found: dict[str, Any] = {"strikes": 1, "faults": faults, "skipped": ""}
    else:
        found = json.loads(result.read_text())
    if found["skipped"]:
        if found["skipped"] not in one.score.skipped:
            one.score.skipped.append(found["skipped"])
    else:
        one.score.attacks += found["strikes"]
    for fault in found["faults"]:
        one.score.faults.append((one.index, fault))
        print(f"{one.score.name} {one.index}: {fault}", flush=True)
    remove(one.place)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def notify(scores: Sequence[Score], seed: int, seconds: float) -> int:
    """Print the table and how to repeat a fault; return the exit code."""
    print(f"\n{'family':10} {'attacks':>7} {'faults':>7} {'seconds':>8}")
    for score in scores:
        skipped = f"  skipped: {'; '.join(score.skipped)}" if score.skipped else ""
        numbers = f"{score.attacks:7d} {len(score.faults):7d} {score.seconds:8.0f}"
        print(f"{score.name:10} {numbers}{skipped}")
    faults = sum(len(score.faults) for score in scores)
    attacks = sum(score.attacks for score in scores)
    print(f"\n{attacks} attacks, {faults} faults in {seconds:.0f} s; seed {seed}")
    if faults:
        print(f"to repeat one: ./dev attack --seed {seed} --only FAMILY --index NUMBER")
    return 1 if faults or not attacks else 0


if __name__ == "__main__":
    sys.exit(main())
