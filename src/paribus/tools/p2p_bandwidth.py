"""p2pBandwidthLatencyTest of the CUDA samples: copies between each pair of GPUs."""

from __future__ import annotations

from collections.abc import Iterable

from paribus.benchmarks.parameters import flag, positive
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.p2p_bandwidth import READER, kinds_of, pairs_of


def command(request: Request) -> Program:
    """Return the command line."""
    reads = ("--p2p_read",) if request.parameters.get("reads") else ()
    return Program((path_or(request, "p2pBandwidthLatencyTest"), *reads), mpi=False)


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return every pair of different GPUs in every matrix."""
    gpus = int(request.parameters["gpus"])
    kinds = kinds_of(reads=bool(request.parameters["reads"]))
    return [(kind[0], case) for kind in kinds for case in pairs_of(kind, gpus) if case is not None]


BENCHMARK = tool(
    READER,
    layer="gpu",
    summary="p2pBandwidthLatencyTest: copies between each two GPUs, with and without peer access",
    metrics=(
        Metric("bandwidth", "GB/s", "higher", margin=0.05),
        Metric("latency", "us", "lower", margin=0.05),
    ),
    command=command,
    cases=cases,
    parameters={
        "gpus": Parameter(2, positive, "GPUs of the machine, each of which must be in the output"),
        "reads": Parameter(False, flag, "--p2p_read: also matrices of reads"),
    },
    ranks=1,
    program="p2pBandwidthLatencyTest",
    get="https://github.com/NVIDIA/cuda-samples: Samples/5_Domain_Specific",
)
