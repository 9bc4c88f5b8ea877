"""Training: a network of torchvision with PyTorch where that is installed, and a proxy without."""

from __future__ import annotations

from functools import partial

from paribus.benchmarks.asked import parse
from paribus.benchmarks.own import native
from paribus.benchmarks.parameters import need_ranks, one_of, positive, whole, word
from paribus.benchmarks.tool import shipped
from paribus.core import Benchmark, Case, Metric, Parameter, Program, Request
from paribus.tools.readers.pytorch_ddp import READER

_SCRIPT = "training.py"
_MODELS = one_of("resnet50", "vgg16")
_PARAMETERS = {
    "model": Parameter("resnet50", _MODELS, "the network of torchvision"),
    "batch": Parameter(8, positive, "images of each rank in a step"),
    "device": Parameter("cpu", one_of("cpu", "gpu"), "cpu with gloo, or gpu with NCCL or RCCL"),
    "input": Parameter(
        "memory",
        one_of("memory", "jpeg"),
        "a batch that lies on the device, or images that workers decode and crop",
    ),
    "workers": Parameter(2, whole, "processes of each rank that prepare images, for jpeg"),
    "pixels": Parameter(224, positive, "width and height of an image"),
    "warmup": Parameter(3, positive, "steps before the first interval"),
    "steps": Parameter(3, positive, "steps of an interval"),
    "intervals": Parameter(5, positive, "values of a launch"),
}


def _command(request: Request) -> Program:
    """Return the command line: the launcher starts a Python for each rank."""
    need_ranks(request, "training", least=1)
    python = str(request.parameters.get("python") or "python3")
    argv = [python, _SCRIPT, "--ranks", str(request.ranks)]
    for key in _PARAMETERS:
        argv += [f"--{key}", str(request.parameters[key])]
    return Program(
        tuple(argv),
        files={_SCRIPT: shipped(_SCRIPT)},
        env={"MASTER_ADDR": "{first}", "MASTER_PORT": "{port}"},
        threads=0,
        modules=("torch", "torchvision"),
    )


BENCHMARKS = (
    native(
        "training_proxy",
        "gradients of a network summed over all ranks while a step is computed",
        Metric("step", "ms", "lower"),
        Metric("exposed", "ms", "lower", margin=0.05),
        Metric("compute", "ms", "lower"),
        layer="application",
        samples=10,
        intervals=True,
        extra={
            "model": Parameter("resnet50", _MODELS, "whose gradients"),
            "compute_ms": Parameter(100, positive, "length of the computation of one step"),
            "poll_us": Parameter(
                1000, whole, "let MPI make progress this often while computing; 0: never"
            ),
        },
    ),
    Benchmark(
        name="training",
        layer="application",
        summary="PyTorch DDP trains ResNet50 or VGG16 on synthetic images, all ranks together",
        metrics=(Metric("throughput", "images/s", "higher"),),
        command=_command,
        parse=partial(
            parse,
            READER,
            benchmark=READER.name,
            version=f"{READER.name}.version",
            cases=lambda _: [("throughput", Case())],
            echoed=frozenset(_PARAMETERS),
        ),
        parameters={
            "python": Parameter(None, word, "a Python that has torch, instead of python3"),
            **_PARAMETERS,
        },
        get="pip install torch torchvision; Debian, Ubuntu: python3-torchvision",
    ),
)
