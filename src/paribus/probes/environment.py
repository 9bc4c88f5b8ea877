"""What a process inherits, started the way that ranks are: environment variables, and limits.

A variable that variables.txt lists gives its value: env.OMP_NUM_THREADS, "4". All others only give
their names, in the list env.unlisted.
"""

from __future__ import annotations

import re
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.values import number
from paribus.probes.variables import of_session, prefixes, reported

# Variables that a launcher or scheduler sets anew for each launch: they do not distinguish arms.
_OF_A_LAUNCH = re.compile(
    r"OMPI_(?!MCA_|ALLOW_)"
    r"|OMPI_MCA_(orte_|ess|pmix|initial_wdir|num_procs$|cpu_type$|PREFIXES$|shmem_RUNTIME_|"
    r"mpi_oversubscribe$)"
    r"|PMIX_(?!MCA_)|PMIX_MCA_mca_base_component_show_load_errors|PRTE_(?!MCA_)|HFI_NO_BACKTRACE"
    r"|HYDRA_|I_MPI_(INFO_|HYDRA_(HOST|UUID|SHARED))"
    r"|SLURM_(JOB|JOBID|STEP|TASK|PROCID|LOCALID|NODEID|GTIDS|SRUN|LAUNCH|TOPOLOGY|SUBMIT|NODELIST"
    r"|CLUSTER|CONF|PRIO|UMASK|WORKING|NNODES|NPROCS|NTASKS|CPU_BIND|CPUS_ON|MPI_TYPE|DISTRIBUTION)"
)
_LENT = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
"""Slurm sets one of these where it has lent GPUs, and then chooses the values of _OF_LENT."""

_OF_LENT = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

_OURS = "PARIBUS_"

UNLISTED = "env.unlisted"
"""The fact that lists names without values."""

HASHED = "env.others"
"""What older versions gathered instead: a hash of the names, those of login sessions included."""


def environment_facts(archive: Archive) -> dict[str, Any]:
    """Return settings under env., and those that change with each launch under job.env.

    Under UNLISTED are the sorted names that neither begin as settings do nor belong to a login
    session; their values are never read. A setting whose value may be secret is REDACTED.
    """
    if "environment" not in archive.lists:
        return {UNLISTED: Unknown.ABSENT}
    facts: dict[str, Any] = {}
    unlisted = set()
    lent = any(line.partition("=")[0] in _LENT for line in archive.lists["environment"])
    for line in archive.lists["environment"]:
        name, given, value = line.partition("=")
        if not name.startswith(prefixes()):
            if name and not name.startswith(_OURS) and not of_session(name):
                unlisted.add(name)
            continue
        known = reported(name, value.replace("\x1f", "\n")) if given else None
        if not _OF_A_LAUNCH.match(name) and not (lent and name in _OF_LENT):
            facts[f"env.{name}"] = Unknown.REDACTED if known is None else known
        elif known is not None:
            facts[f"job.env.{name}"] = known
    facts[UNLISTED] = sorted(unlisted)
    return facts


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
# "Max open files            1024                 524288               files"
_ROW = re.compile(r"(Max [a-z ]*?[a-z]) {2,}(\S+) +(\S+)")


def limits_facts(archive: Archive) -> dict[str, Any]:
    """Return soft limits under limits., hard ones under limits.hard.; -1 is unlimited.

    They are bytes, seconds (cpu), us (rttime) or counts; the first line of our kernels has the soft
    ones in the same form. Also the cores that may be used, privileges, and the process's priority.
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
    """Return what decides who gets a core that several want (sched(7)).

    That is nice value and policy of the process, and the nice value of its autogroup: where there
    is one, the process's own nice value has no effect outside the group.
    """
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
