"""The programs of the OSU Micro-Benchmarks that are read, by families.

Titles as the sources of 5.3 to 7.5 have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Family = Literal["between two", "pairs", "collective", "non-blocking", "one-sided"]


class Program(NamedTuple):
    """A program: `title` is what its first line has between "OSU MPI" and "Test".

    `ranks` is the number with which alone it starts, None for any; `column` holds the metric;
    `does` says what is measured.
    """

    title: str
    metric: str
    ranks: int | None
    column: str
    family: Family
    does: str


_BETWEEN_TWO = {
    "latency": ("Latency", "half the round trip of a message, mean over iterations"),
    "bw": ("Bandwidth", "windows of 64 messages from rank 0 to rank 1"),
    "bibw": (
        "Bi-Directional Bandwidth",
        "windows of 64 messages in both directions at once, summed",
    ),
    "latency_persistent": ("Latency Persistent", "as osu_latency, with requests that are kept"),
    "bw_persistent": ("Bandwidth Persistent", "as osu_bw, with requests that are kept"),
    "bibw_persistent": (
        "Bi-Directional Bandwidth Persistent",
        "as osu_bibw, with requests that are kept",
    ),
    "latency_mt": ("Multi-threaded Latency", "as osu_latency, with several threads that receive"),
    "latency_mp": ("Multi-process Latency", "as osu_latency, with processes that each rank forks"),
}
_ONE_SIDED = {
    "put_latency": ("_Put Latency", "MPI_Put and its synchronisation, mean over iterations"),
    "get_latency": ("_Get Latency", "MPI_Get and its synchronisation, mean over iterations"),
    "put_bw": ("_Put Bandwidth", "windows of 64 MPI_Put"),
    "get_bw": ("_Get Bandwidth", "windows of 64 MPI_Get"),
    "put_bibw": (
        "_Put Bi-directional Bandwidth",
        "windows of MPI_Put in both directions, summed",
    ),
    "acc_latency": ("_Accumulate latency", "MPI_Accumulate and its synchronisation"),
    "get_acc_latency": ("_Get_accumulate latency", "MPI_Get_accumulate and its synchronisation"),
    "cas_latency": ("_Compare_and_swap latency", "MPI_Compare_and_swap and its synchronisation"),
    "fop_latency": ("_Fetch_and_op latency", "MPI_Fetch_and_op and its synchronisation"),
}
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
"""Title, and what is measured, of the programs of collective operations by their names."""


def _two(family: Family, programs: Mapping[str, tuple[str, str]]) -> dict[str, Program]:
    """Return the programs of a family between two ranks; title and what is measured by name."""
    return {
        f"osu_{name}": Program(
            title, "latency" if "latency" in name else "bandwidth", 2, "value", family, does
        )
        for name, (title, does) in programs.items()
    }


def _collective(title: str, does: str, family: Family = "collective") -> Program:
    return Program(f"{title} Latency", "time", None, "value", family, does)


PROGRAMS: Mapping[str, Program] = {
    **_two("between two", _BETWEEN_TWO),
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
    **_two("one-sided", _ONE_SIDED),
}

NOT_RUN = ("osu_neighbor_alltoallw",)
"""Programs of which no output of a real run was seen under their own title: up to 7.4 this one has
that of osu_alltoallw.
"""

_DEVICES = ("", "-CUDA", "-OPENACC", "-ROCM", "-MANAGED", "-CUDA MANAGED", "-CXL")


def marks_of(title: str) -> tuple[str, ...]:
    """Return how first lines begin: "# OSU MPI Latency ", "# OSU MPI-CUDA Latency ", ..."""
    longer = any(one.title.startswith(f"{title} ") for one in PROGRAMS.values())
    ends = ("Test v", "v") if longer else ("",)
    own, _, rest = title.partition(" ") if title.startswith("_") else ("", "", title)
    words = [rest, rest[0].lower() + rest[1:]]
    if rest.startswith("Non-blocking"):  # also "Non-Blocking", by program and version
        words, ends = [rest, rest.replace("-b", "-B", 1)], ("",)
    if "Neighborhood All-to-All" in title:  # up to 7.4 "Alltoall"
        words += [word.replace("All-to-All", "Alltoall") for word in words]
    return tuple(
        f"# OSU MPI{own}{device} {word} {end}"
        for device in _DEVICES
        for word in dict.fromkeys(words)
        for end in ends
    )
