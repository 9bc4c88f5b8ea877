"""Training: its proxy, launched with the MPI that is here; with PyTorch where that is installed."""

from __future__ import annotations

import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mpis import any_mpi
from native import Ended, program_of, started
from paribus.__main__ import main
from paribus.benchmarks import get
from paribus.core import Request
from paribus.launch.machine import HERE
from paribus.launch.programs import missing_modules
from paribus.readers.kernel import read
from processes import executable

FEW = ("--samples", "3", "--compute-ms", "20")
LAUNCHES: dict[str, tuple[tuple[str, ...], int]] = {
    "resnet50": (FEW, 2),
    "no progress": ((*FEW, "--poll-us", "0"), 3),
    "corrupt": ((*FEW, "--corrupt"), 2),
    "one rank": (FEW, 1),
    "no such model": (("--model", "resnet18"), 2),
    "no computation": (("--compute-ms", "0"), 2),
}


@pytest.fixture(scope="module")
def proxies() -> dict[str, Ended]:
    """Return how launches of the proxy ended, by name."""
    program = program_of("training_proxy")
    with ThreadPoolExecutor(3) as pool:
        ends = {
            name: pool.submit(started, program, *arguments, ranks=ranks)
            for name, (arguments, ranks) in LAUNCHES.items()
        }
    return {name: ended.result() for name, ended in ends.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "no progress"])
def test_a_step_is_its_computation_and_what_is_exposed(
    name: str, proxies: dict[str, Ended]
) -> None:
    """25.56 million gradients, each summed over all ranks, are checked twice."""
    ended, ranks = proxies[name], LAUNCHES[name][1]
    assert ended.returncode == 0, ended.stderr
    reading = read(ended.stdout)
    step, exposed, compute = (sample.values for sample in reading.samples)
    assert [step[i] - exposed[i] for i in range(3)] == pytest.approx([min(compute)] * 3, rel=1e-3)
    assert min(compute) > 15
    assert reading.samples[0].case.get("ranks") == ranks
    assert f'"checked": {2 * ranks * 25557032}' in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        (
            "corrupt",
            1,
            'wrong data at {"model": "resnet50", "ranks": 2}: rank 1, position 12778516',
        ),
        ("one rank", 2, "needs 2 ranks or more, not 1"),
        ("no such model", 2, "--model needs one of resnet50, vgg16"),
        ("no computation", 2, "--compute-ms needs a whole number from 1 to 100000"),
    ],
)
def test_wrong_sums_and_arguments_are_refused(
    name: str, code: int, says: str, proxies: dict[str, Ended]
) -> None:
    ended = proxies[name]
    assert (ended.returncode, ended.stdout) == (code, "")
    assert f"training_proxy: {says}" in ended.stderr


# --- with PyTorch ---------------------------------------------------------------------------------

PYTHON = os.environ.get("PARIBUS_TEST_TORCH", "python3")
"""A Python that may have torch and torchvision: CI unpacks Debian's, `./dev setup` has none."""


TINY = {"batch": 2, "pixels": 32, "workers": 1, "warmup": 1, "steps": 1, "intervals": 2}


def training(folder: Path, ranks: int, **own: Any) -> tuple[Ended, Request]:
    """Return how a launch of the benchmark ended, and what was asked for."""
    defaults = {key: one.default for key, one in get("training").parameters.items()}
    request = Request({**defaults, **TINY, "python": PYTHON, **own}, ranks)
    program = get("training").command(request)
    if missing_modules(program.argv[:1], program.modules, {}, HERE):
        pytest.skip(f"no torch and torchvision for {PYTHON}")
    any_mpi()
    for name, text in program.files.items():
        (folder / name).write_text(text)
    with socket.socket() as free:  # two models train at the same time
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ended = started(
        Path(program.argv[0]),
        *program.argv[1:],
        ranks=ranks,
        cwd=folder,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        OMP_NUM_THREADS="1",
    )
    return ended, request


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "source"), [("resnet50", "jpeg"), ("vgg16", "memory")], ids=["resnet50", "vgg16"]
)
def test_pytorch_trains_with_two_ranks(model: str, source: str, tmp_path: Path) -> None:
    ended, request = training(tmp_path, 2, model=model, input=source)
    assert ended.returncode == 0, ended.stderr
    parsed = get("training").parse(ended.stdout, request)
    assert [len(sample.values) for sample in parsed.samples] == [2]
    assert parsed.facts["pytorch_ddp.backend"] == "gloo"


@pytest.mark.slow
def test_training_on_a_gpu_that_is_not_there_is_refused(tmp_path: Path) -> None:
    ended, _ = training(tmp_path, 1, device="gpu")
    if ended.returncode == 0:
        pytest.skip("this machine has a GPU")
    assert 'training: torch sees no GPU on this node; set device = "cpu"' in ended.stderr


def test_a_python_without_torch_is_named_before_the_launch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is this one, which has no modules but its own."""
    python = executable(tmp_path / "python3", f'exec "{sys.executable}" -I -S "$@"')
    study = tmp_path / "study.toml"
    study.write_text(
        'question = "q?"\nfactor = "env"\n[arms.a]\n[arms.b]\nenv = { X = "1" }\n'
        f'[[benchmarks]]\nname = "training"\npython = "{python}"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(study)]) == 2
    said = capsys.readouterr().err
    assert f"{python} has no module torch and no module torchvision" in said
    assert "pip install torch torchvision" in said
