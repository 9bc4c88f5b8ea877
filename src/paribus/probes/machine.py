"""Facts of the machine that need no privilege: processor, memory, kernel, network, load.

Each reader takes `root`, so that it can be pointed at an archive of another machine's files. A file
that is missing gives no fact rather than an empty one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from paribus.model import Facts
from paribus.probes.archive import Archive
from paribus.probes.files import read_file
from paribus.probes.load import background_load

_FILES = {
    "cpu.governor": "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "cpu.smt": "sys/devices/system/cpu/smt/control",
    "cpu.online": "sys/devices/system/cpu/online",
    "cpu.isolated": "sys/devices/system/cpu/isolated",
    "memory.transparent_hugepage": "sys/kernel/mm/transparent_hugepage/enabled",
    "memory.numa_balancing": "proc/sys/kernel/numa_balancing",
    "os.release": "proc/sys/kernel/osrelease",
    "os.build": "proc/sys/kernel/version",
    "os.autogroup": "proc/sys/kernel/sched_autogroup_enabled",
    "clock.source": "sys/devices/system/clocksource/clocksource0/current_clocksource",
    "net.congestion_control": "proc/sys/net/ipv4/tcp_congestion_control",
    "machine.vendor": "sys/class/dmi/id/sys_vendor",
    "machine.product": "sys/class/dmi/id/product_name",
}
_CPUINFO = {
    "vendor_id": "cpu.vendor",
    "model name": "cpu.model",
    "microcode": "cpu.microcode",
    "cache size": "cpu.cache",
}


def machine_facts(root: Path = Path("/")) -> dict[str, str | int | float]:
    """Return what is known of the machine under `root` and should not change during a study."""
    facts: dict[str, str | int | float] = {}
    for key, name in _FILES.items():
        text = _read(root / name)
        if text:
            facts[key] = text
    for line in _read(root / "proc/cpuinfo").split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        if name.strip() in _CPUINFO:
            facts[_CPUINFO[name.strip()]] = value.strip()
        elif name.strip() == "flags":
            facts["cpu.hypervisor"] = "yes" if "hypervisor" in value.split() else "no"
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            facts["memory.total_kib"] = int(line.split()[1])
    return facts


def load_facts(root: Path = Path("/")) -> Facts:
    """Return how busy the machine is now, by the keys under load. of docs/facts.md.

    Cheap enough for twice a launch (under 1 ms): `load_between` tells what grew meanwhile.
    """
    files = {path: read_file(root / path.lstrip("/")) for path in (*_LOAD, *_cpu_stat(root))}
    return background_load(Archive(files))


_LOAD = (
    *("/proc/loadavg", "/proc/stat"),
    *(f"/proc/pressure/{what}" for what in ("cpu", "io", "memory")),
)


@cache
def _cpu_stat(root: Path) -> tuple[str, ...]:
    """Return the path of our own group's cpu.stat, in version 2 or 1, if it is there."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if number == "0" or "cpu" in controllers.split(","):
            for base in ("", f"/{controllers}" if controllers else "/unified"):
                path = f"/sys/fs/cgroup{base}{group.rstrip('/')}/cpu.stat"
                if (root / path.lstrip("/")).is_file():
                    return (path,)
    return ()


def cores(root: Path = Path("/"), allowed: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Return the `allowed` cores, one hardware thread of each physical core before its siblings."""
    first: list[int] = []
    rest: list[int] = []
    seen: set[str] = set()
    for core in sorted(allowed):
        base = root / f"sys/devices/system/cpu/cpu{core}/topology"
        siblings = _read(base / "thread_siblings_list") or str(core)
        (rest if siblings in seen else first).append(core)
        seen.add(siblings)
    return tuple(first + rest)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
