"""Records tests/fixtures/<kernel>/good-*.out by really launching every native kernel.

    python tests/record_fixtures.py [MPI]

Needed after a change of what the kernels print. Host names become node0, node1, ...; the request
stands beside the output, for the reader checks one against the other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from paribus.benchmarks import BENCHMARKS
from paribus.core import Command, Placement, Request, Slot
from paribus.launch.launchers import bind, launch
from paribus.launch.loaded import loaded_path
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.profile.calls import compressed

SUMS = (
    """\
paribus-calls 1 2 1
2 0 1
1 10
allreduce 0 0 -1 8
"""
    + "0 20000\n" * 10
)
SUMS += SUMS[SUMS.index("1 10") :]
"""A skeleton: ten sums of two ranks, every 20 us."""

FIXTURES = Path(__file__).parent / "fixtures"
SMALL: dict[str, Any] = {"bytes": [8, 65536], "samples": 4}
WANTED: dict[str, list[dict[str, Any]]] = {
    "latency": [{}, {"like": "osu", "iterations": 50}, {"delay_us": 5.0}],
    "allreduce": [{}, {"like": "imb", "iterations": 50}],
    "pairs": [{"ranks": 3}],
    "many_to_one": [
        {"ranks": 5, "connections": [1, 2], "bytes": [64, 65536]},
        {"ranks": 5, "connections": [4], "bytes": [4096], "over": "sockets", "senders": 1},
    ],
    "alltoallv": [{"ranks": 3}],
    "halo": [{"ranks": 4, "dims": 3}],
    "overlap": [{}, {"ranks": 3, "collective": "alltoall", "bytes": [4096]}],
    "triad": [{"bytes": [1 << 20]}],
    "memory_bandwidth": [{}, {"bytes": None, "ranks": 1, "samples": 3}],
    "random_access": [{"table": 1 << 16}],
    "roofline": [{"array": 1 << 20}],
    "conjugate_gradient": [{"nx": 16, "ny": 16, "nz": 24, "seconds": 1, "sets": 2}],
    "loader": [{"count": 3, "functions": 2}, {"count": 3, "functions": 2, "kind": "python"}],
    **{name: [{"class": "S"}] for name in ("ep", "is", "cg", "mg", "ft", "lu")},
    **{name: [{"class": "S", "ranks": 1}] for name in ("sp", "bt")},
    "training_proxy": [{"compute_ms": 10}],
    "replay": [{"application": "sums", "calls": compressed(SUMS), "seconds": 1, "computing": 1}],
    "storage": [{"size": 1 << 20, "transfer": 1 << 16, "operations": 20, "files": 10}],
}


def record(name: str, parameters: dict[str, Any], ranks: int, wanted: str | None) -> str:
    """Return what the kernel `name` prints when launched with `parameters` on so many ranks."""
    mpi = find_mpi(wanted, HERE)
    program = BENCHMARKS[name].command(Request(parameters, ranks))
    argv = [str(kernel_path(program.kernel or name, mpi, HERE)), *program.argv]
    if program.libraries:
        argv += ["--libraries", str(loaded_path(*program.libraries, mpi, HERE))]
    cores = sorted(os.sched_getaffinity(0))
    slots = tuple(Slot(cores=(cores[rank % len(cores)],)) for rank in range(ranks))
    with tempfile.TemporaryDirectory() as scratch:
        for file, text in program.files.items():
            Path(scratch, file).write_text(text)
        command = launch(
            bind(Command(tuple(argv)), slots),
            ranks=ranks,
            mpi=mpi,
            placement=Placement(slots),
            transport="tcp" if name == "bcast" else "shm",
            scratch=scratch,
        )
        environment = {**os.environ, **command.env, "TMPDIR": scratch}
        segments = Path("/dev/shm", Path(scratch).parent.name, Path(scratch).name)
        segments.mkdir(parents=True)
        try:
            done = subprocess.run(
                command.argv,
                env=environment,
                cwd=scratch,
                capture_output=True,
                text=True,
                check=True,
            )
        finally:
            segments.rmdir()
    return done.stdout


def scrubbed(output: str) -> str:
    """Return `output` with host names as node0, node1 and directories removed."""
    lines = output.splitlines(keepends=True)
    header = json.loads(lines[0])
    hosts = header["hosts"]
    header["hosts"] = [f"node{hosts.index(host)}" for host in hosts]
    if "libraries" in header["args"]:
        header["args"]["libraries"] = "/libraries"
    return "".join([json.dumps(header) + "\n", *lines[1:]])


def main() -> None:
    for name, benchmark in BENCHMARKS.items():
        defaults = {k: p.default for k, p in benchmark.parameters.items()}
        # Those of GPUs: tests/test_gpu.py.
        if benchmark.command(Request(defaults, benchmark.ranks)).kernel in (None, "gpu"):
            continue
        folder = FIXTURES / name
        folder.mkdir(parents=True, exist_ok=True)
        for number, own in enumerate(WANTED.get(name, [{}])):
            small = {k: v for k, v in SMALL.items() if k in benchmark.parameters}
            parameters = {**defaults, **small, **own}
            ranks = parameters.pop("ranks", 2)
            mpi = sys.argv[1] if sys.argv[1:] else None
            text = scrubbed(record(name, parameters, ranks, mpi))
            path = folder / f"good-{number}.out"
            path.write_text(text)
            request = {"ranks": ranks, "parameters": parameters}
            path.with_suffix(".json").write_text(json.dumps(request, indent=1) + "\n")
            print(path)


if __name__ == "__main__":
    main()
