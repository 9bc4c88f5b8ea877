"""The kernels of GPUs: without one, their host's part with a stand-in, and compilers take them.

`python tests/test_gpu.py` records the fixtures with the stand-in.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from mpis import any_mpi
from native import COMMON, NATIVE, Ended, compiled, started
from paribus.benchmarks import get
from paribus.core import OF_WORK, Request, UserError
from paribus.launch import gpu_toolchain
from paribus.launch.gpu_toolchain import gpu_compiler, lacking
from paribus.launch.machine import HERE
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.readers.kernel import read
from processes import executable

SHIM = Path(__file__).parent / "gpu_shim"
NAMES = (
    *("gpu_stream", "gpu_roofline", "gpu_gemm", "gpu_latency", "gpu_copy", "gpu_peer"),
    "gpu_allreduce",
)
FEW: dict[str, dict[str, Any]] = {
    "gpu_stream": {"bytes": [65536]},
    "gpu_roofline": {"bytes": [4096]},
    "gpu_gemm": {"type": "tf32", "size": [32, 16], "load_s": 1},
    "gpu_latency": {"gpus": 2},
    "gpu_copy": {"bytes": [8, 4096]},
    "gpu_peer": {"bytes": [8, 4096], "gpus": 3},
    "gpu_allreduce": {"bytes": [1024, 4096], "gpus": 3},
}


def stand_in(folder: Path) -> Path:
    """Return the program with a host in place of GPUs, and a library in place of NCCL."""
    # One source, for most of the time goes into headers.
    names = [NATIVE / "gpu.cu", *(NATIVE / "common" / f"{name}.cpp" for name in COMMON)]
    whole = folder / "whole.cpp"
    whole.write_text("".join(f'#include "{name}"\n' for name in names))
    flags = ("-O0", "-I", str(SHIM), "-Wno-unknown-pragmas")
    assert compiled(whole, folder / "gpu", *flags) == ""
    for name, library in (("nccl.cpp", "libnccl.so.2"), ("cublaslt.cpp", "libcublasLt.so.13")):
        assert compiled(SHIM / name, folder / library, "-shared", "-fPIC") == ""
    return folder / "gpu"


def request(name: str) -> Request:
    defaults = {key: one.default for key, one in get(name).parameters.items()}
    return Request({**defaults, "samples": 3, **FEW[name]}, 1)


def launch(program: Path, name: str, *more: str, gpus: int = 3, ranks: int = 1) -> Ended:
    argv = (*get(name).command(request(name)).argv, "--max-case-s", "0.01", *more)
    return started(
        program,
        *argv,
        ranks=ranks,
        PARIBUS_SHIM_GPUS=str(gpus),
        LD_LIBRARY_PATH=str(program.parent),
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    any_mpi()
    return stand_in(tmp_path_factory.mktemp("gpu"))


@pytest.mark.slow("name")
@pytest.mark.parametrize("name", NAMES)
def test_every_case_is_measured_and_checked(name: str, program: Path) -> None:
    """The results of all functions are right, run by the host one thread at a time."""
    ended = launch(program, name)
    assert ended.returncode == 0, ended.stderr
    parsed = get(name).parse(ended.stdout, request(name))
    stretches = ("first", "sustained")  # as many samples as fit in their time
    assert all(len(one.values) == 3 for one in parsed.samples if one.metric not in stretches)
    if name == "gpu_allreduce":
        values = {(s.metric, s.case.get("bytes")): s.values for s in parsed.samples}
        for size in (1024, 4096):
            for rate, us in zip(values["bus_bandwidth", size], values["time", size], strict=True):
                assert rate * us == pytest.approx(1e-3 * size * 2 * 2 / 3, rel=1e-5)


@pytest.mark.slow("name")
@pytest.mark.parametrize("name", NAMES)
def test_wrong_data_are_seen(name: str, program: Path) -> None:
    ended = launch(program, name, "--corrupt")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"{name}: wrong data at {{" in ended.stderr


@pytest.mark.slow
def test_bfloat16_is_measured_alone(program: Path) -> None:
    asked = Request({**request("gpu_roofline").parameters, "type": "bfloat16"}, 1)
    argv = ("--type", "bfloat16", "--bytes", "4096", "--samples", "3")
    ended = started(program, "gpu_roofline", *argv, ranks=1, PARIBUS_SHIM_GPUS="1")
    parsed = get("gpu_roofline").parse(ended.stdout, asked)
    assert {one.case.get("type") for one in parsed.samples} == {"bfloat16"}
    assert len(parsed.samples) == 10, "from 1/8 to 64 operations for each byte"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("type_", "code", "needs"), [("bfloat16", "75", "8.0"), ("half", "52", "5.3")]
)
def test_a_type_that_the_gpu_s_code_emulates_is_refused(
    type_: str, code: str, needs: str, program: Path
) -> None:
    argv = (program, "gpu_roofline", "--type", type_)
    ended = started(*argv, ranks=1, PARIBUS_SHIM_GPUS="1", PARIBUS_SHIM_PTX=code)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{type_} needs a GPU of compute capability {needs}" in ended.stderr


@pytest.mark.parametrize(
    ("known", "made"),
    [("50 60 75 80 90", "60 80"), ("75 80 121", "75 80"), ("90 100", "90"), ("", "")],
)
def test_code_is_made_for_architectures_with_every_type(
    known: str, made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUDA 12, 13, one that knows no Ampere any more, and one that lists nothing."""
    listed = "".join(f"echo compute_{one}; " for one in known.split())
    executable(tmp_path / "nvcc", f'[ "$1" = --version ] && echo release 0 || {{ {listed}:; }}')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    gpu_compiler.cache_clear()
    flags = gpu_compiler(HERE).flags
    gpu_compiler.cache_clear()
    assert [one.rpartition("_")[2] for one in flags] == made.split()


@pytest.mark.slow
def test_the_energy_of_products_is_that_of_the_load(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU of 200 W: joules for 10^12 operations are its power over its speed."""
    folder = program.parent
    made = ["cc", "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1")]
    subprocess.run([*made, str(SHIM.with_name("energy") / "nvml.c")], check=True)
    (folder / "counters").write_text("5000\n")
    (folder / "state").write_text("watts 200\n")
    monkeypatch.setenv("NVML_COUNTERS", str(folder / "counters"))
    assert not launch(program, "gpu_gemm").stdout.count("j_per")
    monkeypatch.setenv("NVML_STATE", str(folder / "state"))
    ended = launch(program, "gpu_gemm")
    parsed = get("gpu_gemm").parse(ended.stdout, request("gpu_gemm"))
    (speed,) = (median(one.values) for one in parsed.samples if one.metric == "sustained")
    assert parsed.facts[f"{OF_WORK}Top"] == pytest.approx(200 / (1e-3 * speed), rel=0.6)


def test_a_driver_older_than_nvcc_is_named(program: Path) -> None:
    argv = ("gpu_stream", "--bytes", "4096")
    ended = started(program, *argv, ranks=1, PARIBUS_SHIM_GPUS="1", PARIBUS_SHIM_OLD_DRIVER="1")
    assert ended.returncode == 1
    assert "(nvcc is newer than the driver: use an older one)" in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "gpus", "says"),
    [
        ((), 0, "gpu_peer: no GPU: no CUDA-capable device is detected"),
        (("--gpus", "4"), 3, "gpu_peer: 4 GPUs were asked for, this node shows 3"),
        (("--gpus", "1"), 3, "gpu_peer: --gpus needs a whole number from 2 to 64"),
    ],
)
def test_gpus_that_are_not_there_are_refused(
    more: tuple[str, ...], gpus: int, says: str, program: Path
) -> None:
    ended = launch(program, "gpu_peer", *more, gpus=gpus)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert says in ended.stderr


def test_an_array_larger_than_the_card_is_refused_with_what_to_do(program: Path) -> None:
    ended = launch(program, "gpu_stream", "--bytes", str(1 << 60))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"no memory left for {1 << 60} bytes more (ask for less, in all arms): " in ended.stderr


def test_nccl_that_is_missing_is_named(program: Path) -> None:
    alone = program.with_name("alone")
    alone.mkdir()
    moved = alone / "gpu"
    moved.symlink_to(program)
    for library in ("libnccl.so.2", "librccl.so.1"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(library)
            pytest.skip(f"the system has {library}")
    ended = launch(moved, "gpu_allreduce")
    assert "neither libnccl.so.2 nor librccl.so.1 is found" in ended.stderr


def test_a_compiler_takes_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without a GPU, what it makes says so."""
    any_mpi()
    if "nvcc or hipcc" in lacking(HERE):
        pytest.skip("no nvcc and no hipcc")
    mpi = find_mpi(None, HERE)
    monkeypatch.setenv("PARIBUS_CACHE", str(tmp_path / "cache"))
    made = kernel_path("gpu", mpi, HERE)
    ended = started(made, "gpu_stream", "--bytes", "65536", ranks=1)
    if "a GPU" in lacking(HERE):
        assert "gpu_stream: no GPU: " in ended.stderr
    else:
        assert ended.returncode == 0, ended.stderr
        read(ended.stdout)


def test_without_a_compiler_the_error_says_what_to_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpu_toolchain, "_PLACES", dict.fromkeys(("nvcc", "hipcc"), "/nowhere"))
    gpu_compiler.cache_clear()
    assert "nvcc or hipcc" in lacking(HERE)
    with pytest.raises(UserError, match="no compiler for GPUs") as caught:
        gpu_compiler(HERE)
    assert "load the module of CUDA or ROCm" in caught.value.fix


def record(folder: Path) -> None:
    """Write the fixtures, by the stand-in."""
    program = stand_in(folder)
    for name in NAMES:
        place = Path(__file__).parent / "fixtures" / name
        place.mkdir(exist_ok=True)
        text = launch(program, name).stdout
        header, rest = text.split("\n", 1)
        table = {**json.loads(header), "hosts": ["node0"]}
        (place / "good-stand-in.out").write_text(f"{json.dumps(table)}\n{rest}")
        asked = {"ranks": 1, "parameters": dict(request(name).parameters)}
        (place / "good-stand-in.json").write_text(f"{json.dumps(asked, indent=1)}\n")
        (place / "README").write_text(
            "By the stand-in of the tests (tests/gpu_shim), which has no GPU: only the form is\n"
            "real, the figures mean nothing. `python tests/test_gpu.py FOLDER` writes them.\n"
        )


if __name__ == "__main__":
    record(Path(sys.argv[1]))
