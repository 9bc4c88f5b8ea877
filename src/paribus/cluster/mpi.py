"""Checks of the MPI of each node: that there is one, the same on all, with a compiler.

Also the variables that keep an MPI to a range of TCP ports.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paribus.cluster.answers import Answer
from paribus.cluster.checks import Finding, Grade, differing
from paribus.core import MPI_NAMES, Family
from paribus.launch.toolchain import GET_ONE, read_version

_INSTALL = (
    "install one MPI with its compilers on every node: openmpi-bin libopenmpi-dev or mpich"
    " (Debian, Ubuntu), openmpi-devel (Fedora, RHEL); or name where it is: --mpi /opt/openmpi"
)


def version_of(answer: Answer) -> tuple[Family, str] | None:
    """Return family and version of the MPI in a node's PATH, None for none that is known."""
    found = read_version("\n".join(answer.all("mpi.said")))
    return None if found is None else (found[0], ".".join(map(str, found[1])))


def named(answer: Answer) -> str:
    """Return the MPI of a node as "Open MPI 4.1.4", "none" or "unknown"."""
    known = version_of(answer)
    if known:
        return f"{MPI_NAMES[known[0]]} {known[1]}"
    return "unknown" if answer.one("mpi.launcher") else "none"


def same_mpi(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for nodes without MPI, of another family, version or build."""
    without = [one for one in answers if version_of(one) is None]
    having = [one for one in answers if version_of(one) is not None]
    found = []
    if without:
        launcher = next(filter(None, (one.one("mpi.launcher") for one in without)), "")
        prefix = without[0].one("mpi.prefix")
        cause = f"no MPI in {prefix}/bin" if prefix else "no MPI on the PATH of a shell by ssh"
        fix = _INSTALL
        if not prefix and (places := without[0].one("mpi.places")):
            cause, fix = f"no MPI on the PATH, nor in {places}", GET_ONE
        if launcher:
            cause = f"{launcher} is of no MPI that Paribus knows"
        names = tuple(one.name for one in without)
        found.append(Finding("mpi", "broken", cause, names, fix))
    if not having:
        return found
    fix = "install the same MPI on all nodes, or name where it is: --mpi /opt/openmpi"
    if families := differing("mpi", "MPI", having, named, "broken", fix):
        return found + families
    found += differing(
        "mpi",
        "build of libmpi",
        having,
        lambda one: one.one("mpi.build")[:12],
        "warning",
        "install the same package on all nodes: builds of one version may differ in transports",
    )
    found += differing(
        "mpi",
        "place of the launcher",
        having,
        lambda one: one.one("mpi.launcher"),
        "warning",
        "install it in the same directory on all nodes: mpirun looks there for its daemons",
    )
    build = having[0].one("mpi.build")[:12]
    same = f"{named(having[0])}{f', build {build}' if build else ''} on all"
    return found or [Finding("mpi", "ok", same)]


def compilers(answers: Sequence[Answer]) -> list[Finding]:
    """Return findings for nodes on which the benchmarks' kernels cannot be compiled."""
    bare = [one for one in answers if not one.one("compiler")]
    unwrapped = [one for one in answers if one.one("compiler") and not one.one("mpi.compiler")]
    kinds = {(one.one("arch"), one.one("libc")) for one in answers}
    able = {
        (one.one("arch"), one.one("libc"))
        for one in answers
        if one.one("compiler") and one.one("mpi.compiler")
    }
    found = []
    for nodes, cause in (
        (bare, "no C++ compiler (c++, g++, clang++)"),
        (unwrapped, "a C++ compiler, but no mpicxx"),
    ):
        if nodes:
            names = tuple(one.name for one in nodes)
            helped = kinds <= able
            end = "; other nodes like it have one" if helped else ""
            fix = "install g++ and the development package of the MPI, at least on one node"
            grade: Grade = "warning" if helped else "broken"
            found.append(Finding("compiler", grade, cause + end, names, fix))
    return found or [Finding("compiler", "ok", "each node can compile")]


def port_variables(family: Family | None, first: int, last: int) -> dict[str, str]:
    """Return the variables that keep an MPI to the TCP ports `first` to `last`.

    Open MPI: ompi_info --all (btl tcp, oob tcp); PRRTE takes oob's with its own prefix. MPICH:
    hydra's and nemesis' range, UCX's, and that of libfabric, which TCP takes (fi_tcp(7)). Intel
    MPI: Developer Reference, "Hydra Environment Variables". Open MPI needs two ranges, one for
    ranks and one for daemons.
    """
    middle = (first + last) // 2
    if family == "openmpi":
        oob = f"{middle + 1}-{last}"
        return {
            "OMPI_MCA_btl_tcp_port_min_v4": str(first),
            "OMPI_MCA_btl_tcp_port_range_v4": str(middle - first + 1),
            "OMPI_MCA_oob_tcp_dynamic_ipv4_ports": oob,
            "PRTE_MCA_oob_tcp_dynamic_ipv4_ports": oob,
        }
    if family == "intelmpi":
        return {"I_MPI_PORT_RANGE": f"{first}:{last}"}
    return {
        "MPIEXEC_PORT_RANGE": f"{first}:{last}",
        "MPIR_CVAR_CH3_PORT_RANGE": f"{first}:{last}",
        "UCX_TCP_PORT_RANGE": f"{first}-{last}",
        "FI_TCP_PORT_LOW_RANGE": str(first),
        "FI_TCP_PORT_HIGH_RANGE": str(last),
    }


def ports_by_default(family: Family | None, answer: Answer) -> str:
    """Return a text on the ports that an MPI takes by default."""
    ephemeral = re.sub(r"\s+", "-", answer.one("sysctl.net.ipv4.ip_local_port_range"))
    if family == "openmpi":
        return f"1024 and up (ranks) and {ephemeral or 'ephemeral ones'} (daemons)"
    return ephemeral or "ephemeral ones"
