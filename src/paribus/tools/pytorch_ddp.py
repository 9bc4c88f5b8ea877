"""Training with PyTorch's DistributedDataParallel: images per second, as scripts print them."""

from __future__ import annotations

from paribus.benchmarks.parameters import absolute, positive, word, words
from paribus.benchmarks.tool import path_or, tool
from paribus.core import Metric, Parameter, Program, Request
from paribus.tools.readers.pytorch_ddp import READER


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


BENCHMARK = tool(
    READER,
    layer="application",
    summary="PyTorch DDP: training of a network, images per second of all ranks together",
    metrics=(Metric("throughput", "images/s", "higher"),),
    command=command,
    parameters={
        "script": Parameter(
            None, absolute, "the training script, as an absolute path", required=True
        ),
        "arguments": Parameter(None, words, 'its arguments, such as ["--model", "vgg16"]'),
        "model": Parameter(None, word, "the network that the output must name"),
        "batch": Parameter(None, positive, "images per rank and step that it must name"),
        "intervals": Parameter(None, positive, "how many values it must print"),
    },
    program="torchrun",
    get="https://pytorch.org, and a training script: the table Images per second",
)
