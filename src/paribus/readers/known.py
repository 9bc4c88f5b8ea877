"""All readers and harnesses, by the names of their benchmarks: explicit lists of files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from paribus.core import Row
from paribus.readers import kernel
from paribus.readers.imb_parts import PARTS
from paribus.readers.osu_programs import PROGRAMS
from paribus.readers.reader import WORK, Reader

if TYPE_CHECKING:
    from paribus.readers.harness import Harness

TOOLS = {
    "osu": (*PROGRAMS, "osu_init"),
    "imb": tuple(PARTS),
    "npb": tuple(f"npb_{kernel}" for kernel in ("bt", "cg", "ep", "ft", "is", "lu", "mg", "sp")),
    "hpl": ("hpl",),
    "hpcc": ("hpcc",),
    "hpcg": ("hpcg",),
    "stream": ("stream",),
    "babelstream": ("babelstream",),
    "mixbench": ("mixbench",),
    "pynamic": ("pynamic",),
    "nccl_tests": ("nccl_tests",),
    "nvbandwidth": ("nvbandwidth",),
    "p2p_bandwidth": ("p2p_bandwidth",),
    "lammps": ("lammps",),
    "qe": ("qe",),
    "vasp": ("vasp",),
    "gromacs": ("gromacs",),
    "pytorch_ddp": ("pytorch_ddp",),
    "perftest": tuple(
        f"ib_{verb}_{kind}" for verb in ("write", "send", "read") for kind in ("bw", "lat")
    ),
    "incast": ("incast",),
    "iperf3": ("iperf3",),
    "netperf": ("netperf", "netperf_rr"),
    "qperf": ("qperf",),
    "sockperf": ("sockperf",),
    "ucx": ("ucx_perftest", "ucx_perftest_bw"),
    "fabtests": ("fi_pingpong", "fabtests"),
    "fio": ("fio",),
    "ior": ("ior",),
    "mdtest": ("mdtest",),
}
"""The tools: a file of this name in tools/ and in tools/readers/, each with its benchmarks."""

HARNESSES = (
    "hyperfine",
    "google_benchmark",
    "pytest_benchmark",
    "pyperf",
    "reframe",
    "phoronix",
    "superbench",
    "llama_bench",
    "vllm_serving",
    "megatron",
    "torchtitan",
    "dcgm_diag",
    "io500",
)
"""The harnesses whose files are read: in logs/harnesses/ a file of the name that holds HARNESS."""

_FILE_OF = {name: file for file, names in TOOLS.items() for name in names}


@cache
def _of_file(file: str) -> Mapping[str, Reader]:
    """Return the readers of a file by name: it holds one READER, or READERS of a family."""
    module = vars(import_module(f"paribus.tools.readers.{file}"))
    several = module["READERS"].values() if "READERS" in module else (module["READER"],)
    return {one.name: one for one in several}


@cache
def readers() -> Mapping[str, Reader]:
    """Return the readers by name, in the order of their files; that of our kernels is the last."""
    every = {name: one for file in TOOLS for name, one in _of_file(file).items()}
    return {**every, kernel.TOOL: kernel.READER}


@cache
def harnesses() -> Mapping[str, Harness]:
    """Return the harnesses by name, in the order of the list."""
    return {name: import_module(f"paribus.logs.harnesses.{name}").HARNESS for name in HARNESSES}


@cache
def every() -> Mapping[str, Reader | Harness]:
    """Return all readers and all harnesses by name."""
    return {**readers(), **harnesses()}


@cache
def complaints() -> tuple[str, ...]:
    """Return what tools say of a launch that failed before they say their name."""
    return tuple(dict.fromkeys(said for one in every().values() for said in one.complaints))


def reader_of(benchmark: str) -> Reader:
    """Return the reader of a benchmark's output; all kernels of ours have one."""
    file = _FILE_OF.get(benchmark)
    return _of_file(file)[benchmark] if file else kernel.READER


def file_of(benchmark: str) -> str:
    """Return the name of the file of the reader of a benchmark, or of a harness."""
    if benchmark in HARNESSES:
        return benchmark
    return _FILE_OF.get(benchmark, kernel.TOOL)


def facts_of(key: str) -> tuple[Row, ...]:
    """Return how the audit judges facts of the tool of a key; none for a key of no tool.

    The key begins with the name of a benchmark, or of the file of its family, maybe behind WORK.
    """
    name = key.removeprefix(WORK).partition(".")[0]
    file = name if name in TOOLS else _FILE_OF.get(name)
    if file is None:
        return ()
    return tuple(row for one in _of_file(file).values() for row in one.facts)
