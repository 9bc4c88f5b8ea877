"""Limits of a process started the way that ranks are."""

from __future__ import annotations

import re
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import number

# /proc/PID/limits (fs/proc/base.c) to the names that getrlimit(2) uses.
_NAMES = {
    "Max cpu time": "cpu",
    "Max file size": "fsize",
    "Max data size": "data",
    "Max stack size": "stack",
    "Max core file size": "core",
    "Max resident set": "rss",
    "Max processes": "nproc",
    "Max open files": "nofile",
    "Max locked memory": "memlock",
    "Max address space": "as",
    "Max file locks": "locks",
    "Max pending signals": "sigpending",
    "Max msgqueue size": "msgqueue",
    "Max nice priority": "nice",
    "Max realtime priority": "rtprio",
    "Max realtime timeout": "rttime",
}
_ROW = re.compile(r"(Max [a-z ]*?[a-z]) {2,}(\S+) +(\S+)")


def limits_facts(archive: Archive) -> dict[str, Any]:
    """Return soft limits under limits, hard ones under limits.hard; -1 is unlimited.

    Bytes, seconds (cpu), us (rttime) or counts; the soft ones as the kernels' first line has them.
    Also the cores that may be used, privileges, and the priority of the process.
    """
    text = archive.read("/proc/self/limits")
    facts: dict[str, Any] = {}
    rows = {} if isinstance(text, Unknown) else {m[1]: m for m in _ROW.finditer(text)}
    missing = text if isinstance(text, Unknown) else Unknown.ABSENT
    for row, name in _NAMES.items():
        match = rows.get(row)
        facts[f"limits.{name}"] = _limit(match[2]) if match else missing
        facts[f"limits.hard.{name}"] = _limit(match[3]) if match else missing
    return facts | _status(archive) | _priority(archive)


def _limit(text: str) -> int | float | Unknown:
    return -1 if text == "unlimited" else number(text)


def _status(archive: Archive) -> dict[str, Any]:
    """Return what the kernel says of the process: where it may run, and with which privileges."""
    text = archive.read("/proc/self/status")
    names = {"Seccomp": "process.seccomp", "CapEff": "process.capabilities"}
    names |= {"NoNewPrivs": "process.no_new_privileges", "THP_enabled": "process.huge_pages"}
    names |= {"Cpus_allowed_list": "process.cpus", "Mems_allowed_list": "process.mems"}
    names |= {"Speculation_Store_Bypass": "process.store_bypass"}
    if isinstance(text, Unknown):
        return dict.fromkeys(names.values(), text)
    rows = dict(line.split(":\t", 1) for line in text.split("\n") if ":\t" in line)
    return {key: rows.get(name, Unknown.ABSENT) for name, key in names.items()}


# sched(7) and include/uapi/linux/sched.h: the numbers of the policies.
_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}


def _priority(archive: Archive) -> dict[str, Any]:
    """Return who goes first when several want a core: nice value and policy of the process, and the
    nice value of its autogroup, beside which its own counts for nothing (sched(7))."""
    stat, group = archive.read("/proc/self/stat"), archive.read("/proc/self/autogroup")
    facts: dict[str, Any] = {}
    if isinstance(stat, Unknown):
        facts |= {"process.nice": stat, "process.policy": stat}
    else:
        # proc(5): fields 19 and 41; the name before field 3 may hold anything.
        cells = stat.rpartition(")")[2].split()
        nice, policy = (cells[16], cells[38]) if len(cells) > 38 else ("?", "?")
        facts["process.nice"] = number(nice)
        reported = number(policy)
        facts["process.policy"] = (
            _POLICIES.get(reported, policy) if isinstance(reported, int) else reported
        )
    of_group = group if isinstance(group, Unknown) else number(group.rpartition(" nice ")[2])
    return facts | {"process.autogroup_nice": of_group}
