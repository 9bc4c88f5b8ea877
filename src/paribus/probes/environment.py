"""Environment variables: values of those that are allowed, of all others one hash of the names."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from paribus.probes.archive import ALLOWED, SECRET, Archive, Unknown

# What a launcher or scheduler sets anew for every launch: it tells launches apart, not arms.
_OF_A_LAUNCH = re.compile(
    r"OMPI_(?!MCA_|ALLOW_)"
    r"|OMPI_MCA_(orte_|ess|pmix|initial_wdir|num_procs$|cpu_type$|PREFIXES$|shmem_RUNTIME_|"
    r"mpi_oversubscribe$)"
    r"|PMIX_(?!MCA_)|PMIX_MCA_mca_base_component_show_load_errors|PRTE_(?!MCA_)|HFI_NO_BACKTRACE"
    r"|HYDRA_|I_MPI_(INFO_|HYDRA_(HOST|UUID|SHARED))"
    r"|SLURM_(JOB|JOBID|STEP|TASK|PROCID|LOCALID|NODEID|GTIDS|SRUN|LAUNCH|TOPOLOGY|SUBMIT|NODELIST"
    r"|CLUSTER|CONF|PRIO|UMASK|WORKING|NNODES|NPROCS|NTASKS|CPU_BIND|CPUS_ON|MPI_TYPE|DISTRIBUTION)"
)
_SECRET_NAME = re.compile(SECRET)
_SECRET_VALUE = re.compile(
    r"://[^/@\s]+:[^/@\s]+@|eyJ[A-Za-z0-9_-]{8,}\.|AKIA[A-Z0-9]{12}|gh[pousr]_[A-Za-z0-9]{20}"
    r"|-----BEGIN"
)
# Those that the shell, the probes or the terminal set by themselves.
_OWN = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "LINES", "COLUMNS", "TERM", "PARIBUS_SEED"))


def environment_facts(archive: Archive, salt: str = "") -> dict[str, Any]:
    """Return allowed variables under env., those of this launch alone under job.env.

    `env.others` is a hash, with `salt`, of the names of all others; their values are never read. A
    value that looks like a secret is unknown.
    """
    if "environment" not in archive.lists:
        return {"env.others": Unknown.ABSENT}
    facts: dict[str, Any] = {}
    others = set()
    for line in archive.lists["environment"]:
        name, _, value = line.partition("=")
        if not name.startswith(ALLOWED):
            if name and name not in _OWN:
                others.add(name)
            continue
        group = "job.env." if _OF_A_LAUNCH.match(name) else "env."
        hidden = _SECRET_NAME.search(name) or _SECRET_VALUE.search(value)
        facts[group + name] = Unknown.REDACTED if hidden else value.replace("\x1f", "\n")
    text = "\0".join([salt, *sorted(others)])
    facts["env.others"] = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]
    return facts
