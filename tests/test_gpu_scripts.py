"""The scripts for a machine with a GPU, with the stand-in's card and recorded references."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mpis import any_mpi
from processes import executable, ran
from test_gpu import SHIM, stand_in

SCRIPTS = Path(__file__).parent / "gpu"
MIXBENCH = Path(__file__).parent / "fixtures" / "mixbench" / "good-real-cuda_h100.out"


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables with which the stand-ins are one GPU: of CUDA, nvcc, nvidia-smi and NVML."""
    any_mpi()
    folder = tmp_path_factory.mktemp("card")
    stand_in(folder)
    made = ["cc", "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1")]
    subprocess.run([*made, str(SHIM.with_name("energy") / "nvml.c")], check=True)
    (folder / "counters").write_text("5000\n")
    (folder / "state").write_text("watts 200 heat 0 power 0 clock 345 pid 7 used 97\n")
    return {
        "PATH": f"{SCRIPTS}/stand_in:{os.environ['PATH']}",
        "PYTHONPATH": str(SCRIPTS),
        "PARIBUS_CACHE": str(folder / "cache"),
        "PARIBUS_SHIM_GPUS": "1",
        "PARIBUS_SHIM_SMI": str(SCRIPTS / "h100" / "smi-q.txt"),
        "LD_LIBRARY_PATH": str(folder),
        "NVML_COUNTERS": str(folder / "counters"),
        "NVML_STATE": str(folder / "state"),
    }


def executed(
    script: str, out: Path, more: list[str], env: dict[str, str]
) -> tuple[int, dict[str, Any]]:
    """Return the exit code of a script, and what it wrote of its steps."""
    argv = [sys.executable, str(SCRIPTS / script), str(out), "--small", *more]
    done = ran(argv, env={**os.environ, **env}, timeout=500)
    steps = [json.loads(line) for line in (out / "steps.jsonl").read_text().splitlines()]
    assert steps, done.stderr
    return done.returncode, {one["step"]: one for one in steps}


@pytest.mark.slow
def test_ours_is_compared_with_what_references_print(tmp_path: Path, card: dict[str, str]) -> None:
    figures = dict.fromkeys(("gemm", "to", "from", "pageable to", "pageable from"), 1e-6)
    said = json.dumps({**figures, "sms": 132, "capability": 9.0})
    others = {
        "--mixbench": executable(tmp_path / "mixbench", f"cat {MIXBENCH}"),
        "--babelstream": executable(tmp_path / "b", f"cat {SCRIPTS}/h100/babelstream-1G.txt"),
        "--torch": executable(tmp_path / "python", f"echo '{said}'"),
        "--limit-s": "400",
    }
    more = [str(word) for pair in others.items() for word in pair]
    code, steps = executed("references.py", tmp_path / "out", more, card)
    assert code == 1, "a host is no H100"
    assert "failed" not in steps["compute-sanitizer"]
    gemm = steps["PyTorch: gemm, ours / theirs"]
    assert (gemm["pairs"], gemm["good"]) == (8, True)
    assert gemm["low"] < gemm["ratio"] < gemm["high"]
    pair = steps["mixbench, pair 8"]["theirs"]
    assert pair == {"double": 28316.02, "float": 44683.14, "half": 52085.6, "int": 25396.67}
    assert steps["PyTorch: pageable to, ours / theirs"]["pairs"] == 8
    half = steps["half is not above the peak of that clock, Gop/s"]
    assert (half["peak"], half["good"]) == (0, False), "the stand-in of nvidia-smi has no clock"
    for name in ("mixbench: float", "BabelStream: triad"):
        assert steps[f"{name}, ours / theirs"]["good"] is False
    assert set(steps["end"]["failed"]) > {"mixbench: double, ours / theirs"}


STUDY = """\
question = "?"
factor   = "nothing"
[arms.one]
[arms.two]
[[benchmarks]]
name = "gpu_stream"
bytes = [4096]
[plan]
blocks = 8
margin = 0.9
"""


@pytest.mark.slow
def test_paribus_as_a_user_has_it(tmp_path: Path, card: dict[str, str]) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    wrapper = tmp_path / "sitecustomize.py"  # where a machine has GPUs, there is such a device
    device = tmp_path / "nvidiactl"
    device.touch()
    wrapper.write_text(f"from paribus.probes import energy\nenergy.GPUS = {str(device)!r}\n")
    env = {**card, "PYTHONPATH": f"{tmp_path}:{SCRIPTS}"}
    more = ["--study", str(tmp_path / "study.toml"), "--limit-s", "400"]
    code, steps = executed("whole.py", tmp_path / "out", more, env)
    cost = steps["what the counters around a launch cost"]
    assert 0 < cost["of_gpus_ms"] < cost["ms"]
    alone = steps["a launch alone"]
    assert alone["launch.energy.nvml_j"] > 0
    assert alone["launch.energy.nvml_j_per.Top"] > 0
    other = steps["a launch beside another process"]
    assert (other["good"], other["other_alive"]) == (True, True)
    assert set(steps["the study"]["words"]) == {"gpu_stream"}
    assert steps["doctor"]["findings"] > 15
    assert "GPU: persistence" not in steps["doctor"]["odd"]
    assert code == int(bool(steps["end"]["failed"]))
