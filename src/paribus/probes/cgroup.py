"""Control groups, version 1 and 2: the limits in force, which are those of the strictest group.

Where our group may use 4 processors and the group above 2, `cgroup.cpus` is 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import fields, number, scalar

_ROOT = "/sys/fs/cgroup/"
UNLIMITED = "unlimited"
_V1_UNLIMITED = 1 << 62  # version 1 says "no limit" with the largest number of whole pages
# Facts of our own group: the first file that there is, in the innermost group that has it.
_OWN = {
    "cgroup.cpuset": ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"),
    "cgroup.mems": ("cpuset.mems.effective", "cpuset.effective_mems", "cpuset.mems"),
    "cgroup.cpu_weight": ("cpu.weight",),
    "cgroup.cpu_shares": ("cpu.shares",),
    "cgroup.net_class": ("net_cls.classid",),
}
# Limits of which the least in our group and all above is in force.
_MOST = {
    "cgroup.memory_bytes": ("memory.max", "memory.limit_in_bytes"),
    "cgroup.memory_high_bytes": ("memory.high",),
    "cgroup.swap_bytes": ("memory.swap.max", "memory.memsw.limit_in_bytes"),
    "cgroup.pids": ("pids.max",),
}


def cgroup_facts(archive: Archive) -> dict[str, Any]:
    """Return the limits that hold for the process; "unlimited" where no group sets one.

    `cgroup.cpus` is the quota in processors. `cgroup.path` names the group.
    """
    table = archive.read("/proc/self/cgroup")
    if isinstance(table, Unknown):
        return {"cgroup.version": table}
    lines = [line.split(":", 2) for line in table.split("\n") if line.count(":") >= 2]
    groups = {path for number_, _, path in lines if number_ == "0"} or {"/"}
    named = sorted({path for _, _, path in lines})
    # The root group of version 2 has no files of limits, and limits nothing.
    none = UNLIMITED if _paths(archive, "cpu.stat") else Unknown.ABSENT
    v1 = any(number_ != "0" and controllers for number_, controllers, _ in lines)
    v2 = any(number_ == "0" for number_, _, _ in lines)
    facts: dict[str, Any] = {
        "cgroup.version": "+".join(["1"] * v1 + ["2"] * v2) or Unknown.ABSENT,
        "cgroup.path": named[-1] if len(named) > 1 else next(iter(groups)),
        "cgroup.cpus": _least(_quotas(archive), none),
    }
    for key, names in _OWN.items():
        facts[key] = _own(archive, names)
    facts["cgroup.io_max"] = _disk_limits(archive) if v2 and not v1 else Unknown.ABSENT
    facts["cgroup.net_priorities"] = _priorities(archive)
    for key, names in _MOST.items():
        limits = (_limit(text) for name in names for text in _texts(archive, name))
        facts[key] = _least(limits, none)
    return facts


def throttling(archive: Archive) -> dict[str, int | float]:
    """Return how often and how long (us) quotas have stopped our group; {} where no group says.

    Sums of our group and those above: a group that is stopped by one above counts nothing itself.
    """
    stops = [found for _, text in _paths(archive, "cpu.stat") if (found := _stops(text))]
    if not stops:
        return {}
    periods, lasted = (sum(column) for column in zip(*stops, strict=True))
    return {"load.throttled_periods": periods, "load.throttled_us": lasted}


def _stops(text: str | Unknown) -> tuple[int | float, int | float] | None:
    """Return how often and how long (us) the group with this cpu.stat was stopped, if it says."""
    if isinstance(text, Unknown):
        return None
    values = {key: number(value) for key, value in fields(text, " ")}
    periods = values.get("nr_throttled", Unknown.ABSENT)
    if isinstance(periods, Unknown):
        return None
    lasted = values.get("throttled_usec", Unknown.ABSENT)
    if isinstance(lasted, Unknown):
        v1 = values.get("throttled_time", 0)
        lasted = 0 if isinstance(v1, Unknown) else v1 / 1000  # version 1 counts in ns
    return periods, lasted


def _limit(text: str | Unknown) -> int | float | str | Unknown:
    """Return a limit as a number, or "unlimited" for "max" (version 2) and 2^62 or more (1)."""
    if text == "max":
        return UNLIMITED
    value = number(text)
    return UNLIMITED if not isinstance(value, Unknown) and value >= _V1_UNLIMITED else value


def _paths(archive: Archive, name: str) -> list[tuple[str, str | Unknown]]:
    """Return path and text of the file `name` in our groups, the innermost group first."""
    found = [
        (path, archive.read(path))
        for path, text in archive.files.items()
        if path.startswith(_ROOT) and path.endswith("/" + name) and text is not Unknown.ABSENT
    ]
    return sorted(found, key=lambda pair: (-pair[0].count("/"), pair[0]))


def _texts(archive: Archive, name: str) -> list[str | Unknown]:
    return [text for _, text in _paths(archive, name)]


def _own(archive: Archive, names: Iterable[str]) -> Any:
    """Return the value in the first file of `names` with a text, the innermost group first."""
    for name in names:
        for text in _texts(archive, name):
            if text:
                return scalar(text)
    return Unknown.ABSENT


def _disk_limits(archive: Archive) -> list[str] | Unknown:
    """Return the limits of disks in our group and all above, sorted.

    Of a line "8:0 rbps=104857600 wbps=max riops=max wiops=5000" the disk's number is left out,
    because other nodes number their disks otherwise.
    """
    found: list[str] = []
    for text in _texts(archive, "io.max"):
        if isinstance(text, Unknown):
            return text
        found += [line.partition(" ")[2] for line in text.split("\n") if line]
    return sorted(found)


def _priorities(archive: Archive) -> Any:
    """Return the priorities other than 0 that our packets have on some interface, sorted.

    Lines are "eth0 3"; the interfaces' names are left out.
    """
    for text in _texts(archive, "net_prio.ifpriomap"):
        if isinstance(text, Unknown):
            return text
        last = [line.split()[-1] for line in text.split("\n") if line.split()]
        return sorted(word for word in last if word != "0")
    return Unknown.ABSENT


def _quotas(archive: Archive) -> list[int | float | str | Unknown]:
    """Return the quota of our group and of each above, in processors: 2.0 for "200000 100000"."""
    found: list[int | float | str | Unknown] = []
    for text in _texts(archive, "cpu.max"):
        if isinstance(text, Unknown):
            found.append(text)
        else:
            quota, _, period = text.partition(" ")
            found.append(_processors(_limit(quota), number(period)))
    for path, text in _paths(archive, "cpu.cfs_quota_us"):
        quota_us = number(text)
        period_us = number(archive.read(path.replace("cfs_quota", "cfs_period")))
        found.append(UNLIMITED if quota_us == -1 else _processors(quota_us, period_us))
    return found


def _processors(quota: Any, period: Any) -> Any:
    if quota == UNLIMITED:
        return UNLIMITED
    if isinstance(quota, Unknown) or isinstance(period, Unknown) or period <= 0:
        return Unknown.UNREADABLE
    return round(quota / period, 6)


def _least(limits: Iterable[int | float | str | Unknown], none: str | Unknown) -> Any:
    """Return the least of `limits`, "unlimited" if all are that; `none` if there are none at all.

    An Unknown among them makes the whole unknown: it might be the least.
    """
    found = list(limits)
    if unread := [limit for limit in found if isinstance(limit, Unknown)]:
        return unread[0]
    numbers = [limit for limit in found if not isinstance(limit, str)]
    if numbers:
        return min(numbers)  # type: ignore[type-var]
    return UNLIMITED if found else none
