"""Processors: what they are, which may be used, and who sets their frequency.

cpu_facts(archive) returns {"cpu.cores": 64, "cpu.governor": "performance", ...}.
"""

from __future__ import annotations

from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.processors import CPU as _CPU
from paribus.probes.processors import cores, sockets
from paribus.probes.values import all_known, count_of, fields, number, one_or_list, read_all, scalar

_FILES = {
    "cpu.online": _CPU + "online",
    "cpu.isolated": _CPU + "isolated",
    "cpu.nohz_full": _CPU + "nohz_full",
    "cpu.smt": _CPU + "smt/control",
    "cpu.smt_active": _CPU + "smt/active",
    "cpu.frequency.boost": _CPU + "cpufreq/boost",
    "cpu.frequency.no_turbo": _CPU + "intel_pstate/no_turbo",
    "cpu.frequency.pstate": _CPU + "intel_pstate/status",
    "cpu.frequency.most_percent": _CPU + "intel_pstate/max_perf_pct",
    "cpu.frequency.amd_pstate": _CPU + "amd_pstate/status",
    "cpu.frequency.base_khz": _CPU + "cpu0/cpufreq/base_frequency",
    "cpu.frequency.rated_khz": _CPU + "cpu0/cpufreq/cpuinfo_max_freq",
    "cpu.idle.driver": _CPU + "cpuidle/current_driver",
    "cpu.idle.governor": _CPU + "cpuidle/current_governor",
}
# Files that each processor has, in its directory cpufreq.
_EVERY_CPU = {
    "cpu.frequency.driver": "scaling_driver",
    "cpu.governor": "scaling_governor",
    "cpu.frequency.min_khz": "scaling_min_freq",
    "cpu.frequency.max_khz": "scaling_max_freq",
    "cpu.frequency.preference": "energy_performance_preference",
}
# Rows of /proc/cpuinfo: names of x86 first, then those of ARM.
_CPUINFO = {
    "cpu.vendor": ("vendor_id", "CPU implementer"),
    "cpu.model": ("model name", "CPU part"),
    "cpu.family": ("cpu family", "CPU architecture"),
    "cpu.model_number": ("model", "CPU variant"),
    "cpu.stepping": ("stepping", "CPU revision"),
    "cpu.microcode": ("microcode",),
    "cpu.cache": ("cache size",),
}


def cpu_facts(archive: Archive) -> dict[str, Any]:
    """Return the facts of the processors; where these differ among themselves, lists of values."""
    facts = read_all(archive, _FILES)
    for key, name in _EVERY_CPU.items():
        cores = archive.names(f"{_CPU}*/cpufreq/{name}")
        texts = (archive.read(f"{_CPU}{core}/cpufreq/{name}") for core in cores)
        facts[key] = one_or_list(scalar(text) for text in texts)
    if facts["cpu.nohz_full"] == "(null)":  # older kernels, for no processor
        facts["cpu.nohz_full"] = ""
    facts["cpu.frequency.power_limits_w"] = _power_limits(archive)
    return facts | _cpuinfo(archive) | _layout(archive) | _idle(archive) | _mitigations(archive)


def _power_limits(archive: Archive) -> Any:
    """Return [long, short], a package's limits in W (RAPL); where packages differ, all such."""
    base = "/sys/class/powercap/"
    found: list[Any] = []
    for zone in archive.names(base + "*/name"):
        if not archive.text(f"{base}{zone}/name").startswith("package"):
            continue
        names = ("constraint_0_power_limit_uw", "constraint_1_power_limit_uw")
        limits = all_known(number(archive.read(f"{base}{zone}/{name}")) for name in names)
        if isinstance(limits, Unknown):
            return limits
        pair = [limit / 1e6 for limit in limits]
        found += [pair] if pair not in found else []
    return found[0] if len(found) == 1 else sorted(found) or Unknown.ABSENT


def _cpuinfo(archive: Archive) -> dict[str, Any]:
    text = archive.read("/proc/cpuinfo")
    if isinstance(text, Unknown):
        return dict.fromkeys((*_CPUINFO, "cpu.flags", "cpu.hypervisor"), text)
    values: dict[str, list[str]] = {}
    for name, value in fields(text):
        values.setdefault(name, []).append(value)
    facts: dict[str, Any] = {}
    for key, names in _CPUINFO.items():
        found = next((values[name] for name in names if name in values), [])
        facts[key] = one_or_list(found)
    flags = one_or_list(
        " ".join(sorted(set(v.split()))) for v in values.get("flags", values.get("Features", []))
    )
    facts["cpu.flags"] = flags.split() if isinstance(flags, str) else flags
    facts["cpu.hypervisor"] = (
        flags
        if isinstance(flags, Unknown)
        else "yes"
        if any("hypervisor" in line.split() for line in values.get("flags", []))
        else "no"
    )
    return facts


def _layout(archive: Archive) -> dict[str, Any]:
    """Return sockets, cores and threads that are online, from what each thread states of itself."""
    physical, packages = cores(archive), sockets(archive)
    threads = physical if isinstance(physical, Unknown) else one_or_list(map(len, physical))
    return {
        "cpu.count": count_of(archive.read(_CPU + "online")),
        "cpu.sockets": packages if isinstance(packages, Unknown) else len(packages),
        "cpu.cores": physical if isinstance(physical, Unknown) else len(physical),
        "cpu.threads_per_core": threads,
        **_caches(archive),
    }


def _caches(archive: Archive) -> dict[str, Any]:
    """Return size and number of users of each cache of cpu0: cpu.cache.l1d, cpu.cache.l3, ..."""
    facts: dict[str, Any] = {}
    for index in archive.names(_CPU + "cpu0/cache/*/level"):
        level, kind, size, shared = (
            archive.read(f"{_CPU}cpu0/cache/{index}/{name}")
            for name in ("level", "type", "size", "shared_cpu_list")
        )
        if isinstance(number(level), int) and isinstance(kind, str) and kind:
            name = f"cpu.cache.l{level}{kind[0].lower() if kind != 'Unified' else ''}"
            facts[name] = scalar(size)
            facts[f"{name}_shared_by"] = count_of(shared)
    return facts


def _idle(archive: Archive) -> dict[str, Any]:
    """Return the names of the idle states that are not disabled: ["POLL", "C1"]."""
    base = _CPU + "cpu0/cpuidle/"
    states = archive.names(base + "*/name")
    if not states:
        return {"cpu.idle.states": Unknown.ABSENT}
    names = all_known(archive.read(f"{base}{state}/name") for state in states)
    off = all_known(archive.read(f"{base}{state}/disable") for state in states)
    if isinstance(names, Unknown) or isinstance(off, Unknown):
        return {"cpu.idle.states": names if isinstance(names, Unknown) else off}
    return {"cpu.idle.states": [n for n, flag in zip(names, off, strict=True) if flag == "0"]}


def _mitigations(archive: Archive) -> dict[str, Any]:
    base = _CPU + "vulnerabilities/"
    return {
        f"cpu.mitigation.{name}": scalar(archive.read(base + name))
        for name in archive.names(base + "*")
    }
