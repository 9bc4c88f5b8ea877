"""The parts of IMB-MPI1, IMB-NBC and IMB-RMA that are read, by program, with their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Part(NamedTuple):
    """A part of a program: its name there, and its metrics.

    `two`: it is between two ranks only. `modes`: it has a table for each of MODES. `sized`: it has
    a row for each size of a message.
    """

    name: str
    program: str
    metrics: tuple[str, ...]
    two: bool = False
    modes: bool = False
    sized: bool = True


TITLES = {"IMB-MPI1": "MPI-1", "IMB-NBC": "MPI-NBC", "IMB-RMA": "MPI-RMA"}
"""What the title of each program says before "part"."""

MODES = ("non-aggregate", "aggregate")
"""Whether an operation is completed before the next, or all of a row together."""

_TIMES = ("time", "time_max")
_BESIDE = ("time", "pure_time")
_COLLECTIVES = (
    *("Bcast", "Allgather", "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv"),
    *("Alltoall", "Alltoallv", "Reduce", "Reduce_scatter", "Allreduce", "Barrier"),
)

_PARTS = (
    *(
        Part(f"{part}{source}", "IMB-MPI1", ("latency",), two=True)
        for part in ("PingPong", "PingPing")
        for source in ("", "SpecificSource", "AnySource")
    ),
    *(Part(part, "IMB-MPI1", ("bandwidth",)) for part in ("Uniband", "Biband")),
    *(
        Part(part, "IMB-MPI1", _TIMES, sized=part != "Barrier")
        for part in ("Sendrecv", "Exchange", *_COLLECTIVES, "Reduce_scatter_block", "Reduce_local")
    ),
    *(
        Part(f"I{part.lower()}", "IMB-NBC", _BESIDE, sized=part != "Barrier")
        for part in _COLLECTIVES
    ),
    *(
        Part(f"I{part.lower()}_pure", "IMB-NBC", _TIMES, sized=part != "Barrier")
        for part in _COLLECTIVES
    ),
    *(
        Part(part, "IMB-RMA", ("time",), two=True, modes=True)
        for part in (
            *("Unidir_put", "Unidir_get", "Bidir_put", "Bidir_get", "Put_local", "Get_local"),
            *("Accumulate", "Get_accumulate"),
        )
    ),
    *(
        Part(part, "IMB-RMA", ("time",), two=True, modes=True, sized=False)
        for part in ("Fetch_and_op", "Compare_and_swap")
    ),
    *(
        Part(part, "IMB-RMA", ("time",))
        for part in ("One_put_all", "One_get_all", "Put_all_local", "Get_all_local")
    ),
    *(
        Part(part, "IMB-RMA", _TIMES)
        for part in ("All_put_all", "All_get_all", "Exchange_put", "Exchange_get")
    ),
    Part("Truly_passive_put", "IMB-RMA", _BESIDE, two=True),
)

PARTS: Mapping[str, Part] = {f"imb_{part.name.lower()}": part for part in _PARTS}
"""Each part by the name of its benchmark."""
