"""How busy a node is: what it waits for (PSI), what its hypervisor takes (steal), what runs.

load_facts_of(archive) returns one reading, {"load.busy_s": 1234.5, ...}; during(before, after) of
two returns how much each total grew in a launch: {"load.during.busy_s": 3.2, ...}.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from paribus.core import Facts
from paribus.probes.archive import Archive, Unknown, fact
from paribus.probes.cgroup import throttling
from paribus.probes.energy import energy_facts
from paribus.probes.values import number

TICKS_PER_S = 100  # USER_HZ, fixed for programs on every architecture that MPI is found on
_PRESSURES = ("cpu", "io", "memory")
_TOTALS = (
    *(f"load.{what}_pressure_us" for what in _PRESSURES),
    *("load.steal_s", "load.iowait_s", "load.busy_s", "load.bound_busy_s"),
    "load.context_switches",
    *("load.throttled_periods", "load.throttled_us"),
)


Readings = Mapping[int, tuple[str, int, float]]
"""Processes by number: command, number of the parent, seconds of processor time so far."""

BESIDE = "load.during.consumers"
"""The fact that names who else used the processors during a launch."""

ADAPTERS = "load.rdma."
"""How the counters of RDMA ports begin; the name of the counter follows. Sums over all ports."""

GPUS = "load.gpu."
"""How the counters of GPUs begin: load.gpu.UUID.COUNTER. Those of times are in ns."""

OURS = "kernel.gpu."
"""How the facts of GPUs begin that our kernels print."""

_OF_GPUS = ("others_percent", "clock_least_mhz")
"""Values of GPUs that, in the reading after a launch, are of that launch alone."""

LEAST_SHARE = 0.05
"""A command with a smaller share of a processor is not named."""

MOST_NAMED = 5
"""No more commands are named: those with the largest shares."""


def load_facts_of(archive: Archive) -> dict[str, Any]:
    """Return the load now, and totals since boot, whose growth between two readings is the load.

    `load.average_1min` and `load.running` are numbers of tasks; `load.X_pressure_10s` is the
    percentage of the last 10 s in which some task waited for X, `load.X_pressure_us` the total;
    `load.rdma.X` is the sum of a counter over the RDMA ports.
    """
    first = archive.text("/proc/loadavg").split()
    facts: dict[str, Any] = {
        "load.average_1min": number(first[0]) if first else Unknown.ABSENT,
        "os.irq_affinity": archive.read("/proc/irq/default_smp_affinity"),
    }
    for what in _PRESSURES:
        text = archive.read(f"/proc/pressure/{what}")
        recent, total = _pressure(text)
        facts[f"load.{what}_pressure_10s"] = recent
        facts[f"load.{what}_pressure_us"] = total
    if "consumers" in archive.lists:
        facts["load.consumers"] = _consumers(archive.lists["consumers"])
    facts |= _stat(archive.read("/proc/stat")) | throttling(archive)
    return facts | _adapters(archive) | energy_facts(archive) | _gpus(archive)


def background_load(archive: Archive, cores: Collection[int] = ()) -> Facts:
    """Return the facts of `archive` under load.; see `load_facts_of`.

    With `cores`, those that ranks are bound to, also load.bound_busy_s: how long they were busy.
    """
    facts = load_facts_of(archive)
    if cores:
        facts["load.bound_busy_s"] = _busy(archive.read("/proc/stat"), cores)
    return {key: fact(value) for key, value in facts.items() if key.startswith("load.")}


def load_between(before: Facts, after: Facts) -> dict[str, float]:
    """Return how much each total grew from `before` to `after`; no key where either is unknown."""
    grown = {}
    counted = (key for key in before if key.startswith((ADAPTERS, GPUS)))
    for key in (*_TOTALS, *counted):
        then, now = before.get(key), after.get(key)
        if isinstance(then, int | float) and isinstance(now, int | float) and now >= then:
            grown[key] = float(now - then)
    return grown


def during(before: Facts, after: Facts) -> dict[str, float]:
    """Return what grew from `before` to `after` a launch, as facts under load.during."""
    grown = load_between(before, after) | _after(after)
    return {f"load.during.{key.removeprefix('load.')}": value for key, value in grown.items()}


def of_gpus(before: Facts, after: Facts) -> dict[tuple[str, str], float]:
    """Return what GPUs counted in a launch, by UUID and counter.

    {("GPU-1f", "throttled_heat_ns"): 2e9, ("GPU-1f", "others_percent"): 40.0}
    """
    values = {**load_between(before, after), **_after(after)}
    split = {key: key[len(GPUS) :].rpartition(".") for key in values if key.startswith(GPUS)}
    return {(gpu, counter): values[key] for key, (gpu, _, counter) in split.items()}


def used_gpus(counted: Facts, launch: Facts) -> frozenset[str]:
    """Return the UUIDs of the GPUs that a launch used; all that `counted` has where one is unknown.

    Facts of our kernels state the PCI addresses of their GPUs. For other programs the words of
    CUDA_VISIBLE_DEVICES count, where they are UUIDs or how UUIDs begin; numbers do not count, for
    CUDA has an order of its own.
    """
    keys = [key[len(GPUS) :].rpartition(".") for key in counted if key.startswith(GPUS)]
    every = {gpu for gpu, _, _ in keys}
    at = {str(counted[f"{GPUS}{gpu}.address"]): gpu for gpu, _, what in keys if what == "address"}
    addresses = [
        value for key, value in launch.items() if key.startswith(OURS) and key.endswith(".address")
    ]
    if addresses:
        used = {at.get(str(address)) for address in addresses}
    else:
        words = str(launch.get("env.CUDA_VISIBLE_DEVICES", "")).split(",")
        used = {_gpu_of(word.strip(), every) for word in words}
    return frozenset(gpu for gpu in (every if None in used else used) if gpu)


def _gpu_of(word: str, gpus: Collection[str]) -> str | None:
    """Return the one of `gpus` that a word such as "GPU-1f3a" means, None where it is not one.

    "MIG-GPU-1f3a.../1/0" is a part of a GPU, as CUDA before R470 writes it: it means that GPU.
    """
    begin = word.removeprefix("MIG-").partition("/")[0]
    found = [gpu for gpu in gpus if begin.startswith("GPU-") and gpu.startswith(begin)]
    return found[0] if len(found) == 1 else None


def _after(after: Facts) -> dict[str, float]:
    """Return the values of GPUs that are of the launch alone: those of _OF_GPUS."""
    return {
        key: value
        for key, value in after.items()
        if key.startswith(GPUS) and key.endswith(_OF_GPUS) and isinstance(value, int)
    }


def shares(seconds: Mapping[str, float], window: float) -> list[str]:
    """Return commands by their share of a processor in `window` s, most first: ["yes 98%"]."""
    found = sorted(((used / window, name) for name, used in seconds.items()), reverse=True)
    return [f"{name} {share:.0%}" for share, name in found[:MOST_NAMED] if share >= LEAST_SHARE]


def beside(before: Readings, after: Readings, own: int, window: float) -> list[str]:
    """Return the commands that used processors from `before` to `after`, as `shares` does.

    The process with the number `own` and those that it started are left out. Of a process that
    began between the readings all its time counts; one that ended between them is not seen.
    """
    used: dict[str, float] = {}
    for process, (command, _, seconds) in after.items():
        grown = seconds - before.get(process, ("", 0, 0.0))[2]
        if grown > 0 and not _under(after, process, own):
            used[command] = used.get(command, 0.0) + grown
    return shares(used, window) if window > 0 else []


def _under(readings: Readings, process: int, own: int) -> bool:
    """Return whether `process` is `own` or below it, by the numbers of parents."""
    for _ in range(64):  # numbers are given anew: two readings of one moment may make a circle
        if process == own:
            return True
        if process not in readings:
            return False
        process = readings[process][1]
    return False


def _consumers(lines: Sequence[str]) -> Any:
    """Return the commands that used processors while facts.sh read, as `shares` does.

    Lines are "TICKS COMMAND" and "window TICKS"; "denied" or "cut" if facts.sh could not read.
    """
    used: dict[str, float] = {}
    window: Any = Unknown.UNREADABLE
    for line in lines:
        word, _, rest = line.partition(" ")
        if word in (Unknown.DENIED.value, Unknown.CUT.value):
            return Unknown(word)
        if word == "window":
            window = number(rest)
        elif isinstance(ticks := number(word), int) and rest:
            used[rest] = used.get(rest, 0.0) + ticks
    if not isinstance(window, int) or not 0 <= window < 1 << 31:
        return Unknown.UNREADABLE
    return shares(used, max(window, 1))


def _adapters(archive: Archive) -> dict[str, int]:
    """Return each counter of RDMA ports, summed over all ports of the node."""
    sums: dict[str, int] = {}
    for group in ("counters", "hw_counters"):
        for device, port, name in archive.matches(f"/sys/class/infiniband/*/ports/*/{group}/*"):
            path = f"/sys/class/infiniband/{device}/ports/{port}/{group}/{name}"
            if isinstance(value := number(archive.read(path)), int):
                sums[ADAPTERS + name] = sums.get(ADAPTERS + name, 0) + value
    return sums


def _gpus(archive: Archive) -> dict[str, Any]:
    """Return what gpu_counters.py read of each GPU, except for its energy."""
    facts: dict[str, Any] = {}
    for gpu, what in archive.matches("/gpu/*/*"):
        text = archive.read(f"/gpu/{gpu}/{what}")
        facts[f"{GPUS}{gpu}.{what}"] = text if what == "address" else number(text)
    return facts


def _pressure(text: str | Unknown) -> tuple[Any, Any]:
    """Return avg10 (percent) and total (us) of the line "some avg10=0.00 ... total=123"."""
    if isinstance(text, Unknown):
        return text, text
    for line in text.split("\n"):
        if line.startswith("some "):
            pairs = {word.partition("=")[0]: word.partition("=")[2] for word in line.split()}
            return number(pairs.get("avg10", "")), number(pairs.get("total", ""))
    return Unknown.UNREADABLE, Unknown.UNREADABLE


def _busy(text: str | Unknown, cores: Collection[int]) -> Any:
    """Return how many seconds `cores` were busy since boot; unknown unless each has its line."""
    if isinstance(text, Unknown):
        return text
    wanted = {f"cpu{core}" for core in cores}
    ticks = [line.split()[1:] for line in text.split("\n") if line.partition(" ")[0] in wanted]
    if len(ticks) < len(wanted) or not all(
        len(row) >= 7 and "".join(row).isdecimal() for row in ticks
    ):
        return Unknown.UNREADABLE
    # user, nice, system, then interrupts: idle and waiting for disks lie between them.
    return sum(int(row[n]) for row in ticks for n in (0, 1, 2, 5, 6)) / TICKS_PER_S


def _stat(text: str | Unknown) -> dict[str, Any]:
    """Return the facts of /proc/stat: times of all processors in s, and numbers of tasks."""
    names = ("load.busy_s", "load.iowait_s", "load.steal_s")
    counts = {"procs_running": "load.running", "procs_blocked": "load.blocked"}
    counts["ctxt"] = "load.context_switches"
    if isinstance(text, Unknown):
        return dict.fromkeys((*names, *counts.values()), text)
    facts: dict[str, Any] = dict.fromkeys((*names, *counts.values()), Unknown.UNREADABLE)
    for line in text.split("\n"):
        key, _, rest = line.partition(" ")
        if key in counts:
            facts[counts[key]] = number(rest)
        elif key == "cpu":
            ticks = [number(word) for word in rest.split()]
            known = [tick for tick in ticks if not isinstance(tick, Unknown)]
            if len(known) == len(ticks) >= 8:
                user, nice, system, _, iowait, irq, soft, steal = known[:8]
                busy = user + nice + system + irq + soft
                seconds = (value / TICKS_PER_S for value in (busy, iowait, steal))
                facts |= dict(zip(names, seconds, strict=True))
    return facts
