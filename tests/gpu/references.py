"""Our GPU kernels beside mixbench, BabelStream and PyTorch on one card: at most 4 minutes.

    python3 tests/gpu/references.py OUT [--mixbench DIR] [--babelstream DIR] [--torch PYTHON]

For a machine with one NVIDIA GPU, CUDA and an MPI; Paribus is imported by the Python that executes
this. DIR is the source (mixbench-cuda, BabelStream) or a program that is built; what is not named
is left out. Eight pairs of launches in the order of coin flips; good is a lower end of the 95 %
interval of ours / theirs of 0.95 or more. OUT/steps.jsonl has every step as soon as it has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from steps import Steps, ratio

from paribus.benchmarks import get
from paribus.core import Mpi, Request, Sample
from paribus.launch.gpu_toolchain import gpu_compiler
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.readers.kernel import read

PAIRS = 8
LEAST = 0.95
BABELSTREAM = (
    *("-O3", "-std=c++17", "-DCUDA", "-DGRID_STRIDE", "-DUNROLL_FACTOR=4", "--extended-lambda"),
    *("-forward-unknown-to-host-compiler", "-I", "src", "-I", "src/cuda"),
    *("src/main.cpp", "src/cuda/CUDAStream.cu", "-lnvidia-ml"),
)
MIXBENCH = (
    "-O2",
    "-std=c++17",
    "-I",
    "../include",
    "-I",
    ".",
    "main-cuda.cpp",
    "mix_kernels_cuda.cu",
)
TORCH = """
import json, sys, torch
size, n = int(sys.argv[1]), int(sys.argv[2])
def seconds(work, times):
    work(); torch.cuda.synchronize()
    a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    a.record()
    for _ in range(times): work()
    b.record(); torch.cuda.synchronize()
    return a.elapsed_time(b) / 1e3 / times
# The values of gpu_gemm: whole steps of 1/128 from -127 to 127.
a, b = (torch.randint(-127, 128, (size, size), device="cuda").div(128).bfloat16() for _ in "ab")
found = {"gemm": 2e-9 * size ** 3 / min(seconds(lambda: a @ b, 5) for _ in range(10))}
here = torch.ones(n, dtype=torch.uint8).pin_memory()
there = torch.ones(n, dtype=torch.uint8, device="cuda")
for way, work in (("to", lambda: there.copy_(here, non_blocking=True)),
                  ("from", lambda: here.copy_(there, non_blocking=True))):
    found[way] = 1e-9 * n / min(seconds(work, 4) for _ in range(10))
# Pageable memory: written, as ours, and never touched, where every page is the same one of zeros.
usual, fresh = torch.ones(n, dtype=torch.uint8), torch.empty(n, dtype=torch.uint8)
for way, work in (("pageable to", lambda: there.copy_(usual)),
                  ("pageable from", lambda: usual.copy_(there)),
                  ("untouched to", lambda: there.copy_(fresh))):
    found[way] = 1e-9 * n / min(seconds(work, 2) for _ in range(5))
card = torch.cuda.get_device_properties(0)
found |= {"sms": card.multi_processor_count, "capability": card.major + card.minor / 10}
print(json.dumps(found))
"""
FUSED = {9.0: {"float": 128, "double": 64, "int": 64, "half": 256, "gemm": 2048}}
"""Multiplications with an addition that an SM does in a clock, by compute capability: CUDA C++
Programming Guide, "Arithmetic Instructions"; of gemm, NVIDIA's 989 TFLOP/s, 132 SMs, 1.83 GHz."""
OTHERS = {"float": 128}
"""Of other cards: none has more."""

Figures = Mapping[str, float]
Launch = Callable[[], Figures]
Reference = tuple[Launch, Launch]
Pairs = list[tuple[float, float]]


class Kernels:
    """Our kernels, built as Paribus builds them."""

    def __init__(self, steps: Steps, mpi: Mpi, program: Path, small: bool) -> None:
        self.steps, self.mpi, self.program, self.small = steps, mpi, program, small

    def argv(self, name: str, **asked: Any) -> list[str]:
        defaults = {key: one.default for key, one in get(name).parameters.items()}
        request = Request({**defaults, **asked}, 1)
        return [str(self.program), *get(name).command(request).argv]

    def samples(self, name: str, **asked: Any) -> tuple[Sample, ...]:
        if self.small:
            other = {"size": [32], "type": "tf32"}
            asked |= {"bytes": [65536]} if "bytes" in get(name).parameters else other
            asked["samples"] = 3
        argv = [self.mpi.mpirun, "-n", "1", *self.argv(name, **asked)]
        return read(self.steps.call(argv)).samples

    def roofline(self) -> Figures:
        return {
            str(one.case.get("type")): max(one.values)
            for one in self.samples("gpu_roofline")
            if one.case.get("intensity") == 64
        }

    def stream(self) -> Figures:
        return {str(one.case.get("op")): max(one.values) for one in self.samples("gpu_stream")}

    def of_torch(self) -> Figures:
        gemm = self.samples("gpu_gemm", size=[8192], load_s=0)
        copies = self.samples("gpu_copy", bytes=[1 << 28], samples=10)
        found = {"gemm": max(gemm[0].values)}
        for one in copies:
            if one.metric == "bandwidth":
                way = f"{one.case.get('memory')} {one.case.get('way')}"
                found[way.removeprefix("pinned ")] = max(one.values)
        return found


def built(steps: Steps, place: str, program: str, flags: tuple[str, ...]) -> Path:
    """Return a reference's program: `place`, or what is compiled of the source there."""
    folder = Path(place).resolve()
    if folder.is_file():
        return folder
    into, headers = (steps.out / program).resolve(), (steps.out / "headers").resolve()
    headers.mkdir(exist_ok=True)
    # What mixbench's own build makes.
    (headers / "version_info.h").write_text('#define VERSION_INFO "unknown"\n')
    argv: list[str | Path] = [gpu_compiler(HERE).path, *flags, "-I", headers]
    steps.call([*argv, "-arch=native", "-o", into], 120, cwd=folder)
    return into


def mixbench(text: str) -> Figures:
    """Return the rate of each type at the lowest intensity of 64 operations a byte or more."""
    reading = get("mixbench").read
    assert reading is not None
    of = {
        "sp": 4,
        "dp": 8,
        "int": 4,
        "hp": 2,
    }  # bytes: an iteration is two operations for each element
    names = {"sp": "float", "dp": "double", "int": "int", "hp": "half"}
    found: dict[str, float] = {}
    for one in reading(text).samples:
        if one.metric in names and int(str(one.case.get("iterations"))) >= 32 * of[one.metric]:
            found.setdefault(names[one.metric], one.values[0])
    return found


def babelstream(text: str) -> Figures:
    reading = get("babelstream").read
    assert reading is not None
    names = {"mul": "scale"}
    return {names.get(s.metric, s.metric): s.values[0] / 1e3 for s in reading(text).samples}


def sanitized(steps: Steps, ours: Kernels) -> dict[str, Any]:
    """Return what compute-sanitizer says of small launches."""
    beside = Path(gpu_compiler(HERE).path).with_name("compute-sanitizer")  # often not on the PATH
    found, sanitizer = {}, str(beside) if beside.exists() else beside.name
    for what, tool, name, asked in (
        ("roofline", "memcheck", "gpu_roofline", {"bytes": [4096]}),
        ("bfloat16", "memcheck", "gpu_roofline", {"bytes": [4096], "type": "bfloat16"}),
        ("latency", "memcheck", "gpu_latency", {}),
        ("stream", "racecheck", "gpu_stream", {"bytes": [65536]}),
    ):
        argv = ours.argv(name, samples=3, **asked)
        said = steps.call([sanitizer, "--tool", tool, "--error-exitcode", "9", *argv])
        found[what] = said.strip().splitlines()[-1]
    return found


def clocks(steps: Steps, work: Callable[[], Any]) -> float:
    """Return the highest SM clock in MHz that nvidia-smi saw during `work`."""
    argv = ["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-lms", "100"]
    with tempfile.TemporaryFile("w+") as file, subprocess.Popen(argv, stdout=file) as looking:
        try:
            work()
        finally:
            looking.terminate()
        looking.wait()
        file.seek(0)
        return max((float(line) for line in file if line.strip().isdigit()), default=0.0)


def paired(steps: Steps, others: Mapping[str, Reference]) -> dict[str, dict[str, Pairs]]:
    """Return figures of ours and theirs by reference and name, of pairs in random order."""
    draw, found = random.Random(1), {name: dict[str, Pairs]() for name in others}
    for number, (name, (ours, theirs)) in product(range(1, PAIRS + 1), others.items()):

        def pair(name: str = name, ours: Launch = ours, theirs: Launch = theirs) -> dict[str, Any]:
            if draw.random() < 0.5:
                mine, reference = ours(), theirs()
            else:
                reference, mine = theirs(), ours()
            for key in mine.keys() & reference.keys():
                found[name].setdefault(key, []).append((mine[key], reference[key]))
            return {"ours": mine, "theirs": reference}

        steps.do(f"{name}, pair {number}", 10, pair)
    return found


def compared(steps: Steps, name: str, pairs: Mapping[str, Pairs]) -> None:
    for key, several in sorted(pairs.items()):

        def judged(several: Pairs = several) -> dict[str, Any]:
            found = ratio(several)
            return {**found, "good": found["low"] >= LEAST}

        steps.do(f"{name}: {key}, ours / theirs", 0, judged)


def of_torch(steps: Steps, python: str, card: dict[str, float], small: bool) -> Figures:
    """Return what PyTorch has for our largest product and for copies."""
    size = ("32", "65536") if small else ("8192", str(1 << 28))
    said = json.loads(steps.call([python, "-c", TORCH, *size]))
    card.update({key: said.pop(key) for key in ("sms", "capability")})
    return {key: float(value) for key, value in said.items()}


def compiled(steps: Steps, asked: argparse.Namespace) -> tuple[dict[str, Path], Mpi]:
    """Return the programs that are there to compare, all compiled at the same time."""
    mpi = find_mpi(None, HERE)
    os.environ.update(mpi.env)
    found: dict[str, Path] = {}

    def build(name: str, make: Callable[[], Path]) -> None:
        def made() -> dict[str, Any]:
            found[name] = make()
            return {"program": found[name]}

        steps.do(f"{name} compiled", 60, made)

    wanted: dict[str, Callable[[], Path]] = {"ours": lambda: kernel_path("gpu", mpi, HERE)}
    if asked.babelstream:
        wanted["BabelStream"] = lambda: built(steps, asked.babelstream, "cuda-stream", BABELSTREAM)
    if asked.mixbench:
        wanted["mixbench"] = lambda: built(steps, asked.mixbench, "mixbench", MIXBENCH)
    with ThreadPoolExecutor() as pool:
        list(pool.map(build, wanted, wanted.values()))
    return found, mpi


def references(
    steps: Steps,
    ours: Kernels,
    asked: argparse.Namespace,
    programs: Mapping[str, Path],
    card: dict[str, float],
) -> dict[str, Reference]:
    """Return what is there to compare with."""
    found: dict[str, Reference] = {}
    if "mixbench" in programs:
        found["mixbench"] = ours.roofline, lambda: mixbench(steps.call([programs["mixbench"]]))
    if "BabelStream" in programs:
        numbers = "131072" if asked.small else "134217728"
        argv: list[str | Path] = [programs["BabelStream"], "-s", numbers, "-n", "20"]
        found["BabelStream"] = ours.stream, lambda: babelstream(steps.call(argv))
    if asked.torch:
        found["PyTorch"] = ours.of_torch, lambda: of_torch(steps, asked.torch, card, asked.small)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    for name in ("mixbench", "babelstream", "torch"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--limit-s", type=float, default=235.0)
    parser.add_argument("--small", action="store_true", help="of the tests: sizes for a stand-in")
    asked = parser.parse_args()
    steps = Steps(asked.out, asked.limit_s)
    programs, mpi = compiled(steps, asked)
    if "ours" not in programs:
        return steps.end()
    steps.say("versions", mpi=str(mpi), compiler=str(gpu_compiler(HERE)))
    ours = Kernels(steps, mpi, programs["ours"], asked.small)
    steps.do("compute-sanitizer", 15, lambda: sanitized(steps, ours))
    clock = {"mhz": 0.0}

    def peak() -> dict[str, Any]:
        clock["mhz"] = clocks(steps, ours.roofline)
        return clock

    steps.do("the clock while gpu_roofline runs", 10, peak)
    card: dict[str, float] = {}
    pairs = paired(steps, references(steps, ours, asked, programs, card))
    for name, found in pairs.items():
        compared(steps, name, found)
    known = FUSED.get(card["capability"], OTHERS) if card else {}
    for key, fused in known.items():
        several = [mine for found in pairs.values() for mine, _ in found.get(key, ())]

        def below(fused: int = fused, several: Sequence[float] = several) -> dict[str, Any]:
            most = card["sms"] * fused * 2 * clock["mhz"] / 1e3
            return {"peak": most, "ours": max(several), "good": max(several) <= most}

        if several:
            steps.do(f"{key} is not above the peak of that clock, Gop/s", 0, below)
    return steps.end()


if __name__ == "__main__":
    sys.exit(main())
