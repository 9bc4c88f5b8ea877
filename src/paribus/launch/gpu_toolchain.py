"""How the kernels of GPUs are compiled: by nvcc or hipcc, with the host compiler of an MPI."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from paribus.core import UserError
from paribus.launch.machine import MADE, Machine, first_errors

_PLACES = {"nvcc": "/usr/local/cuda/bin/nvcc", "hipcc": "/opt/rocm/bin/hipcc"}
_DEVICES = {"nvcc": "/dev/nvidiactl", "hipcc": "/dev/kfd"}


class GpuCompiler(NamedTuple):
    """A compiler for GPUs on some machine."""

    name: str  # nvcc or hipcc
    path: str
    version: str  # the text that --version prints
    flags: tuple[str, ...] = ()  # the architectures of GPUs that it compiles for

    def __str__(self) -> str:
        lines = self.version.splitlines()
        return f"{self.name}: {next((one for one in lines if 'release' in one), lines[0])}"


def lacking(machine: Machine) -> list[str]:
    """Return what `machine` lacks for the kernels of GPUs, in words: a compiler, a GPU."""
    lacks = [] if _candidates(machine) else ["nvcc or hipcc"]
    gpu = any(machine.readable(device) for device in _DEVICES.values())
    return lacks if gpu else [*lacks, "a GPU"]


def _candidates(machine: Machine) -> list[tuple[str, str]]:
    """Return name and path of the compilers that are there; first those whose GPU is there."""
    found = []
    for name, usual in _PLACES.items():
        path = machine.find_program(name) or machine.find_program(usual)
        found += [(name, path)] if path else []
    return sorted(found, key=lambda one: not machine.readable(_DEVICES[one[0]]))


@cache
def gpu_compiler(machine: Machine) -> GpuCompiler:
    """Return the compiler for the GPU of `machine`; raises UserError where there is none."""
    for name, path in _candidates(machine):
        answer = machine.capture([path, "--version"])
        if answer.exit_code:
            raise UserError(
                f"does not answer: {first_errors(answer)}",
                place=machine.at(path),
                fix="repair it, or put another one first on the PATH",
            )
        flags = _architectures(machine, path) if name == "nvcc" else ()
        return GpuCompiler(name, path, answer.stdout.strip(), flags)
    raise UserError(
        "no compiler for GPUs (nvcc, hipcc) was found",
        place=machine.at("PATH"),
        fix="load the module of CUDA or ROCm, or put the directory of nvcc or hipcc on the PATH",
    )


def _architectures(machine: Machine, nvcc: str) -> tuple[str, ...]:
    """Return the flags for PTX code, which drivers translate; () where nvcc does not list them.

    By default nvcc makes it for the oldest architecture that it knows: without instructions for
    half precision before 5.3, for bfloat16 before 8.0 (PTX ISA, fma). So it is made for 6.0, or
    the oldest that is known after it, and for 8.0.
    """
    printed = machine.capture([nvcc, "--list-gpu-arch"]).stdout
    known = sorted(int(one) for one in re.findall(r"^compute_(\d+)$", printed, re.M))
    recent = [one for one in known if one >= 60]
    chosen = sorted({*recent[:1], *(one for one in recent if one == 80)})
    return tuple(f"-gencode=arch=compute_{one},code=compute_{one}" for one in chosen)


def commands(
    compiler: GpuCompiler, flags: Sequence[str], mpicxx: str, wrapped: str, common: str
) -> list[list[str]]:
    """Return the commands that compile gpu.cu and link it with the object `common`.

    nvcc takes `mpicxx` as its host compiler; hipcc is one itself, and takes the flags of
    `wrapped`, the command for which `mpicxx` stands.
    """
    if compiler.name == "nvcc":
        of_host = [one for one in flags if one == "-pthread" or one.startswith("-f")]
        host = ["-ccbin", mpicxx, *(f"-Xcompiler={one}" for one in of_host)]
        rest = [one for one in flags if one not in of_host]
        argv = [compiler.path, *compiler.flags, *rest, *host, "gpu.cu", common, "-o", MADE, "-ldl"]
        return [argv]
    mpi = shlex.split(wrapped)[1:]
    headers = [one for one in mpi if one.startswith(("-I", "-D"))]
    return [
        [compiler.path, *flags, *headers, "-x", "hip", "-c", "gpu.cu", "-o", "gpu.o"],
        [compiler.path, "-pthread", "gpu.o", common, *mpi, "-o", MADE, "-ldl"],
    ]
