"""What kernels do to MPI before and in their loops, as seen between them and the library."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from mpis import any_mpi
from native import program_of, started

SEEN = r"""
#include <mpi.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>

static std::string seen;

static double now_ms() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

static void note(const char* name, double begin) {
    char line[160];
    std::snprintf(line, sizeof line, "%s %.6f %.6f\n", name, begin, now_ms());
    seen += line;
}

#define SEEN(name, takes, gives)   \
    extern "C" int name takes {    \
        const double at = now_ms();    \
        const int code = P##name gives; \
        note(#name, at);               \
        return code;                   \
    }

SEEN(MPI_Bcast, (void* b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
SEEN(MPI_Allreduce, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),
     (a, b, n, t, o, c))
SEEN(MPI_Barrier, (MPI_Comm c), (c))
SEEN(MPI_Wait, (MPI_Request * r, MPI_Status* s), (r, s))
SEEN(MPI_Test, (MPI_Request * r, int* f, MPI_Status* s), (r, f, s))

extern "C" int MPI_Alltoall(const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u,
                            MPI_Comm c) {
    char name[80];
    std::snprintf(name, sizeof name, "MPI_Alltoall:%d:%p:%p", n, a, b);
    note(name, now_ms());
    return PMPI_Alltoall(a, n, t, b, m, u, c);
}

extern "C" int MPI_Finalize() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::FILE* file = std::fopen((std::getenv("SEEN") + std::to_string(rank)).c_str(), "w");
    std::fputs(seen.c_str(), file);
    std::fclose(file);
    return PMPI_Finalize();
}
"""


class Call(NamedTuple):
    name: str
    begin_ms: float
    end_ms: float


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seen")
    (folder / "seen.cpp").write_text(SEEN)
    made = folder / "seen.so"
    build = [any_mpi().mpicxx, "-shared", "-fPIC", str(folder / "seen.cpp"), "-o", str(made)]
    subprocess.run(build, check=True)
    return made


@pytest.fixture(scope="module")
def calls(library: Path) -> list[list[Call]]:
    """Return the calls of each rank of an `allreduce` of three samples of 100, in their order."""
    few = ("--bytes", "8", "--samples", "3", "--iterations", "100", "--warmup", "10")
    return calls_of(library, "allreduce", *few)


def calls_of(library: Path, kernel: str, *arguments: str) -> list[list[Call]]:
    """Return the calls of each of two ranks of a kernel, in their order."""
    folder = library.parent
    env = (f"LD_PRELOAD={library}", f"SEEN={folder}/rank")
    ended = started(Path("/usr/bin/env"), *env, str(program_of(kernel)), *arguments, ranks=2)
    assert ended.returncode == 0, ended.stderr

    def read(path: Path) -> list[Call]:
        words = (line.split() for line in path.read_text().splitlines())
        return [Call(name, float(begin), float(end)) for name, begin, end in words]

    return [read(folder / f"rank{rank}") for rank in range(2)]


def test_no_broadcast_comes_before_the_loops(calls: Sequence[Sequence[Call]]) -> None:
    """One makes every later MPI_Allreduce of 8 B slower, in Open MPI 5 (docs/fidelity.md)."""
    for rank in calls:
        names = [call.name for call in rank]
        assert names.count("MPI_Allreduce") > 3 * 100
        before = names[: names.index("MPI_Bcast")] if "MPI_Bcast" in names else names
        assert before.count("MPI_Allreduce") > 3 * 100


def test_ranks_compute_for_5_ms_between_the_state_probe_and_the_loops(
    calls: Sequence[Sequence[Call]],
) -> None:
    for rank in calls:
        last, barrier = next(pair for pair in pairwise(rank) if pair[1].name == "MPI_Barrier")
        assert last.name in ("MPI_Wait", "MPI_Test")  # rank 0 has ended its probe
        assert barrier.begin_ms - last.end_ms >= 5
        loops = [
            call for call in rank if call.name == "MPI_Allreduce" and call.begin_ms > barrier.end_ms
        ]
        assert len(loops) > 3 * 100


def test_buffers_stay_where_they_are_as_those_of_osu(library: Path) -> None:
    """Buffers of its own for each size made allreduce at 64 KiB slower (docs/fidelity.md)."""
    few = ("--like", "osu", "--bytes", "8:1048576", "--iterations", "2")
    for rank in calls_of(library, "alltoall", *few):
        loops = [call.name.split(":") for call in rank if call.name.startswith("MPI_Alltoall")]
        assert len({size for _, size, _, _ in loops}) == 18
        assert len({(out, into) for _, _, out, into in loops}) == 1
