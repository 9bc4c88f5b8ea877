"""nvbandwidth: copies between host and GPUs, and between GPUs, by its text or its JSON."""

from __future__ import annotations

from collections.abc import Iterable

from paribus.benchmarks.parameters import positive, words
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Case, Metric, Parameter, Program, Request
from paribus.tools.readers.nvbandwidth import READER, cases_of


def command(request: Request) -> Program:
    """Return the command line: the test cases by name, as JSON."""
    cases_asked = [word for name in request.parameters["testcases"] for word in ("-t", name)]
    return Program((path_or(request, "nvbandwidth"), "-j", *cases_asked), mpi=False)


def cases(request: Request) -> Iterable[tuple[str, Case]]:
    """Return the cells: host against every GPU, or every GPU against every other."""
    gpus = int(request.parameters["gpus"])
    for name in request.parameters["testcases"]:
        metric = "latency" if "latency" in name else "bandwidth"
        square = name.startswith("device_to_device")
        for at, case in enumerate(cases_of(name, gpus if square else 1, gpus)):
            if not square or at % (gpus + 1):
                yield metric, case


BENCHMARK = tool(
    READER,
    layer="gpu",
    summary="nvbandwidth: copies between host and GPUs, and between GPUs",
    metrics=(Metric("bandwidth", "GB/s", "higher"), Metric("latency", "ns", "lower")),
    command=command,
    cases=cases,
    parameters={
        "testcases": Parameter(
            ["host_to_device_memcpy_ce", "device_to_host_memcpy_ce"], words, "test cases by name"
        ),
        "gpus": Parameter(1, positive, "GPUs of the machine, each of which must be in the output"),
    },
    ranks=1,
    program="nvbandwidth",
    get="https://github.com/NVIDIA/nvbandwidth: cmake . && make",
)
