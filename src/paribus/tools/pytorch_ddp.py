"""Training, as with PyTorch's DistributedDataParallel: the speed that scripts print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from paribus.benchmarks.parameters import absolute, positive, word, words
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.pytorch_ddp import IMAGES, READER


def command(request: Request) -> Program:
    """Return the command line: torchrun starts a process per rank, on one host."""
    asked = request.parameters
    argv = [path_or(request, "torchrun"), "--standalone", f"--nproc-per-node={request.ranks}"]
    script = str(asked["script"])
    return Program(
        (*argv, script, *(asked.get("arguments") or ())),
        mpi=False,
        # All cores for all ranks together: as torchrun has it, one thread each, and loaders beside.
        threads=0,
        env={"OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"},
        needs=(script,),
    )


def metrics(parameters: Mapping[str, Any]) -> tuple[Metric, ...]:
    """Return the metric: images per second, or the unit that a script of the user's own counts."""
    return (Metric("throughput", str(parameters.get("unit") or IMAGES), "higher"),)


_TOOL = tool(
    READER,
    layer="application",
    summary="PyTorch DDP: training of a network, images or tokens per second of all ranks together",
    metrics=metrics({}),
    command=command,
    parameters={
        "script": Parameter(
            None, absolute, "the training script, as an absolute path", required=True
        ),
        "arguments": Parameter(None, words, 'its arguments, such as ["--model", "vgg16"]'),
        "model": Parameter(None, word, "the network that the output must name"),
        "batch": Parameter(None, positive, "images per rank and step that it must name"),
        "intervals": Parameter(None, positive, "how many values it must print"),
        "unit": Parameter(IMAGES, word, "unit of the values, such as tokens/s"),
    },
    program="torchrun",
    get="https://pytorch.org, and a training script: the table Images per second",
)
BENCHMARK = replace(_TOOL, choose=metrics)
