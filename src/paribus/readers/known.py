"""Every reader there is, by the name of its benchmark: an explicit list, whatever is imported."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from paribus.readers import kernel
from paribus.readers.reader import Reader

_FILES = (
    "osu",
    "imb",
    "npb",
    "hpl",
    "hpcc",
    "hpcg",
    "stream",
    "babelstream",
    "mixbench",
    "pynamic",
    "nccl",
    "nvbandwidth",
    "p2p_bandwidth",
    "lammps",
    "qe",
    "vasp",
    "gromacs",
    "pytorch",
    "perftest",
    "incast",
    "iperf3",
    "netperf",
    "qperf",
    "sockperf",
    "ucx",
    "fio",
    "ior",
    "mdtest",
    "kernel",
)
"""The files of this folder that hold a READER, or READERS of a family."""


@cache
def readers() -> Mapping[str, Reader]:
    """Return the readers by name, in the order of their files."""
    found: dict[str, Reader] = {}
    for file in _FILES:
        held = vars(import_module(f"paribus.readers.{file}"))
        several = held["READERS"].values() if "READERS" in held else (held["READER"],)
        found |= {one.name: one for one in several}
    return found


def reader_of(benchmark: str) -> Reader:
    """Return the reader of a benchmark's output; all kernels of ours have one."""
    return readers().get(benchmark, kernel.READER)
