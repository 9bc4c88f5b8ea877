"""Open MPI 4 and 5: mpirun's argv.

Version 5 starts its processes with PRRTE, so settings of its daemons are --prtemca there; version
4 takes them as --mca. Shared-memory segments lie in /dev/shm whatever TMPDIR says, and outlive an
mpirun that is killed: they go below /dev/shm to a directory named as scratch is, which the host
makes and removes. Session directories follow TMPDIR.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from paribus.core import Command, Mpi, Placement, Transport

# Both are needed, in both versions; their PRTE_ forms have no effect. Nor have these but for root.
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# Prefixes of variables that mpirun itself sends to daemons and ranks.
_FORWARDED = ("OMPI_", "PMIX_", "PRTE_")

_WITH_DIRECTORY = 'mkdir -p "$1" || exit 2; shift; exec "$@"'


def launch(
    program: Command, ranks: int, mpi: Mpi, placement: Placement, transport: Transport, scratch: str
) -> Command:
    """Return the mpirun command line; see launchers.launch."""
    order = "node" if placement.in_turn else "slot"
    argv = [mpi.mpirun, "-n", str(ranks), "--map-by", f"{order}:OVERSUBSCRIBE", "--bind-to", "none"]
    if placement.hosts:
        argv += ["-H", ",".join(f"{name}:{count}" for name, count in placement.hosts)]
    daemon = _daemon(mpi, placement)
    settings = _settings(mpi, placement, transport, scratch)
    daemon_option = "--prtemca" if mpi.version[0] >= 5 else "--mca"
    for option, values in ((daemon_option, daemon), ("--mca", settings)):
        for key, value in values.items():
            # On the command line it would replace what the arm's own variables say.
            if {f"OMPI_MCA_{key}", f"PRTE_MCA_{key}"}.isdisjoint(program.env):
                argv += [option, key, value]
    env = {**mpi.env, **program.env}
    for key in env if placement.hosts else ():
        if not key.startswith(_FORWARDED):
            argv += ["-x", key]
    if placement.hosts and transport != "tcp":
        # The host makes the directory on this machine; a container has a /dev/shm of its own.
        argv += ["/bin/sh", "-c", _WITH_DIRECTORY, "paribus-segments", _segments(scratch)]
    return Command((*argv, *program.argv), {**env, **ROOT}, program.files)


def direct(
    program: Command, mpi: Mpi, placement: Placement, transport: Transport, scratch: str
) -> Command:
    """Return `program` with the variables that its library needs where srun starts it."""
    settings = _settings(mpi, placement, transport, scratch)
    variables = {f"OMPI_MCA_{key}": value for key, value in settings.items()}
    return replace(program, env={**variables, **mpi.env, **program.env})


def _settings(mpi: Mpi, placement: Placement, transport: Transport, scratch: str) -> dict[str, str]:
    settings = _library(mpi, placement, transport)
    settings[_segment_setting(mpi)] = _segments(scratch)
    # By default Open MPI decides by slots of hosts: waiting ranks would yield their core in one
    # arm and keep it in another, only because of the number of hosts that containers stand for.
    settings["mpi_yield_when_idle"] = "1" if placement.crowded else "0"
    return settings


def _segments(scratch: str) -> str:
    where = PurePosixPath(scratch)
    return f"/dev/shm/{where.parent.name}/{where.name}"


def _daemon(mpi: Mpi, placement: Placement) -> dict[str, str]:
    """Return the settings of mpirun and its daemons: their network, and how they start."""
    five = mpi.version[0] >= 5
    # The launch agent resolves names. Without this setting, a name server that does not answer
    # delays every launch by seconds.
    settings = {"prte_do_not_resolve" if five else "if_base_do_not_resolve": "1"}
    if placement.hosts:
        # The agent needs names as they are: two hosts may differ after the first dot only.
        settings["prte_keep_fqdn_hostnames" if five else "orte_keep_fqdn_hostnames"] = "1"
    if placement.agent:
        settings["plm_ssh_agent" if five else "plm_rsh_agent"] = placement.agent
    if placement.network:
        settings["prte_if_include" if five else "oob_tcp_if_include"] = placement.network
    return settings


def _library(mpi: Mpi, placement: Placement, transport: Transport) -> dict[str, str]:
    """Return the settings of the library that make it use `transport` and nothing else."""
    network = placement.network or ("" if placement.hosts else "lo")
    shared = "sm" if mpi.version[0] >= 5 else "vader"
    settings = {
        "auto": {},
        "shm": {"pml": "ob1", "btl": f"{shared},self"},
        "tcp": {"pml": "ob1", "btl": "tcp,self"},
    }[transport]
    include = network if transport == "tcp" else placement.network
    return {**settings, **({"btl_tcp_if_include": include} if include else {})}


def _segment_setting(mpi: Mpi) -> str:
    return "btl_sm_backing_directory" if mpi.version[0] >= 5 else "btl_vader_backing_directory"
