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


def _one_sided(title: str, metric: str, does: str) -> Program:
    return Program(f"_{title}", metric, 2, "value", "one-sided", does)


_OPERATIONS = {
    "bcast": ("Broadcast", "a message from rank 0 to all"),
    "allgather": ("Allgather", "every rank's message to every rank"),
    "allgatherv": ("Allgatherv", "as osu_allgather, with counts"),
    "allreduce": ("Allreduce", "the sum of a vector at every rank"),
    "alltoall": ("All-to-All Personalized Exchange", "a message from each rank to each rank"),
    "alltoallv": ("All-to-Allv Personalized Exchange", "as osu_alltoall, with counts"),
    "alltoallw": ("All-to-Allw Personalized Exchange", "as osu_alltoall, with counts and types"),
    "barrier": ("Barrier", "a barrier"),
    "gather": ("Gather", "every rank's message to rank 0"),
    "gatherv": ("Gatherv", "as osu_gather, with counts"),
    "reduce": ("Reduce", "the sum of a vector at rank 0"),
    "reduce_scatter": ("Reduce_scatter", "a part of the sum of a vector at every rank"),
    "reduce_scatter_block": (
        "Reduce_scatter_block",
        "an equal part of the sum of a vector at every rank",
    ),
    "scatter": ("Scatter", "a message of its own to every rank"),
    "scatterv": ("Scatterv", "as osu_scatter, with counts"),
}
_NEIGHBOURS = {
    "neighbor_allgather": ("Neighborhood Allgather", "a message to each neighbour"),
    "neighbor_allgatherv": (
        "Neighborhood Allgatherv",
        "as osu_neighbor_allgather, with counts",
    ),
    "neighbor_alltoall": ("Neighborhood All-to-All", "a message of its own to each neighbour"),
    "neighbor_alltoallv": (
        "Neighborhood All-to-Allv",
        "as osu_neighbor_alltoall, with counts",
    ),
    "neighbor_alltoallw": (
        "Neighborhood All-to-Allw",
        "as osu_neighbor_alltoall, with counts and types",
    ),
}
_COLLECTIVES = {**_OPERATIONS, **_NEIGHBOURS}
"""By the names of programs of collective operations what their titles say, and what they do."""


def _collective(title: str, does: str, family: Family = "collective") -> Program:
    return Program(f"{title} Latency", "time", None, "value", family, does)


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
    "osu_mbw_mr": Program(
        "Multiple Bandwidth / Message Rate",
        *("message_rate", None, "Messages/s", "pairs"),
        "messages per second of all pairs of ranks at once, summed",
    ),
    "osu_multi_lat": Program(
        "Multi Latency",
        *("latency", None, "value", "pairs"),
        "half the round trip of a message, mean over pairs of ranks that work at once",
    ),
    **{
        f"osu_{name}": _collective(title, f"{does}, mean over ranks and iterations")
        for name, (title, does) in _COLLECTIVES.items()
    },
    **{
        f"osu_{name}_persistent": _collective(
            f"{_OPERATIONS[name][0]} Persistent", f"as osu_{name}, the request kept"
        )
        for name in sorted(_OPERATIONS.keys() - {"reduce_scatter_block"})
    },
    **{
        f"osu_i{name}": _collective(
            "Non-blocking " + ("All-to-All" if name == "alltoall" else _COLLECTIVES[name][0]),
            f"MPI_I{name} while a rank computes as long as it takes alone",
            "non-blocking",
        )
        for name in (*sorted(_OPERATIONS), *_NEIGHBOURS)
    },
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
