"""Training with PyTorch's DistributedDataParallel: images per second, as scripts print them."""

from __future__ import annotations

from paribus.benchmarks._apps import absolute, word, words
from paribus.benchmarks._images import MARKS, read
from paribus.benchmarks._parameters import positive
from paribus.benchmarks._tool import path_or, tool
from paribus.model import Metric, Parameter, Program, Request


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
    "pytorch_ddp",
    layer="application",
    summary="PyTorch DDP: training of a network, images per second of all ranks together",
    metrics=(Metric("throughput", "images/s", "higher"),),
    reader=read,
    marks=MARKS,
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
    versions="the four kinds of lines of the table Images per second",
    proof=(
        "first and last line of its kind once, every value of a numbered sequence, no traceback,"
        " mean and total where they are printed, ranks, model and batch as asked"
    ),
    means=(
        "a value per interval that the script times; whether loading the data is in it depends on"
        " the script; kinds of lines are never compared with each other"
    ),
)
