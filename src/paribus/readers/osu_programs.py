"""The programs of the OSU Micro-Benchmarks that are read, by families.

Titles as the sources of 5.3 to 7.5 have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Family = Literal["between two", "pairs", "collective", "non-blocking", "one-sided"]


class Program(NamedTuple):
    """A program: `title` is what its first line says between "OSU MPI" and "Test".

    `ranks` are those without which it refuses to start; `column` is the one that holds the metric.
    """

    title: str
    metric: str
    ranks: int | None
    column: str
    family: Family
    does: str


def _two(title: str, metric: str, does: str) -> Program:
    return Program(title, metric, 2, "value", "between two", does)


def _pairs(title: str, metric: str, does: str, column: str = "value") -> Program:
    return Program(title, metric, None, column, "pairs", does)


def _collective(title: str, does: str) -> Program:
    return Program(f"{title} Latency", "time", None, "value", "collective", does)


def _at_once(title: str, does: str) -> Program:
    named = f"Non-blocking {title} Latency"
    return Program(named, "time", None, "value", "non-blocking", does)


def _one_sided(title: str, metric: str, does: str) -> Program:
    return Program(f"_{title}", metric, 2, "value", "one-sided", does)


def _again(title: str, does: str) -> Program:
    named = f"{title} Persistent Latency"
    return Program(named, "time", None, "value", "collective", f"as {does}, the request kept")


_MEAN = "mean over ranks and iterations"
_BESIDE = "while a rank computes as long as it takes alone"

PROGRAMS: Mapping[str, Program] = {
    "osu_latency": _two(
        "Latency", "latency", "half the round trip of a message, mean over iterations"
    ),
    "osu_bw": _two("Bandwidth", "bandwidth", "windows of 64 messages from rank 0 to rank 1"),
    "osu_bibw": _two(
        "Bi-Directional Bandwidth",
        "bandwidth",
        "windows of 64 messages in both directions at once, summed",
    ),
    "osu_latency_persistent": _two(
        "Latency Persistent", "latency", "as osu_latency, with requests that are kept"
    ),
    "osu_bw_persistent": _two(
        "Bandwidth Persistent", "bandwidth", "as osu_bw, with requests that are kept"
    ),
    "osu_bibw_persistent": _two(
        "Bi-Directional Bandwidth Persistent",
        "bandwidth",
        "as osu_bibw, with requests that are kept",
    ),
    "osu_latency_mt": _two(
        "Multi-threaded Latency", "latency", "as osu_latency, with several threads that receive"
    ),
    "osu_latency_mp": _two(
        "Multi-process Latency", "latency", "as osu_latency, with processes that each rank forks"
    ),
    "osu_mbw_mr": _pairs(
        "Multiple Bandwidth / Message Rate",
        "message_rate",
        "messages per second of all pairs of ranks at once, summed",
        "Messages/s",
    ),
    "osu_multi_lat": _pairs(
        "Multi Latency",
        "latency",
        "half the round trip of a message, mean over pairs of ranks that work at once",
    ),
    "osu_bcast": _collective("Broadcast", f"a message from rank 0 to all, {_MEAN}"),
    "osu_allgather": _collective("Allgather", f"every rank's message to every rank, {_MEAN}"),
    "osu_allgatherv": _collective("Allgatherv", f"as osu_allgather, with counts, {_MEAN}"),
    "osu_allreduce": _collective("Allreduce", f"the sum of a vector at every rank, {_MEAN}"),
    "osu_alltoall": _collective(
        "All-to-All Personalized Exchange", f"a message from each rank to each rank, {_MEAN}"
    ),
    "osu_alltoallv": _collective(
        "All-to-Allv Personalized Exchange", f"as osu_alltoall, with counts, {_MEAN}"
    ),
    "osu_alltoallw": _collective(
        "All-to-Allw Personalized Exchange", f"as osu_alltoall, with counts and types, {_MEAN}"
    ),
    "osu_barrier": _collective("Barrier", f"a barrier, {_MEAN}"),
    "osu_gather": _collective("Gather", f"every rank's message to rank 0, {_MEAN}"),
    "osu_gatherv": _collective("Gatherv", f"as osu_gather, with counts, {_MEAN}"),
    "osu_reduce": _collective("Reduce", f"the sum of a vector at rank 0, {_MEAN}"),
    "osu_reduce_scatter": _collective(
        "Reduce_scatter", f"a part of the sum of a vector at every rank, {_MEAN}"
    ),
    "osu_reduce_scatter_block": _collective(
        "Reduce_scatter_block", f"an equal part of the sum of a vector at every rank, {_MEAN}"
    ),
    "osu_scatter": _collective("Scatter", f"a message of its own to every rank, {_MEAN}"),
    "osu_scatterv": _collective("Scatterv", f"as osu_scatter, with counts, {_MEAN}"),
    "osu_neighbor_allgather": _collective(
        "Neighborhood Allgather", f"a message to each neighbour, {_MEAN}"
    ),
    "osu_neighbor_allgatherv": _collective(
        "Neighborhood Allgatherv", f"as osu_neighbor_allgather, with counts, {_MEAN}"
    ),
    "osu_neighbor_alltoall": _collective(
        "Neighborhood All-to-All", f"a message of its own to each neighbour, {_MEAN}"
    ),
    "osu_neighbor_alltoallv": _collective(
        "Neighborhood All-to-Allv", f"as osu_neighbor_alltoall, with counts, {_MEAN}"
    ),
    "osu_neighbor_alltoallw": _collective(
        "Neighborhood All-to-Allw", f"as osu_neighbor_alltoall, with counts and types, {_MEAN}"
    ),
    "osu_allgather_persistent": _again("Allgather", "osu_allgather"),
    "osu_allgatherv_persistent": _again("Allgatherv", "osu_allgatherv"),
    "osu_allreduce_persistent": _again("Allreduce", "osu_allreduce"),
    "osu_alltoall_persistent": _again("All-to-All Personalized Exchange", "osu_alltoall"),
    "osu_alltoallv_persistent": _again("All-to-Allv Personalized Exchange", "osu_alltoallv"),
    "osu_alltoallw_persistent": _again("All-to-Allw Personalized Exchange", "osu_alltoallw"),
    "osu_barrier_persistent": _again("Barrier", "osu_barrier"),
    "osu_bcast_persistent": _again("Broadcast", "osu_bcast"),
    "osu_gather_persistent": _again("Gather", "osu_gather"),
    "osu_gatherv_persistent": _again("Gatherv", "osu_gatherv"),
    "osu_reduce_persistent": _again("Reduce", "osu_reduce"),
    "osu_reduce_scatter_persistent": _again("Reduce_scatter", "osu_reduce_scatter"),
    "osu_scatter_persistent": _again("Scatter", "osu_scatter"),
    "osu_scatterv_persistent": _again("Scatterv", "osu_scatterv"),
    "osu_iallgather": _at_once("Allgather", f"MPI_Iallgather {_BESIDE}"),
    "osu_iallgatherv": _at_once("Allgatherv", f"MPI_Iallgatherv {_BESIDE}"),
    "osu_iallreduce": _at_once("Allreduce", f"MPI_Iallreduce {_BESIDE}"),
    "osu_ialltoall": _at_once("All-to-All", f"MPI_Ialltoall {_BESIDE}"),
    "osu_ialltoallv": _at_once("All-to-Allv Personalized Exchange", f"MPI_Ialltoallv {_BESIDE}"),
    "osu_ialltoallw": _at_once("All-to-Allw Personalized Exchange", f"MPI_Ialltoallw {_BESIDE}"),
    "osu_ibarrier": _at_once("Barrier", f"MPI_Ibarrier {_BESIDE}"),
    "osu_ibcast": _at_once("Broadcast", f"MPI_Ibcast {_BESIDE}"),
    "osu_igather": _at_once("Gather", f"MPI_Igather {_BESIDE}"),
    "osu_igatherv": _at_once("Gatherv", f"MPI_Igatherv {_BESIDE}"),
    "osu_ireduce": _at_once("Reduce", f"MPI_Ireduce {_BESIDE}"),
    "osu_ireduce_scatter": _at_once("Reduce_scatter", f"MPI_Ireduce_scatter {_BESIDE}"),
    "osu_ireduce_scatter_block": _at_once(
        "Reduce_scatter_block", f"MPI_Ireduce_scatter_block {_BESIDE}"
    ),
    "osu_iscatter": _at_once("Scatter", f"MPI_Iscatter {_BESIDE}"),
    "osu_iscatterv": _at_once("Scatterv", f"MPI_Iscatterv {_BESIDE}"),
    "osu_ineighbor_allgather": _at_once(
        "Neighborhood Allgather", f"MPI_Ineighbor_allgather {_BESIDE}"
    ),
    "osu_ineighbor_allgatherv": _at_once(
        "Neighborhood Allgatherv", f"MPI_Ineighbor_allgatherv {_BESIDE}"
    ),
    "osu_ineighbor_alltoall": _at_once(
        "Neighborhood All-to-All", f"MPI_Ineighbor_alltoall {_BESIDE}"
    ),
    "osu_ineighbor_alltoallv": _at_once(
        "Neighborhood All-to-Allv", f"MPI_Ineighbor_alltoallv {_BESIDE}"
    ),
    "osu_ineighbor_alltoallw": _at_once(
        "Neighborhood All-to-Allw", f"MPI_Ineighbor_alltoallw {_BESIDE}"
    ),
    "osu_put_latency": _one_sided(
        "Put Latency", "latency", "MPI_Put and its synchronisation, mean over iterations"
    ),
    "osu_get_latency": _one_sided(
        "Get Latency", "latency", "MPI_Get and its synchronisation, mean over iterations"
    ),
    "osu_put_bw": _one_sided("Put Bandwidth", "bandwidth", "windows of 64 MPI_Put"),
    "osu_get_bw": _one_sided("Get Bandwidth", "bandwidth", "windows of 64 MPI_Get"),
    "osu_put_bibw": _one_sided(
        "Put Bi-directional Bandwidth", "bandwidth", "windows of MPI_Put in both directions, summed"
    ),
    "osu_acc_latency": _one_sided(
        "Accumulate latency", "latency", "MPI_Accumulate and its synchronisation"
    ),
    "osu_get_acc_latency": _one_sided(
        "Get_accumulate latency", "latency", "MPI_Get_accumulate and its synchronisation"
    ),
    "osu_cas_latency": _one_sided(
        "Compare_and_swap latency", "latency", "MPI_Compare_and_swap and its synchronisation"
    ),
    "osu_fop_latency": _one_sided(
        "Fetch_and_op latency", "latency", "MPI_Fetch_and_op and its synchronisation"
    ),
}

NOT_RUN = ("osu_neighbor_alltoallw",)
"""Programs of which no output of a real run was seen under their own title: up to 7.4 this one has
that of osu_alltoallw.
"""

_NON_BLOCKING = "Non-blocking"


def marks_of(title: str) -> tuple[str, ...]:
    """Return how a first line begins: "MPI Latency", "MPI-CUDA Latency", "MPI_Get latency"."""
    if "Neighborhood All-to-All" in title:  # up to 7.4 "Alltoall"
        older = title.replace("All-to-All", "Alltoall")
        return (*_with_devices(title), *_with_devices(older))
    return _with_devices(title)


def _with_devices(title: str) -> tuple[str, ...]:
    """Return how a first line begins, by the device that it may name."""
    if title.startswith(_NON_BLOCKING):  # also "Non-Blocking", by program and version
        devices = ("", "-CUDA", "-OPENACC", "-ROCM", "-MANAGED")
        rest = title.removeprefix(_NON_BLOCKING)
        return tuple(f"# OSU MPI{d} Non-{b}locking{rest} " for d in devices for b in "bB")
    own, _, rest = title.partition(" ") if title.startswith("_") else ("", "", title)
    devices = ("", "-CUDA", "-OPENACC", "-ROCM", "-MANAGED")
    words = dict.fromkeys((rest, rest[0].lower() + rest[1:]))
    longer = any(one.title.startswith(f"{title} ") for one in PROGRAMS.values())
    ends = ("Test v", "v") if longer else ("",)
    return tuple(
        f"# OSU MPI{own}{device} {word} {end}"
        for device in devices
        for word in words
        for end in ends
    )
