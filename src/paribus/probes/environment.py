"""Environment variables: values of settings, by a list of names; of all others the names."""

from __future__ import annotations

import re
from typing import Any

from paribus.probes.archive import Archive, Unknown
from paribus.probes.variables import of_session, prefixes, reported

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
_LENT = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
"""Where one of these is, Slurm has lent GPUs and says which by variables of its own choice."""

_OF_LENT = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

_OURS = "PARIBUS_"

UNLISTED = "env.unlisted"
"""The fact of names alone."""

HASHED = "env.others"
"""What older versions gathered instead: a hash of the names, those of login sessions included."""


def environment_facts(archive: Archive) -> dict[str, Any]:
    """Return variables under env., those of this launch alone under job.env.

    UNLISTED are the names, sorted, that do not begin as settings do and are not those of a login
    session; their values are never read. A setting whose value may be secret is unknown.
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
