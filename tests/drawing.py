"""Which slow tests a run draws: few of the costly, more of those whose own code has changed."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
COSTS = HERE / "costs.txt"
"""What tests cost, if COUNTED seconds or more or marked slow, file and name; --costs writes it."""

COUNTED, DRAWN = 0.25, 0.5
UNMEASURED = 5.0
"""Seconds that a slow test is taken to cost until --costs has seen it: rather too many."""

EACH_S = 3 * 3600
"""Seconds for which runs draw the same: about those from one run of CI to the next."""

UNKNOWN_S = 20.0
"""Seconds that a case of each costly test without a line may take before a run says so."""

WORKERS = 4
MOST_FILES = 100
"""Changed files of which modules of tests are sought."""

OWN = 12
"""What more modules of tests name than so many is none's own: each run's draw tries it."""
OWN_S = 30.0
"""Seconds that the tests whose own code has changed may cost together: a run has to end."""
SHARES = ((10.0, 40), (0.0, 20))
"""Seconds that a case of a test takes at least, and of how many such cases a run draws one."""


@cache
def costs() -> Mapping[str, float]:
    """Return the seconds that a case of a test takes, by `file::name`."""
    lines = COSTS.read_text().splitlines() if COSTS.exists() else ()
    return {name: float(seconds) for seconds, name in map(str.split, lines)}


def this_turn() -> int:
    """Return the seed of runs that are given none: another one every EACH_S."""
    return int(time.time() // EACH_S)


def drawn(units: Mapping[str, float], seed: int) -> set[str]:
    """Return the units that a run tries, of some that each cost so many seconds.

    Those of a class stand in an order of their own, of which each seed has the next stretch: as
    many seeds in a row as a class has shares try all of it.
    """
    chosen: set[str] = set()
    classes: dict[int, list[str]] = {}
    for unit, seconds in sorted(units.items()):
        classes.setdefault(next(n for least, n in SHARES if seconds >= least), []).append(unit)
    for share, several in sorted(classes.items()):
        several.sort(key=lambda unit: sha256(unit.encode()).digest())
        number = -(-len(several) // share)
        chosen |= {several[(seed * number + at) % len(several)] for at in range(number)}
    return chosen


def own(units: Mapping[str, float], most: float = OWN_S) -> set[str]:
    """Return the units that cost at most `most` seconds together, the cheapest first."""
    chosen: set[str] = set()
    for unit, seconds in sorted(units.items(), key=lambda one: (one[1], one[0])):
        most -= seconds
        if most >= 0:
            chosen.add(unit)
    return chosen


def cost(processor: float, wall: float) -> float:
    """Return what a case of a test costs a run, in seconds.

    The processor is what a run lacks; a test that waits holds up one of its workers.
    """
    return max(processor, wall / WORKERS)


def unknown(seconds: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the cost of a case of costly tests that COSTS lacks, the most costly first."""
    means = {k: sum(several) / len(several) for k, several in seconds.items() if k not in costs()}
    return {k: means[k] for k in sorted(means, key=lambda k: -means[k]) if means[k] >= DRAWN}


def write_costs(seconds: Mapping[str, Sequence[float]], slow: Container[str]) -> None:
    """Write what tests cost, by `file::name`: those of COUNTED seconds, and those marked slow.

    Tests that were not tried keep their line.
    """
    now = {name: sum(several) / len(several) for name, several in seconds.items()}
    kept = {name: now[name] for name in now if now[name] >= COUNTED or name in slow}
    kept |= {name: cost for name, cost in costs().items() if name not in now}
    COSTS.write_text("".join(f"{kept[name]:.1f} {name}\n" for name in sorted(kept)))


def changed(since: str | None = None) -> tuple[str, list[str]]:
    """Return the commit that this tree is compared with, and the files that differ from it.

    It is `since`, or where this branch left the main one, or the commit before this one. Where git
    is not there, both are empty.
    """
    try:
        base = since or _base()
        differ = _git("diff", "--name-only", base).splitlines()
        return base[:12], differ + _git("ls-files", "--others", "--exclude-standard").splitlines()
    except (OSError, subprocess.CalledProcessError):
        return "", []


def _base() -> str:
    head = _git("rev-parse", "HEAD")
    for main in ("origin/HEAD", "main"):
        try:
            base = _git("merge-base", "HEAD", main)
        except subprocess.CalledProcessError:
            continue
        if base != head:
            return base
    return _git("rev-parse", "HEAD~")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def concerned(files: Iterable[str], most: int = OWN) -> dict[str, list[str]]:
    """Return the modules of tests whose own code is among `files`, each with those files.

    Its own are the module itself and what it names: a helper, a module of Paribus or its room, a
    kernel, a file of data. What more than `most` of them name, or a room that more than OWN name,
    is none's. Of a change of more than MOST_FILES files nothing is anybody's own.
    """
    files = [*files]
    if len(files) > MOST_FILES:
        return {}
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in HERE.rglob("test*.py")}
    found: dict[str, list[str]] = {}
    for file in files:
        named_so = f"test_{Path(file).stem}.py" if file.startswith("src/") else ""
        called = [name for name in texts if Path(name).name == named_so]
        patterns = [] if file in texts else _naming(Path(file))
        naming = [[name for name, text in texts.items() if one.search(text)] for one in patterns]
        few = [
            set(names)
            for names, limit in zip(naming, (most, OWN), strict=False)
            if len(names) <= limit
        ]
        for name in {file} & set(texts) or sorted(set(called).union(*few)):
            found.setdefault(name, []).append(file)
    return found


def _naming(file: Path) -> list[re.Pattern[str]]:
    """Return how a module of tests may name a file, the closest first."""
    stem, folder = re.escape(file.stem), file.parts[0]
    package = re.escape(".".join(file.parts[1:-1]))
    room = re.compile(rf"\b{package}\b")
    if file.parts[:3] == ("src", "paribus", "native"):
        stem = re.escape(Path(file.parts[3]).stem)
        kernel = "from native import" if stem == "common" else rf"\b{stem}\b"
        return [re.compile(rf"(?s)\A(?=.*\bnative\b).*{kernel}")]
    if folder == "tests" and file.suffix == ".py":
        return [re.compile(rf"(?m)^(from|import) {stem}\b")]
    if folder not in ("src", "tools") or not package:
        return [re.compile(rf"\b{re.escape(file.name)}\b")] if folder in ("tests", "tools") else []
    if file.suffix != ".py":
        return [re.compile(rf"\b{re.escape(file.name)}\b"), room]
    module = rf"\b{package}\.{stem}\b|from {package} import .*\b{stem}\b"
    verb = rf'|"{stem}", ' if package.endswith("cli") else ""
    return [room] if stem == "__init__" else [re.compile(module + verb), room]
