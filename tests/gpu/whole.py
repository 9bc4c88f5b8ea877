"""Paribus as a user has it, on a machine with one GPU: at most 5 minutes.

    python3 tests/gpu/whole.py OUT [--study STUDY]

What the counters around a launch cost, launches alone and beside another process on the GPU (the
noise gate), their energy, `paribus run gpu`, and the doctor if 60 s are left.
OUT/steps.jsonl has every step as soon as it has ended; OUT also has what each printed. To be a
fixture, UUIDs in it must be replaced.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steps import Steps

from paribus.audit.gate import GATE
from paribus.benchmarks import get
from paribus.core import Arm, Facts, Request, Selection, Settings, State, Study
from paribus.doctor import trial
from paribus.launch.local import LocalStation
from paribus.launch.machine import HERE
from paribus.launch.ready import make_ready
from paribus.launch.toolchain import find_mpi, kernel_path
from paribus.probes import energy
from paribus.probes.machine import load_facts

SHOWN = (GATE, "launch.energy", "load.during.gpu.")
MOST_MS = 3.0


def doctor(steps: Steps) -> dict[str, Any]:
    """Return the GPU's findings that are not good, and its resolution."""
    done = subprocess.run(
        [sys.executable, "-m", "paribus", "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=max(1.0, steps.left_s()),
        check=False,
    )
    (steps.out / "doctor.json").write_text(done.stdout)
    table = json.loads(done.stdout)
    of_gpu = [one for one in table["findings"] if one["name"].startswith("GPU")]
    odd = {one["name"]: one["found"] for one in of_gpu if one["grade"] != "good"}
    return {"findings": len(of_gpu), "odd": odd, "resolution": table["resolution"]}


def cost() -> dict[str, Any]:
    """Return what the readings around a launch cost together, with the GPU's part in them."""
    load_facts()

    def both() -> float:
        began = time.perf_counter()
        load_facts()
        load_facts(since_s=time.time() - 3)
        return 1e3 * (time.perf_counter() - began)

    several = [both() for _ in range(20)]
    gpus, energy.GPUS = energy.GPUS, "/nowhere"
    without = [both() for _ in range(20)]
    energy.GPUS = gpus
    of_gpus = statistics.median(several) - statistics.median(without)
    return {"ms": statistics.median(several), "of_gpus_ms": of_gpus, "good": of_gpus <= MOST_MS}


def launched(steps: Steps, name: str, **parameters: Any) -> Facts:
    """Return the facts of one launch, as a study makes it; raises RuntimeError where it fails."""
    one = Selection(name, name, 1, {**_defaults(name), **parameters})
    study = Study("?", "nothing", (Arm("doctor"),), (one,), Settings(), path="whole")
    ready = make_ready(study, lambda text: print(text, file=sys.stderr))["doctor"]
    with LocalStation() as station:
        outcome = trial.launched(station, ready, one, steps.out)
    if outcome.state is not State.OK:
        raise RuntimeError(outcome.error)
    return {key: value for key, value in outcome.facts.items() if key.startswith(SHOWN)}


def beside(steps: Steps, product: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a launch while another process has the GPU: the gate must name it."""
    mpi = find_mpi(None, HERE)
    request = Request({**_defaults("gpu_gemm"), **product, "load_s": 30}, 1)
    argv = [mpi.mpirun, "-n", "1", str(kernel_path("gpu", mpi, HERE))]
    argv += get("gpu_gemm").command(request).argv
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        time.sleep(4)
        try:
            facts = launched(steps, "gpu_stream", bytes=[1 << 20])
            alive = other.poll() is None
        finally:
            other.terminate()
    said = " ".join(map(str, facts.get(GATE, ())))
    return {**facts, "other_alive": alive, "good": "other processes used" in said}


def _defaults(name: str) -> dict[str, Any]:
    return {key: one.default for key, one in get(name).parameters.items()}


def studied(steps: Steps, study: str) -> dict[str, Any]:
    """Return the verdicts of a study and how long it took."""
    began, out = time.monotonic(), steps.out / "study"
    argv = [sys.executable, "-m", "paribus", "run", study, "--out", str(out), "--json"]
    with (steps.out / "run.json").open("w") as to, (steps.out / "run.err").open("w") as err:
        done = subprocess.Popen(argv, stdout=to, stderr=err)
        try:
            done.wait(steps.left_s())
        except subprocess.TimeoutExpired:
            done.send_signal(signal.SIGINT)  # its launches stay, to be resumed
            done.wait(60)
    took = time.monotonic() - began
    if done.returncode not in (0, 3):
        raise RuntimeError((steps.out / "run.err").read_text()[-600:])
    table = json.loads((steps.out / "run.json").read_text())
    heads = [one for one in table["headlines"] if one.get("decides", True)]
    words = {one["benchmark"]: one["verdict"]["word"] for one in heads}
    decided = set(words.values()) <= {"faster", "slower", "equivalent"}
    return {"words": words, "run_s": took, "code": done.returncode, "good": decided and took <= 240}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--study", default="gpu")
    parser.add_argument("--limit-s", type=float, default=295.0)
    parser.add_argument("--small", action="store_true", help="of the tests: sizes for a stand-in")
    asked = parser.parse_args()
    steps = Steps(asked.out, asked.limit_s)
    product = {"size": [32], "type": "tf32"} if asked.small else {"size": [8192]}
    steps.do("what the counters around a launch cost", 5, cost)
    steps.do("a launch alone", 40, lambda: launched(steps, "gpu_gemm", **product, load_s=3))
    steps.do("a launch beside another process", 12, lambda: beside(steps, product))
    steps.do("the study", 90, lambda: studied(steps, asked.study))
    steps.do("doctor", 60, lambda: doctor(steps))  # last: a user has it by itself in a minute
    return steps.end()


if __name__ == "__main__":
    sys.exit(main())
