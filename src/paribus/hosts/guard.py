"""The guard of one command of a launch on a node: the script that is sent, and the report it sends.

sh/guard.sh lies on the node already; `script` sets its variables and functions. It starts the
command, ends it when asked to, and reports in lines such as "exit 0", "seconds 812.31 815.90", then
what it read of /proc and /sys before and after. Nothing of Paribus' own environment goes with it.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from paribus.core import Carried, Command, Facts, Room, Source
from paribus.launch.warden import SEGMENTS, SHARED_MEMORY
from paribus.probes import energy
from paribus.probes.archive import Archive, files_of
from paribus.probes.carried import carried
from paribus.probes.energy import FILES, GPU_SCRIPT, POWER, joules, summed
from paribus.probes.load import GPUS, Readings, background_load, beside, load_between
from paribus.probes.machine import process_of

_PORT = "/sys/class/infiniband/*/ports/*"
_COUNTERS = f"{_PORT}/counters/* {_PORT}/hw_counters/*"
_ENERGY = " ".join(f"/sys/class/powercap/intel-rapl:*/{name}" for name in FILES)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names of variables that `export` of sh takes; others are set by env(1)."""

_GLOB = re.compile(r"([][*?!-]+)")
"""Characters of a pattern that stay unquoted, as in out/*.log."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """One command of a launch: the `number`th guard of the launch `nonce`, on the `node`th host.

    `scratch`: the directory of the sitting, `name`: that of the launch in it. `cwd`, `stay`: as in
    Station.run.
    """

    command: Command
    scratch: str
    name: str
    nonce: str
    number: int
    node: int
    cwd: str = ""
    stay: bool = False

    @property
    def ident(self) -> str:
        """Its name on its node: "NONCE.NUMBER"."""
        return f"{self.nonce}.{self.number}"


def script(one: Guarded) -> str:
    """Return the script by which a shell on the node runs `one` in a guard."""
    command = one.command
    settings = {
        "scratch": one.scratch,
        "name": one.name,
        "number": str(one.number),
        "nonce": one.nonce,
        "cwd": one.cwd,
        "stay": "yes" if one.stay else "",
        "segments": " ".join(f"{SHARED_MEMORY}/{prefix}*" for prefix in SEGMENTS),
        "adapters": _COUNTERS,
        "energy": _ENERGY,
        "gpus": energy.GPUS,
        "gpu_counters": GPU_SCRIPT.read_text(),
        "bmc": energy.BMC,
    }
    quoted = {key: shlex.quote(value) for key, value in command.env.items()}
    enter = [f"cd {shlex.quote(command.cwd)} || exit 126"] if command.cwd else []
    exports = [f"export {key}={value}" for key, value in quoted.items() if _NAME.fullmatch(key)]
    exports.append(f"export PARIBUS_NODE={one.node}")
    odd = [f"{key}={value}" for key, value in command.env.items() if not _NAME.fullmatch(key)]
    become = f"exec {shlex.join([*(['env', *odd] if odd else []), *command.argv])}"
    there = [*exports, 'cd "${cwd:-$here}"', f"command -v {shlex.quote(command.argv[0])}"]
    files = [
        f"printf %s {shlex.quote(text)} >{shlex.quote(name)}"
        for name, text in command.files.items()
    ]
    if files:
        files = ['cd "$here"', *files, f"chmod 700 {shlex.join(command.files)}"]
    return "\n".join(
        (
            *(f"{key}={shlex.quote(value)}" for key, value in settings.items()),
            f"written() {{ {' && '.join(files) or ':'}; }}",
            f"started() {{ {'; '.join([*exports, *enter, become])}; }}",
            f"found() {{ {'; '.join(there)}; }}",
            f"outputs() {{ {_printed(command.outputs)}; }}",
            POWER,
            '. "$scratch/guard.sh"\n',
        )
    )


def _printed(patterns: tuple[str, ...]) -> str:
    """Return the shell command that prints the files of the launch that match `patterns`."""
    if not patterns:
        return ":"
    globs = [
        "".join(p if _GLOB.fullmatch(p) else shlex.quote(p) for p in _GLOB.split(one) if p)
        for one in patterns
    ]
    return f'(cd "$here" && for one in {" ".join(globs)}; do [ ! -f "$one" ] || cat "$one"; done)'


AGREED_S = 0.015
"""Seconds by which a wall time by uptimes (steps of 10 ms) and one by date(1) may differ."""


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a guard: how its command ended, and how busy the node was.

    `refused`: why nothing was started, "" if it was; `program`: whether that was due to the program
    rather than the node. `wall_s`, `cpu_s`: seconds, the wall time to 1 or 10 ms. `own`: the
    guard's process number. `rooms`: the space of file systems. `before`, `after`: the load then;
    `beside`: the commands that were busy. `carried`: the bytes of each network.
    """

    exit_code: int = 0
    wall_s: float = 0.0
    cpu_s: float | None = None
    own: int = 0
    rooms: tuple[Room, ...] = ()
    before: Facts = field(default_factory=dict)
    after: Facts = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    carried: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""
    program: bool = False


def report_of(text: bytes, cores: Collection[int] = ()) -> Report | None:
    """Return the report in what a guard wrote, None if it is not whole.

    `cores`: those of its machine that ranks of the launch are bound to, none if they are not.
    """
    body = text.decode(errors="replace")
    head, _, readings = body.partition("\nbefore\n")
    before, _, after = readings.removesuffix("whole\n").partition("\nafter\n")
    words: dict[str, str] = {}
    rooms = []
    for line in head.splitlines():
        word, _, value = line.partition(" ")
        if word == "room" and (room := room_of(value)):
            rooms.append(room)
        words[word] = value
    for kind in ("machine", "program"):
        if kind in words:
            return Report(refused=words[kind], program=kind == "program")
    if not body.endswith("whole\n"):
        return None
    code = int(words["exit"])
    # A signal is negative, as in subprocess; 255, with which mpirun ends, is none.
    code = 128 - code if 128 < code <= 128 + signal.NSIG else code
    wall_s = _wall_s(words["seconds"], words.get("finely", ""))
    files = files_of(before), files_of(after)
    used = [_processes(one) for one in files]
    own = int(words["own"])
    archives = Archive(files[0]), Archive(files[1])
    return Report(
        exit_code=code,
        wall_s=wall_s,
        cpu_s=_seconds(words.get("spent", "")),
        own=own,
        rooms=tuple(rooms),
        before=background_load(archives[0], cores),
        after=background_load(archives[1], cores),
        beside=tuple(beside(used[0], used[1], own, _difference(words["window"]))),
        carried=carried(*archives),
    )


def room_of(text: str) -> Room | None:
    """Return the room in an output of `stat -f -c '%a %S %d %c %n'`, None if it is not that."""
    words = text.split(" ", 4)
    if len(words) < 5 or not all(word.isdecimal() for word in words[:4]):
        return None
    free, block, inodes, total = map(int, words[:4])
    return Room(words[4], free * block, inodes if total else None)


def busiest(
    reports: Sequence[tuple[int, Report]], boots: Sequence[str], names: Sequence[str]
) -> tuple[tuple[Facts, Facts], tuple[str, ...], float]:
    """Return the load before and after, the busy commands, and the launch's CPU seconds: all on
    the busiest node.

    `reports`: each with the number of its node, whose boot_id and name are in `boots` and `names`.
    The busiest node is the one where most time was waited for memory, and for cores that others
    used. Nodes with one boot_id are one machine: CPU time of the launch on any of them is its own.
    The load has the GPUs of all nodes, whose names differ.
    """
    used: dict[str, float] = {}
    for node, report in reports:
        used[boots[node]] = used.get(boots[node], 0.0) + (report.cpu_s or 0.0)
    found = []
    for node, report in reports:
        grown = load_between(report.before, report.after)
        busy = grown.get("load.bound_busy_s", grown.get("load.busy_s", 0.0))
        others = max(0.0, busy - used[boots[node]])
        waited = min(grown.get("load.cpu_pressure_us", 0.0) / 1e6, others)
        waited += grown.get("load.memory_pressure_us", 0.0) / 1e6
        found.append((waited, -node, report))
    _, node, report = max(found, key=lambda one: one[:2])
    name = {"load.node": names[-node]}
    before, after = (
        {key: value for facts in several for key, value in facts.items() if key.startswith(GPUS)}
        for several in zip(*((one.before, one.after) for _, one in reports), strict=True)
    )
    load = {**report.before, **before, **name}, {**report.after, **after, **name}
    return load, report.beside, used[boots[-node]]


def bound_on(
    cores: Mapping[str, Sequence[int]], names: Sequence[str], boots: Sequence[str]
) -> dict[str, set[int]]:
    """Return the `cores`, given by node, by boot_id: several nodes may be of one machine."""
    found: dict[str, set[int]] = {boot: set() for boot in boots}
    for name, boot in zip(names, boots, strict=True):
        found[boot].update(cores.get(name, ()))
    return found


def carried_by(reports: Sequence[tuple[int, Report]], names: Sequence[str]) -> Carried:
    """Return the bytes of each network by node, the most that any guard of the node saw."""
    found: dict[str, dict[str, int]] = {}
    for node, report in reports:
        own = found.setdefault(names[node], {})
        for network, grown in report.carried.items():
            own[network] = max(grown, own.get(network, 0))
    return found


def energy_of(reports: Sequence[tuple[int, Report]], boots: Sequence[str]) -> dict[Source, float]:
    """Return the joules of all machines together, by source, for sources that all of them have.

    Nodes with one boot_id are one machine, and are counted once.
    """
    return summed({boots[node]: joules(one.before, one.after, one.wall_s) for node, one in reports})


def _wall_s(uptimes: str, finely: str) -> float:
    """Return the seconds between two dates, or between two uptimes, which have steps of 10 ms.

    Starting date(1) adds about 1 ms; where it took longer, or the clock was set, the uptimes count.
    """
    coarse = _difference(uptimes)
    try:
        began, ended = map(float, finely.split())
    except ValueError:
        return coarse
    return round(ended - began, 4) if abs(ended - began - coarse) < AGREED_S else coarse


def _difference(words: str) -> float:
    began, ended = map(float, words.split())
    return round(ended - began, 2)


def _seconds(spent: str) -> float | None:
    """Return the sum of both times in "0m0.01s 1m2.50s": user and system, by `times` of sh."""
    found = re.findall(r"([0-9]+)m([0-9.]+)s", spent)
    return sum(60 * int(m) + float(s) for m, s in found) if len(found) == 2 else None


def _processes(files: Mapping[str, str]) -> Readings:
    """Return the processes in files such as /proc/812/stat, by their numbers."""
    found = {}
    for path, text in files.items():
        number = path.removeprefix("/proc/").removesuffix("/stat")
        if number.isdecimal() and (known := process_of(text.encode())):
            found[int(number)] = known
    return found
