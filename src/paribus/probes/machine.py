"""What Paribus reads of the machine that it executes on: load, processor times, cores to use.

Each is cheap enough to be read before and after every launch; what a machine is, facts.sh reads
from inside an arm. `root` may be a directory with the files of another machine.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from pathlib import Path

from paribus.core import Facts
from paribus.probes import energy
from paribus.probes.archive import Archive, patterns
from paribus.probes.energy import FILES
from paribus.probes.load import LEAST_SHARE, TICKS_PER_S, Readings, background_load, beside
from paribus.probes.processors import core_paths, cores_of
from paribus.probes.reading import read_file


def load_facts(
    root: Path = Path("/"), cores: Collection[int] = (), since_s: float | None = None
) -> Facts:
    """Return how busy the machine is now, by the keys under load. of docs/facts.md.

    `cores` are those that ranks are bound to, if they are; `since_s` (seconds since 1970) is when
    the launch began that has just ended. Takes under 1 ms without GPUs; `load_between` of two such
    returns what grew.
    """
    files = {name: read_file(path) for name, path in _paths(root)}
    if root == Path("/") and os.path.exists(energy.GPUS):  # noqa: PTH110
        from paribus.probes.gpu_counters import gpu_counters

        reported = gpu_counters(since_s).items()
        files |= {path: "" if value is None else str(value) for path, value in reported}
    return background_load(Archive(files), cores)


_MOST_PROCESSES = 2000

_SHORT_S = 1.0
"""Seconds of a launch below which /proc, in ticks of 10 ms, shows little of it alone."""


def processor_times(root: Path = Path("/")) -> Readings:
    """Return how long each visible process has used processors so far.

    Of more than 2000 processes only those with numbers of five digits or more, as in facts.sh; none
    if these are more than 2000, too. Takes about 4 us a process. `probes.load.beside` of two such
    returns who was busy between them.
    """
    try:
        numbers = [entry.name for entry in os.scandir(root / "proc") if entry.name.isdecimal()]
    except OSError:
        return {}
    if len(numbers) > _MOST_PROCESSES:
        numbers = [number for number in numbers if len(number) > 4]
    found = {}
    for number in numbers if len(numbers) <= _MOST_PROCESSES else ():
        if reading := process_of(_bytes(f"{root}/proc/{number}/stat")):
            found[int(number)] = reading
    return found


class Others:
    """Who else uses the processors during a launch: `begin` before it, `end` after it.

    The reading after a launch also serves as the one before the next, unless so much time lies
    between them that a process busy in it alone would be named. The figures of a launch shorter
    than _SHORT_S include the time around it.
    """

    def __init__(self) -> None:
        self._readings: Readings = {}
        self._at = self._longest_s = -math.inf

    def begin(self) -> None:
        """Read the processes unless the last reading is recent enough."""
        if time.monotonic() - self._at > self._longest_s:
            self._readings, self._at = processor_times(), time.monotonic()

    def end(self) -> tuple[str, ...]:
        """Return what others used since `begin`, as `probes.load.beside` does."""
        readings, now = processor_times(), time.monotonic()
        window = now - self._at
        named = beside(self._readings, readings, os.getpid(), window)
        # Assumes that the next launch lasts as long as this one.
        self._longest_s = LEAST_SHARE * max(_SHORT_S, window)
        self._readings, self._at = readings, now
        return tuple(named)


@lru_cache(1 << 12)  # most processes have done nothing since they were read last
def process_of(stat: bytes) -> tuple[str, int, float] | None:
    """Return command, parent's number and seconds used, from a process's `stat`; None if gone."""
    head, _, rest = stat.rpartition(b")")
    cells = rest.split(None, 13)
    if len(cells) < 13 or not all(cells[n].isdigit() for n in (1, 11, 12)):
        return None
    command = head.partition(b"(")[2].partition(b"/")[0]  # kworker/0:1 and the like are one
    seconds = (int(cells[11]) + int(cells[12])) / TICKS_PER_S
    return command.decode(errors="replace"), int(cells[1]), seconds


def _bytes(path: str) -> bytes:
    """Return up to 4096 bytes of a file, b"" if it is gone; in half the time that open() takes."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the process has ended since
        return b""
    finally:
        os.close(descriptor)


_LOAD = (
    *("/proc/loadavg", "/proc/stat"),
    *(f"/proc/pressure/{what}" for what in ("cpu", "io", "memory")),
)


@cache
def _paths(root: Path) -> tuple[tuple[str, Path], ...]:
    """Return the files that show the load: (path in facts, path below `root`).

    Cached, as joining paths is slow.
    """
    names = (*_LOAD, *_cpu_stat(root), *_adapter_counters(root), *_energy(root))
    return tuple((name, root / name.lstrip("/")) for name in names)


def _adapter_counters(root: Path) -> tuple[str, ...]:
    """Return the paths of the counters of RDMA ports that facts.sh reads, if there are any."""
    wanted = [p for p in patterns() if "/ports/*/counters/" in p or "/hw_counters/" in p]
    if not (root / "sys/class/infiniband").is_dir():
        return ()
    found = (path for pattern in wanted for path in root.glob(pattern.lstrip("/")))
    return tuple("/" + str(path.relative_to(root)) for path in found)


def _energy(root: Path) -> tuple[str, ...]:
    """Return the paths of the zones that count energy, if there are any."""
    zones = sorted((root / "sys/class/powercap").glob("intel-rapl:*"))
    return tuple(f"/sys/class/powercap/{zone.name}/{file}" for zone in zones for file in FILES)


def _cpu_stat(root: Path) -> tuple[str, ...]:
    """Return the paths of cpu.stat of our control group and those above, of version 2 or 1.

    Any of these groups may have a quota. () where there are no such files.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if number == "0" or "cpu" in controllers.split(","):
            for base in ("", f"/{controllers}" if controllers else "/unified"):
                above = [Path(group), *Path(group).parents]
                paths = [f"/sys/fs/cgroup{base}{str(at).rstrip('/')}/cpu.stat" for at in above]
                if found := [path for path in paths if (root / path.lstrip("/")).is_file()]:
                    return tuple(found)
    return ()


def cores(root: Path = Path("/"), allowed: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Return the `allowed` cores, one hardware thread of each physical core before its siblings."""
    return shares(siblings(root, allowed), 1)[0]


def siblings(
    root: Path = Path("/"), allowed: frozenset[int] = frozenset()
) -> list[tuple[int, ...]]:
    """Return the `allowed` hardware threads of each physical core, in the order of the first."""
    files = {path: read_file(root / path.lstrip("/")) for path in core_paths(allowed)}
    return cores_of(Archive(files), allowed)


def shares(physical: Sequence[tuple[int, ...]], parts: int) -> list[tuple[int, ...]]:
    """Return the cores of each of `parts` equal shares of neighbouring `physical` cores.

    Siblings stay together, or two shares would slow each other down. In each share one hardware
    thread of each physical core comes before the others; cores that remain are in no share:
    two shares of [(0, 4), (1, 5), (2, 6)] are [(0, 4), (1, 5)].
    """
    each = len(physical) // parts
    found = []
    for part in range(parts):
        group = physical[part * each : (part + 1) * each]
        firsts = [threads[0] for threads in group]
        found.append((*firsts, *sorted(core for threads in group for core in threads[1:])))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
