"""The files with which a user's own mpirun finds the nodes: hostfiles and ssh's configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def hostfiles(slots: Mapping[str, int]) -> dict[str, str]:
    """Return hostfiles in every dialect; `slots` holds how many ranks each node takes.

    Open MPI: mpirun(1), "Host file"; MPICH: hydra's `HOST:N`; Intel MPI takes the same with
    -machinefile; plain has a name for each slot, as older launchers and `-hostfile` of many tools
    read it.
    """
    return {
        "hostfile.openmpi": "".join(f"{name} slots={n}\n" for name, n in slots.items()),
        "hostfile.mpich": "".join(f"{name}:{n}\n" for name, n in slots.items()),
        "hostfile.intel": "".join(f"{name}:{n}\n" for name, n in slots.items()),
        "hostfile.plain": "".join(f"{name}\n" * n for name, n in slots.items()),
    }


def ssh_config(nodes: Sequence[tuple[str, str, int, str]], folder: str) -> str:
    """Return the ssh_config(5) of the nodes among themselves, with the keys in `folder`.

    `nodes` holds name, address, port of sshd and user of each.
    """
    lines = []
    for name, address, port, user in nodes:
        lines += [f"Host {name}", f"    HostName {address}", f"    HostKeyAlias {name}"]
        lines += [f"    Port {port}", f"    User {user}"]
    lines += [
        "Host *",
        f"    IdentityFile {folder}/id_ed25519",
        "    IdentitiesOnly yes",
        f"    UserKnownHostsFile {folder}/known_hosts",
        "    StrictHostKeyChecking yes",
        "    BatchMode yes",
        "    ConnectTimeout 10",
        "    LogLevel ERROR",
    ]
    return "".join(f"{line}\n" for line in lines)


AGENT = """\
#!/bin/sh
# ssh between the nodes of this cluster. Open MPI 4: mpirun --mca plm_rsh_agent THIS; Open MPI 5:
# prterun --prtemca plm_ssh_agent THIS; MPICH, Intel MPI: mpiexec -launcher ssh -launcher-exec THIS
exec ssh -F "${0%/*}/ssh_config" "$@"
"""
